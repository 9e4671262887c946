"""Which theorems have a budget, and what to say of one that has none."""

from __future__ import annotations

from empirics.errors import InputError
from theory.lmo.inexact import INEXACT, INEXACT_NESTEROV
from theory.lmo.nesterov import NESTEROV_BOUNDS
from theory.registry import BOUNDS

#: form of `theory.lmo.inexact.FORMS` -> what the theorem bounds the average of
_AT = {"": "grad_norm", "-shifted": "taken_norm", "-median": "reference_norm", "-momentum": "momentum_norm"}
OWN = {
    "delayed-lmo": "grad_norm",
    "delayed-lmo-finite": "grad_norm",
    "delayed-lmo-shifted": "taken_norm",
    "delayed-lmo-median": "reference_norm",
    "delayed-lmo-iterate": "grad_norm_tau_back",
    "delayed-lmo-momentum": "momentum_norm",
    "error-feedback": "grad_norm",
    "error-feedback-any-delay": "grad_norm",
    "error-feedback-at-x": "grad_norm_at_x",
} | {bound.name: _AT[form] for form, bound in INEXACT.items()} | {
    bound.name: (_AT | {"-momentum": "called_norm"})[form]
    for bounds in (NESTEROV_BOUNDS, INEXACT_NESTEROV) for form, bound in bounds.items()
}  # fmt: skip
#: Of those, what the error against z_k is not the only one of -> the word in the names of the other error.
OTHER = {"taken_norm": "shifted", "grad_norm_tau_back": "shifted", "reference_norm": "reference"}


def check_has_budget(theorem: str) -> None:
    """Raises InputError for a bound that cannot be taken apart on a run, and for what is no bound."""
    if theorem in OWN:
        return
    allowed = f"allowed are {', '.join(OWN)}"
    if theorem in BOUNDS:
        why = "taken apart are averages over a run of the LMO optimizer whose proof is checked step by step"
        raise InputError(f"theorem: {theorem!r} is a bound, but it has no budget: {why}; {allowed}")
    raise InputError(f"theorem: {theorem!r} is no bound; {allowed}")
