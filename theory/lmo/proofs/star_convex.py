"""Proofs for star-convex f with weight decay: the iterates stay in a ball, the excess contracts up to an error.

Lemmas B and C hold with steps of norm at most 2 eta: their steps are taken over with 2 eta for eta and checked anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import theory.lmo.star_convex_axioms  # noqa: F401  (registers the schemas)
import theory.pipedream.vectors  # noqa: F401  (definitions of the excess)
from theory.functions import GeometricSum
from theory.lmo import star_convex
from theory.lmo.parts import DELAY, LAG, NOISE
from theory.lmo.proofs import delay, delayed, descent, momentum_error, noise
from theory.lmo.proofs.inexact import BIAS, ERROR, longer
from theory.proof import (
    Expected,
    Induction,
    InnerWith,
    Instance,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    with_terms,
)

alpha, eta, tau, k, K, L, E0, Delta0, b, r = symbols("alpha eta tau k K L E0 Delta0 b r")
x, x_before, step, d, d_before = symbols(
    "iterate_norm iterate_norm_before step_norm direction_norm direction_norm_before"
)
f_now, f_next, f_star, M, E, mean = symbols("f_now f_next f_star momentum_norm error_norm segment_mean")
E_now, E_next, E_error = symbols("E_f_now E_f_next E_error_norm")
along_step, along_x, along_d, along_star, m_star, e_star = symbols(
    "inner_step inner_iterate inner_grad inner_grad_minimiser inner_momentum_minimiser inner_error_minimiser"
)
now, after, last = symbols("excess_now excess_next excess_last")
p, q = 1 - b, 1 - alpha
LONGEST = 2 * eta
SQUARE = 2 * L * eta**2
ERRORS = {"momentum_lag": 2 * LAG, "delay": 2 * DELAY, "noise": NOISE}
COUNTED = (1 + r) * eta


def decayed(steps: Sequence[Step], names: Mapping[str, str] | None = None) -> tuple[Step, ...]:
    """Steps of a proof with 2 eta for eta; their inductions rest on weight decay, which has constant eta and alpha."""
    return tuple(
        replace(step, rule=replace(step.rule, axioms=("weight-decay",))) if isinstance(step.rule, Induction) else step
        for step in longer(steps, names, LONGEST)
    )


BALL = (
    Step(
        "iterate in norms",
        (axiom("decayed_iterate"),),
        le(x, p * x_before + eta * d_before),
        NormOf(),
    ),
    Step(
        "direction before",
        (axiom("lmo_norm"),),
        le(d_before, 1),
        Instance("direction of the step before"),
    ),
    Step(
        "iterate in numbers",
        ("iterate in norms", "direction before"),
        with_terms(x, before=p * x_before, direction=eta),
    ),
    Step(
        "in the ball",
        (axiom("start_in_the_ball"), "iterate in numbers"),
        le(x, eta / b),
        Induction(
            {"iterate_norm_before": "iterate_norm"}, (axiom("start_in_the_ball").key,), axioms=("weight-decay",)
        ),
    ),
    Step(
        "length of the step",
        (axiom("decayed_step"),),
        le(step, b * x + eta * d),
        NormOf(),
    ),
    Step(
        "a step is at most eta",  # 2 eta: the name that Lemmas B and C cite
        ("length of the step", "in the ball", axiom("lmo_norm")),
        le(step, LONGEST),
    ),
)
EXPECTED_ERROR = (
    *decayed(delay.STEPS[2:], {"lemma": BIAS}),
    *momentum_error.RECURSION,
    *decayed(momentum_error.CHANGE[2:]),
    *decayed(momentum_error.STEPS[len(momentum_error.RECURSION) + len(momentum_error.CHANGE) :], {"lemma": ERROR}),
    *decayed(delayed.EXPECTED_ERROR[: len(noise.STEPS) + 2]),
)
DECREASE = (
    *descent.AFTER_LENGTH[:2],
    Step(
        "curvature",
        ("integral over the segment", "a step is at most eta"),
        le(mean, SQUARE),
    ),
    Step(
        "gradient along the step",
        (axiom("decayed_step"),),
        eq(along_step, -b * along_x - eta * along_d),
        InnerWith("grad", vector="step"),
    ),
    *descent.AFTER_LENGTH[3:4],
    *descent.AFTER_LENGTH[5:],
    Step(
        "gradient along the minimiser",
        (definition("error"),),
        eq(along_star, m_star - e_star),
        InnerWith("minimiser", vector="grad"),
    ),
    Step(
        "momentum along the minimiser",
        (axiom("duality_below", "momentum", "minimiser"), axiom("minimiser_in_the_ball")),
        le(-m_star, eta / b * M),
    ),
    Step(
        "error along the minimiser",
        (axiom("duality", "error", "minimiser"), axiom("minimiser_in_the_ball")),
        le(e_star, r * eta / b * E),
    ),
    Step(
        "towards the minimiser",
        (
            "gradient along the step",
            axiom("star_convex"),
            "gradient along the minimiser",
            "momentum along the minimiser",
            "error along the minimiser",
            "progress along the direction",
        ),
        with_terms(along_step, decrease=-b * (f_now - f_star), error=COUNTED * E),
    ),
    Step(
        "decrease",
        (axiom("objective_along_any_step"), "curvature", "towards the minimiser"),
        with_terms(f_next, objective=f_now, decrease=-b * (f_now - f_star), error=COUNTED * E, step=SQUARE),
    ),
    Step(
        "expected decrease",
        ("decrease",),
        with_terms(E_next, objective=E_now, decrease=-b * (E_now - f_star), error=COUNTED * E_error, step=SQUARE),
        Expected(),
    ),
)
EACH = {"step": SQUARE, **{name: COUNTED * term for name, term in ERRORS.items()}}
CONTRACTING = (
    Step(
        "contraction",
        ("expected decrease", "expected error, limits", definition("excess"), definition("excess after the step")),
        with_terms(after, initial=p * now, **EACH, start=COUNTED * q ** (k + 1) * E0),
    ),
    Step(
        "first contraction",
        ("contraction", definition("first excess")),
        with_terms(after, initial=p * Delta0, **EACH, start=COUNTED * q ** (k + 1) * E0),
    ),
    Step(
        "excess unrolled",
        ("first contraction", "contraction"),
        with_terms(
            after,
            initial=p ** (k + 1) * Delta0,
            **{name: term * (1 - p ** (k + 1)) / b for name, term in EACH.items()},
            start=COUNTED * E0 * q * GeometricSum(p, q, k + 1),
        ),
        Induction({"excess_now": "excess_next"}, ("first contraction",), axioms=("weight-decay",)),
    ),
    Step(
        "theorem",
        ("excess unrolled",),
        statement(star_convex.FINITE, last),
        Instance("after the last step"),
    ),
)

FINITE = Proof(star_convex.FINITE, (*BALL, *EXPECTED_ERROR, *DECREASE, *CONTRACTING), last)
PROOF = Proof(star_convex.BOUND, (Step("theorem", (FINITE,), statement(star_convex.BOUND, last)),), last)
