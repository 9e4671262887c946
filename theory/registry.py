"""All bounds by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from theory.bound import Bound
from theory.errors import InputError
from theory.euclidean import delayed_gd, delayed_gd_two_sided
from theory.feedback import at_weights
from theory.lmo import (
    at_iterate,
    delayed,
    error_feedback,
    finite,
    inexact,
    kovalev,
    median,
    momentum,
    nesterov,
    shifted,
    star_convex,
    star_convex_reported,
    tuned,
)
from theory.local_sgd import averaged
from theory.local_sgd import variance as local_variance
from theory.pipedream import blocks, exact, paper, polyak_lojasiewicz, second_moment, variance, variance_any_delay

BOUNDS: dict[str, Bound] = {
    bound.name: bound
    for bound in (
        delayed.BOUND,
        at_iterate.BOUND,
        shifted.BOUND,
        median.BOUND,
        momentum.BOUND,
        finite.BOUND,
        *inexact.INEXACT.values(),
        *nesterov.NESTEROV_BOUNDS.values(),
        *inexact.INEXACT_NESTEROV.values(),
        tuned.BOUND,
        tuned.SHIFTED,
        tuned.BOTH,
        kovalev.BOUND,
        error_feedback.BOUND,
        error_feedback.BOUND_AT_X,
        error_feedback.BOUND_ANY_DELAY,
        at_weights.BOUND,
        star_convex.BOUND,
        star_convex.FINITE,
        star_convex_reported.BOUND,
        paper.BOUND,
        second_moment.BOUND,
        second_moment.INDEPENDENT,
        second_moment.DRIFT,
        blocks.BOUND,
        variance_any_delay.BOUND,
        variance.BOUND,
        variance.SPLIT,
        polyak_lojasiewicz.BOUND,
        polyak_lojasiewicz.COUNTED,
        exact.BOUND,
        exact.AGE,
        exact.SPLIT,
        averaged.BOUND,
        averaged.COUNTED,
        local_variance.BOUND,
        delayed_gd.BOUND,
        delayed_gd.FINITE,
        delayed_gd_two_sided.BOUND,
    )
}


def get_bound(name: str) -> Bound:
    """The bound of that name. Raises InputError naming those that are spelled alike."""
    if not isinstance(name, str):
        raise InputError(f"bound: {name!r} is not a name; staleproof bound --list prints all {len(BOUNDS)} names")
    if name not in BOUNDS:
        hint = alike(name, BOUNDS)
        raise InputError(f"unknown bound {name!r}; {hint} staleproof bound --list prints all {len(BOUNDS)} names")
    return BOUNDS[name]


def alike(name: str, names: Iterable[str]) -> str:
    """Those of `names` that are spelled like `name`, as a question."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else "none is spelled alike;"
