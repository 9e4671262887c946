"""All bounds by name."""

from __future__ import annotations

from theory.bound import Bound
from theory.errors import InputError
from theory.lmo import delayed, error_feedback, finite, momentum, shifted

BOUNDS: dict[str, Bound] = {
    bound.name: bound
    for bound in (
        delayed.BOUND,
        shifted.BOUND,
        momentum.BOUND,
        finite.BOUND,
        error_feedback.BOUND,
        error_feedback.BOUND_AT_X,
        error_feedback.BOUND_ANY_DELAY,
    )
}


def get_bound(name: str) -> Bound:
    """The bound of that name. Raises InputError listing the known names."""
    if name not in BOUNDS:
        raise InputError(f"unknown bound {name!r}; known: {', '.join(BOUNDS)}")
    return BOUNDS[name]
