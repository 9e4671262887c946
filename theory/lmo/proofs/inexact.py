"""Proof of Theorem 1i at the iterate, where the gradient was taken, and for the momentum's own norm.

Lemmas B and C hold with steps of norm at most eta r_hi: their steps are taken over with that number, `longest_step`,
for eta (`longer`), and checked anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sp

import theory.lmo.inexact_axioms  # noqa: F401  (registers the schemas)
from theory.axioms import Fact
from theory.lmo.inexact import INEXACT
from theory.lmo.inexact_axioms import longest, r_hi, r_lo
from theory.lmo.proofs import delay, delayed, descent, momentum_error, shifted
from theory.proof import (
    Averaged,
    Expected,
    Proof,
    Step,
    axiom,
    definition,
    le,
    statement,
    symbols,
    with_terms,
)
from theory.relation import Relation

eta, L, K, Delta0 = symbols("eta L K Delta0")
f_now, f_next, f_first, f_last = symbols("f_now f_next f_first f_last")
E_first, E_last = symbols("E_f_first E_f_last")
gd, ed, G, M, E, T, S = symbols(
    "inner_grad inner_error grad_norm momentum_norm error_norm taken_norm shifted_error_norm"
)
BIAS, ERROR = "bias of the delay", "error of the momentum"
RENAMED = {delay.PROOF: BIAS, momentum_error.PROOF: ERROR}


def longer(
    steps: Sequence[Step], names: Mapping[str, str] | None = None, longest: sp.Expr = longest
) -> tuple[Step, ...]:
    """Steps of a proof with the longest step in place of eta, lemmas cited by name in place of their proofs."""

    def side(expression: sp.Expr) -> sp.Expr:
        return expression.subs(eta, longest)

    def relation(old: Relation) -> Relation:
        terms = tuple((name, side(term)) for name, term in old.terms)
        return Relation(side(old.left), old.sense, side(old.right), terms)

    return tuple(
        replace(
            step,
            name=(names or {}).get(step.name, step.name),
            premises=tuple(RENAMED.get(p, p) if isinstance(p, Proof) else p for p in step.premises),
            conclusion=relation(step.conclusion),
            mutant=None if step.mutant is None else relation(step.mutant),
        )
        for step in steps
    )


AT_MOST = Step(
    "a step is at most eta",
    ("length of the step", axiom("inexact_norm"), definition("longest step")),
    le(symbols("step_norm")[0], longest),
    mutant=le(symbols("step_norm")[0], longest * 19 / 20),
)
EXPECTED_ERROR = (
    AT_MOST,
    *longer(delay.STEPS[2:], {"lemma": BIAS}),
    *momentum_error.RECURSION,
    *longer(momentum_error.CHANGE[2:]),
    *longer(momentum_error.STEPS[len(momentum_error.RECURSION) + len(momentum_error.CHANGE) :], {"lemma": ERROR}),
    *longer(delayed.EXPECTED_ERROR),
)
_ALONG, _INNER, _AGAINST = descent.AFTER_LENGTH[2:5]
PATH = (
    descent.LENGTH,
    *descent.AFTER_LENGTH[:2],
    Step(
        _ALONG.name,
        (*_ALONG.premises[:3], axiom("inexact_norm")),
        with_terms(f_next, objective=f_now, along=-eta * gd, curvature=L * eta**2 * r_hi**2 / 2),
    ),
    _INNER,
    Step(
        "error along the direction",
        (axiom("duality", "error", "direction"), axiom("inexact_norm")),
        le(ed, r_hi * E),
        mutant=le(ed, r_hi * E * 19 / 20),
    ),
    Step(
        "progress along the direction",
        (_INNER.name, axiom("inexact_value"), "error along the direction"),
        le(r_lo * M - r_hi * E, gd),
        mutant=le(r_lo * M - r_hi * E * 19 / 20, gd),
    ),
)


def averaged(
    measured: str,
    against: tuple[Step, ...],
    errors: Mapping[str, sp.Expr],
    lo: sp.Expr = r_lo,
    hi: sp.Expr = r_hi,
) -> tuple[Step, ...]:
    """From one step to the average in expectation.

    measured: the norm that is bounded; against: the step that compares it with the momentum's (none for its own);
    errors: norm of an error -> how often it counts, times lo; lo, hi: the oracle's numbers, 1 of an exact one.
    """
    (X,) = symbols(measured)
    step = L * eta * hi**2 / (2 * lo)
    mean, E_mean = symbols(f"mean_{measured} E_mean_{measured}")
    means = {name: symbols(f"mean_{name}")[0] for name in errors}
    E_means = {name: symbols(f"E_mean_{name}")[0] for name in errors}
    premises = ("descent along the direction", "progress along the direction", *(step.name for step in against))
    counted = {name: factor * eta * symbols(name)[0] for name, factor in errors.items()}
    return (
        *against,
        Step(
            "descent",
            premises,
            with_terms(f_next, objective=f_now, measured=-eta * lo * X, step=L * eta**2 * hi**2 / 2, **counted),
        ),
        Step(
            "sum",
            ("descent",),
            with_terms(
                mean,
                initial=(f_first - f_last) / (eta * K * lo),
                step=step,
                **{name: factor / lo * means[name] for name, factor in errors.items()},
            ),
            Averaged(
                {measured: f"mean_{measured}", **{name: f"mean_{name}" for name in errors}},
                telescoping=(("f_now", "f_next", "f_first", "f_last"),),
            ),
        ),
        Step(
            "expected sum",
            ("sum",),
            with_terms(
                E_mean,
                initial=(E_first - E_last) / (eta * K * lo),
                step=step,
                **{name: factor / lo * E_means[name] for name, factor in errors.items()},
            ),
            Expected(),
        ),
        delayed.FLOOR,
        Step(
            "average in expectation",
            ("expected sum", "expected lower bound", definition("initial gap")),
            with_terms(
                E_mean,
                initial=Delta0 / (eta * K * lo),
                step=step,
                **{name: factor / lo * E_means[name] for name, factor in errors.items()},
            ),
        ),
    )


def _proof(form: str, steps: tuple[Step, ...], measured: str, last: tuple[str, ...]) -> Proof:
    (left,) = symbols(f"E_mean_{measured}")
    premises: tuple[Fact | str, ...] = ("average in expectation", *last, definition("longest step"))
    end = Step("theorem", premises, statement(INEXACT[form], left))
    return Proof(INEXACT[form], (*PATH, *steps, end), left=left)


_BOTH = r_lo + r_hi
_TAKEN = next(step for step in shifted.PATH if step.name == "momentum against the gradient taken")

AT_X = _proof(
    "",
    (*averaged("grad_norm", (_AGAINST,), {"error_norm": _BOTH}), *EXPECTED_ERROR),
    "grad_norm",
    ("average error, limit",),
)
MOMENTUM = _proof(
    "-momentum",
    (*averaged("momentum_norm", (), {"error_norm": r_hi}), *EXPECTED_ERROR),
    "momentum_norm",
    ("average error, limit",),
)
SHIFTED = _proof(
    "-shifted",
    (
        *averaged("taken_norm", (_TAKEN,), {"error_norm": r_hi, "shifted_error_norm": r_lo}),
        *EXPECTED_ERROR,
        *longer([step for step in shifted.RECURSION if step.name != delay.AT_MOST_ETA.name]),
    ),
    "taken_norm",
    ("average error, limit", "average shifted error, limit"),
)
