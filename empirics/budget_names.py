"""Which theorems have a budget, and what to say of one that has none."""

from __future__ import annotations

from empirics.budget import OWN
from empirics.errors import InputError
from theory.registry import BOUNDS


def check_has_budget(theorem: str) -> None:
    """Raises InputError for a bound that cannot be taken apart on a run, and for what is no bound."""
    if theorem in OWN:
        return
    allowed = f"allowed are {', '.join(OWN)}"
    if theorem in BOUNDS:
        why = "taken apart are averages over a run of the LMO optimizer whose proof is checked step by step"
        raise InputError(f"theorem: {theorem!r} is a bound, but it has no budget: {why}; {allowed}")
    raise InputError(f"theorem: {theorem!r} is no bound; {allowed}")
