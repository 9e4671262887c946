"""All proofs by the name of their theorem; imported only where proofs are asked for, not by `import theory`."""

from __future__ import annotations

import sys

from theory.bound import Bound
from theory.errors import InputError
from theory.euclidean.proofs import delayed_gd
from theory.euclidean.proofs import finite as delayed_gd_finite
from theory.euclidean.proofs import two_sided as delayed_gd_two_sided
from theory.lmo.proofs import (
    at_iterate,
    average,
    delay,
    delayed,
    descent,
    error_feedback,
    error_feedback_path,
    error_feedback_weights,
    finite,
    inexact,
    inexact_median,
    median,
    momentum,
    momentum_error,
    nesterov,
    nesterov_median,
    shifted,
    star_convex,
    tuned,
)
from theory.local_sgd.proofs import counted as local_counted
from theory.local_sgd.proofs import descent as local_descent
from theory.local_sgd.proofs import variance as local_variance
from theory.pipedream.proofs import (
    any_delay,
    blocks,
    common,
    exact,
    polyak_lojasiewicz,
    second_moment,
    second_moment_drift,
    variance,
    window,
)
from theory.pipedream.proofs import average as run_average
from theory.pipedream.proofs import descent as block_descent
from theory.proof import Proof
from theory.registry import BOUNDS, alike

PROOFS: dict[str, Proof] = {
    proof.name: proof
    for proof in (
        descent.PROOF,
        delay.PROOF,
        momentum_error.PROOF,
        average.PROOF,
        delayed.PROOF,
        shifted.PROOF,
        median.PROOF,
        at_iterate.PROOF,
        momentum.PROOF,
        finite.PROOF,
        inexact.AT_X,
        inexact.SHIFTED,
        inexact.MOMENTUM,
        inexact_median.PROOF,
        nesterov.AT_X,
        nesterov.SHIFTED,
        nesterov.OWN_NORM,
        nesterov.INEXACT_AT_X,
        nesterov.INEXACT_TAKEN,
        nesterov.INEXACT_OWN_NORM,
        nesterov_median.PROOF,
        nesterov_median.INEXACT,
        tuned.CLASSICAL,
        tuned.SHIFTED,
        tuned.BOTH,
        star_convex.FINITE,
        star_convex.PROOF,
        descent.PROOF_AT_Y,
        error_feedback_path.DELAY,
        error_feedback_path.MOMENTUM_ERROR,
        error_feedback_path.AVERAGE,
        error_feedback.AT_Y,
        error_feedback.AT_X,
        error_feedback.ANY_DELAY,
        error_feedback_weights.PROOF,
        block_descent.PROOF,
        block_descent.FULL,
        block_descent.EXACT_PROOF,
        run_average.PROOF,
        run_average.FULL,
        run_average.EXACT,
        window.PROOF,
        common.WINDOWS_ANY,
        blocks.WINDOWS,
        variance.WINDOWS,
        exact.WINDOWS,
        any_delay.PAPER,
        any_delay.A,
        any_delay.C,
        second_moment.PROOF,
        second_moment_drift.PROOF,
        blocks.PROOF,
        variance.PROOF,
        variance.SPLIT,
        polyak_lojasiewicz.PROOF,
        polyak_lojasiewicz.COUNTED,
        exact.PROOF,
        exact.AGE,
        exact.SPLIT,
        delayed_gd.PROOF,
        delayed_gd_finite.PROOF,
        delayed_gd_two_sided.PROOF,
        local_descent.PROOF,
        local_descent.AVERAGE,
        local_counted.PROOF,
        local_variance.PROOF,
    )
}


def get_proof(name: str) -> Proof:
    """The proof of that name. Raises InputError: a bound without one, or names that are spelled alike."""
    if not isinstance(name, str):
        raise InputError(f"proof: {name!r} is not a name; staleproof prove --list prints all {len(PROOFS)} names")
    if name in PROOFS:
        return PROOFS[name]
    if name in BOUNDS:
        bound = BOUNDS[name]
        said = "derived here, in words" if bound.origin == "derived here" else f"as reported by {bound.reference}"
        raise InputError(f"{name} is a bound without a machine proof ({said}){_words(bound)}")
    hint = alike(name, PROOFS)
    raise InputError(f"unknown proof {name!r}; {hint} staleproof prove --list prints all {len(PROOFS)} names")


def _words(bound: Bound) -> str:
    """Where the words of a bound stand: the first module that holds it."""
    loaded = [(name, module) for name, module in sys.modules.items() if name.startswith("theory.")]
    where = [name for name, module in loaded if any(value is bound for value in vars(module).values())]
    return f"; its words: {where[0].replace('.', '/')}.py" if where else ""
