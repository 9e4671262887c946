"""Proof of the descent step: smoothness, the mean of the update, and 2<u, v> = |u|^2 + |v|^2 - |u - v|^2."""

from __future__ import annotations

import theory.pipedream.axioms  # noqa: F401  (registers the schemas)
from theory.inequality import Inequality
from theory.pipedream import steps
from theory.pipedream.parts import L, S, gamma
from theory.proof import (
    Expected,
    Integrated,
    Proof,
    SquareOf,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    with_terms,
)

f_now, f_next, inner, update, move = symbols("f_now f_next inner_update update_square move_square")
E_now, E_next, E_inner, E_update = symbols("E_f_now E_f_next E_inner_update E_update_square")
r, mean, length, t = symbols("segment_inner segment_mean step_norm t")
grad, taken, change, apart, both = symbols("grad_square taken_square change_square apart_square inner_taken")
E_grad, E_taken, E_change, E_apart, E_both = symbols(
    "E_grad_square E_taken_square E_change_square E_apart_square E_inner_taken"
)

ALONG = (
    Step(
        "change along the segment",
        (axiom("cauchy_schwarz_on_segment"), axiom("smoothness_on_segment")),
        le(r, L * t * length**2),
        mutant=le(r, L * t * length**2 * 19 / 20),
    ),
    Step(
        "integral over the segment",
        ("change along the segment",),
        le(mean, L * length**2 / 2),
        Integrated("segment_inner", "segment_mean"),
        mutant=le(mean, L * length**2 * 19 / 40),
    ),
    Step(
        "square of the step",
        (definition("sgd move"),),
        eq(move, gamma**2 * update),
        SquareOf(),
        mutant=eq(move, gamma**2 * update * 19 / 20),
    ),
    Step(
        "along the update",
        (
            axiom("objective_along_update"),
            "integral over the segment",
            axiom("square_of_the_step"),
            "square of the step",
        ),
        with_terms(f_next, objective=f_now, along=-gamma * inner, curvature=L * gamma**2 * update / 2),
    ),
    Step(
        "along the update, expected",
        ("along the update",),
        with_terms(E_next, objective=E_now, along=-gamma * E_inner, curvature=L * gamma**2 * E_update / 2),
        Expected(),
    ),
)
POLAR = (
    Step(
        "square of the change",
        (definition("sgd change"),),
        eq(change, grad + taken - 2 * both),
        SquareOf(),
        mutant=eq(change, grad + taken - 2 * both * 19 / 20),
    ),
    Step(
        "square of the change, expected",
        ("square of the change",),
        eq(E_change, E_grad + E_taken - 2 * E_both),
        Expected(),
        mutant=eq(E_change, E_grad + E_taken - 2 * E_both * 19 / 20),
    ),
    Step(
        "change by the distance",
        (axiom("smoothness_squared"),),
        le(E_change, L**2 * E_apart),
        Expected(),
        mutant=le(E_change, L**2 * E_apart * 19 / 20),
    ),
)
DRAWN = Step(
    "mean of the update",
    (axiom("drawn_inner"), axiom("mean_of_the_gradient")),
    eq(E_inner, E_both / S),
    mutant=eq(E_inner, E_both / S * 19 / 20),
)
ALL = Step(
    "mean of the update",
    (axiom("all_inner"), axiom("mean_of_the_gradient")),
    eq(E_inner, E_both),
    mutant=eq(E_inner, E_both * 19 / 20),
)
EXACT = Step("mean of the update", (axiom("exact_inner"),), eq(E_inner, E_both), mutant=eq(E_inner, E_both * 19 / 20))
LEMMA = ("along the update, expected", "mean of the update", "square of the change, expected", "change by the distance")


def _proof(theorem: Inequality, mean_step: Step) -> Proof:
    return Proof(theorem, (*ALONG, *POLAR, mean_step, Step("lemma", LEMMA, statement(theorem))))


PROOF = _proof(steps.DESCENT, DRAWN)
FULL = _proof(steps.FULL_DESCENT, ALL)
EXACT_PROOF = _proof(steps.EXACT_DESCENT, EXACT)
