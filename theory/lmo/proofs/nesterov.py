"""Proofs of Theorems 1, 1s, 1m and 1i for Nesterov's direction: the oracle answers c_k = (1-a) m_{k+1} + a g_k.

As the proofs for the momentum itself, with c_k for m_{k+1} in what the oracle says, and its error by Lemma C for c_k.
"""

from __future__ import annotations

import sympy as sp

import theory.lmo.nesterov_axioms  # noqa: F401  (registers the schemas)
from theory.bound import Bound
from theory.lmo.inexact import INEXACT_NESTEROV
from theory.lmo.inexact_axioms import r_hi, r_lo
from theory.lmo.nesterov import NESTEROV_BOUNDS
from theory.lmo.proofs import delay, descent, inexact, nesterov_error
from theory.proof import InnerWith, NormOf, Proof, Step, axiom, definition, eq, le, statement, symbols

gd, cd, ed, G, C, E, T, S = symbols(
    "inner_grad inner_called inner_called_error grad_norm called_norm called_error_norm taken_norm "
    "called_shifted_error_norm"
)
INNER = Step(
    "gradient along the direction",
    (definition("called error"),),
    eq(gd, cd - ed),
    InnerWith("direction", vector="grad"),
)
AGAINST = Step(
    "oracle's argument against the gradient",
    (definition("called error"),),
    le(G, C + E),
    NormOf(vector="grad"),
)
AGAINST_TAKEN = Step(
    "oracle's argument against the gradient taken",
    (definition("called shifted error"),),
    le(T, C + S),
    NormOf(vector="grad_taken"),
)


def _path(norm: str, value: str, lo: sp.Expr, hi: sp.Expr) -> tuple[Step, ...]:
    """What the oracle says of one step; norm, value: its two axioms."""
    error, progress = le(ed, hi * E), le(lo * C - hi * E, gd)
    return (
        INNER,
        Step(
            "error along the direction",
            (axiom("duality", "called_error", "direction"), axiom(norm)),
            error,
            mutant=le(ed, hi * E * 19 / 20),
        ),
        Step(
            "progress along the direction",
            (INNER.name, axiom(value), "error along the direction"),
            progress,
            mutant=le(lo * C - hi * E * 19 / 20, gd),
        ),
    )


EXACT_PATH = (
    descent.LENGTH,
    *descent.AFTER_LENGTH[:3],
    *_path("lmo_norm", "lmo_value_where_called", sp.Integer(1), sp.Integer(1)),
)
INEXACT_PATH = (*inexact.PATH[:4], *_path("inexact_norm", "inexact_value_where_called", r_lo, r_hi))
EXACT_ERROR = (*nesterov_error.LAG, *nesterov_error.NOISE, *nesterov_error.AT_X)
EXACT_SHIFTED = (*nesterov_error.SHIFTED_LAG, *nesterov_error.SHIFTED)
INEXACT_ERROR = (
    *nesterov_error.until(inexact.EXPECTED_ERROR, "unrolled"),
    *inexact.longer((*nesterov_error.NOISE, *nesterov_error.AT_X)),
)
INEXACT_SHIFTED = inexact.longer([step for step in EXACT_SHIFTED if step.name != delay.AT_MOST_ETA.name])


def _proof(bound: Bound, form: str) -> Proof:
    """The proof of one form of `theory.lmo.inexact.FORMS`."""
    exact = "lmo" in bound.assumptions
    lo, hi = (sp.Integer(1), sp.Integer(1)) if exact else (r_lo, r_hi)
    against, measured = {
        "": ((AGAINST,), "grad_norm"),
        "-shifted": ((AGAINST_TAKEN,), "taken_norm"),
        "-momentum": ((), "called_norm"),
    }[form]
    errors: dict[str, sp.Expr] = {"called_error_norm": lo + hi if form == "" else hi}
    steps = EXACT_ERROR if exact else INEXACT_ERROR
    last = ["average in expectation", "average called error, limit"]
    if form == "-shifted":
        errors["called_shifted_error_norm"] = lo
        steps += EXACT_SHIFTED if exact else INEXACT_SHIFTED
        last.append("average called shifted error, limit")
    (left,) = symbols(f"E_mean_{measured}")
    premises = (*last, *(() if exact else (definition("longest step"),)))
    path = EXACT_PATH if exact else INEXACT_PATH
    end = Step("theorem", premises, statement(bound, left))
    averaged = inexact.averaged(measured, against, errors, lo, hi)
    return Proof(bound, tuple(dict.fromkeys((*path, *averaged, *steps, end))), left=left)


AT_X, SHIFTED, OWN_NORM = (_proof(NESTEROV_BOUNDS[form], form) for form in ("", "-shifted", "-momentum"))
INEXACT_AT_X, INEXACT_TAKEN, INEXACT_OWN_NORM = (
    _proof(INEXACT_NESTEROV[form], form) for form in ("", "-shifted", "-momentum")
)
