"""Proof of Lemma A, at x and at the virtual iterate y: one step descends up to the error of its momentum."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
import theory.lmo.error_feedback_axioms  # noqa: F401  (at y)
from theory.inequality import Inequality
from theory.lmo import descent, error_feedback_path
from theory.proof import (
    InnerWith,
    Integrated,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    vectors,
    with_terms,
)

f_now, f_next, eta, L = symbols("f_now f_next eta L")
G, M, E, D = symbols("grad_norm momentum_norm error_norm direction_norm")
gd, md, ed = symbols("inner_grad inner_momentum inner_error")
r, mean, step, t = symbols("segment_inner segment_mean step_norm t")
v_step, v_direction = vectors("step direction")

LENGTH = Step(
    "length of the step",
    (definition("step"),),
    eq(step, eta * D),
    NormOf(),
)

VIRTUAL = Step(
    "step of the virtual iterate",
    (axiom("error_feedback"), definition("virtual step")),
    eq(v_step, -eta * v_direction),
)
LENGTH_AT_Y = Step(
    "length of the step",
    ("step of the virtual iterate",),
    eq(step, eta * D),
    NormOf(),
)

AFTER_LENGTH = (
    Step(
        "change along the segment",
        (axiom("duality_on_segment"), axiom("smoothness_on_segment")),
        le(r, L * t * step**2),
    ),
    Step(
        "integral over the segment",
        ("change along the segment",),
        le(mean, L * step**2 / 2),
        Integrated("segment_inner", "segment_mean"),
    ),
    Step(
        "descent along the direction",
        (axiom("objective_along_step"), "integral over the segment", "length of the step", axiom("lmo_norm")),
        with_terms(f_next, objective=f_now, along=-eta * gd, curvature=L * eta**2 / 2),
    ),
    Step(
        "gradient along the direction",
        (definition("error"),),
        eq(gd, md - ed),
        InnerWith("direction", vector="grad"),
    ),
    Step(
        "momentum against gradient",
        (definition("error"),),
        le(G, M + E),
        NormOf(vector="grad"),
    ),
    Step(
        "error along the direction",
        (axiom("duality", "error", "direction"), axiom("lmo_norm")),
        le(ed, E),
    ),
    Step(
        "progress along the direction",
        ("gradient along the direction", axiom("lmo_value"), "error along the direction"),
        le(M - E, gd),
    ),
)


STEPS = (LENGTH, *AFTER_LENGTH)
STEPS_AT_Y = (VIRTUAL, LENGTH_AT_Y, *AFTER_LENGTH)


def last(theorem: Inequality) -> Step:
    """The lemma from the two halves of its proof."""
    premises = ("descent along the direction", "progress along the direction", "momentum against gradient")
    return Step("lemma", premises, statement(theorem))


PROOF = Proof(descent.INEQUALITY, (*STEPS, last(descent.INEQUALITY)))
PROOF_AT_Y = Proof(error_feedback_path.DESCENT, (*STEPS_AT_Y, last(error_feedback_path.DESCENT)))
