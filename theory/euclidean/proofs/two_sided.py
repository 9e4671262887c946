"""Proof of the two-sided bound: both inequalities of neighbours, the squares as the smallest and what is above it."""

from __future__ import annotations

from sympy import Integer, Rational

import theory.euclidean.two_sided_axioms  # noqa: F401  (registers the schemas)
from theory.euclidean import delayed_gd_two_sided
from theory.euclidean.proofs import finite
from theory.euclidean.proofs.finite import summed
from theory.pipedream.parts import Delta0, L, gamma
from theory.pipedream.proofs.common import condition
from theory.pipedream.proofs.descent import ALONG, POLAR
from theory.proof import (
    Expected,
    InnerWith,
    Proof,
    SquareOf,
    Step,
    axiom,
    definition,
    eq,
    ge,
    le,
    statement,
    symbols,
    with_terms,
)
from theory.splits import split_delay
from theory.unfolding import Unfolded

BOUND = delayed_gd_two_sided.BOUND
tau, T, least, h, share, bend, weight, length, total_length = symbols(
    "tau steps least_square relative_step share bend two_sided_weight length_square total_length_square"
)
change, following, next_apart, inner, move, update = symbols(
    "change_square next_change_square next_apart_square inner_changes move_square update_square"
)
along, next_along, inner_update, next_update, now, after, next_grad, taken, next_taken = symbols(
    "inner_grad_move inner_next_move inner_update inner_next_update f_now f_next next_grad_square taken_square "
    "inner_next_taken"
)
E_change, E_following, E_next_apart, E_now, E_after, E_grad, E_next, E_taken, E_next_taken = symbols(
    "E_change_square E_next_change_square E_next_apart_square E_f_now E_f_next E_grad_square E_next_grad_square "
    "E_taken_square E_inner_next_taken"
)
E_inner_update, E_next_update, E_update, excess, total_apart = symbols(
    "E_inner_update E_inner_next_update E_update_square window_excess total_apart_square"
)
first, end, total_grad, total_next, total_taken, total_change, total_excess = symbols(
    "E_f_first E_f_end total_grad_square total_next_grad_square total_taken_square total_change_square "
    "total_update_excess"
)
FALL = 4 * L * (first - end)
MOVE = next(step for step in ALONG if step.name == "square of the step")

MULTIPLIERS = (
    Step(
        "share is at least 1",
        (definition("share"),),
        ge(share, Integer(1)),
        mutant=ge(share, Rational(21, 20)),
    ),
    Step(
        "share is at least the step",
        (definition("share"), definition("relative step")),
        with_terms(h, share=share),
    ),
    Step(
        "bend where there is a delay",
        (definition("bend"), definition("share"), definition("relative step")),
        eq(tau * (bend - 1) * (share - h), tau * share),
        cases=split_delay(),
    ),
    Step(
        "bend and step",
        (
            "bend where there is a delay",
            definition("share"),
            definition("relative step"),
            condition(BOUND),
        ),
        le(share * h + h**2 * tau**2 * bend, Integer(2)),
        mutant=le(share * h + h**2 * tau**2 * bend, Rational(19, 10)),
    ),
)
#: |grad f(x_{k+1}) - grad f(z_k)|^2, from both changes on the way.
BENT = (
    Step(
        "next apart",
        (definition("next apart by way of the iterate"),),
        eq(next_apart, change + following + 2 * inner),
        SquareOf(),
        mutant=eq(next_apart, change + following + inner),
    ),
    Step(
        "change without delay",
        (axiom("smoothness_squared"), "apart by its length", "lengths are at most tau"),
        with_terms(change, apart=L**2 * gamma**2 * tau * (tau * least + excess)),
    ),
    Step(
        "bend of the change",
        ("bend where there is a delay", "change without delay"),
        with_terms(share * change, bend=(bend - 1) * (share - h) * change),
    ),
    Step(
        "next apart by both",
        (
            "next apart",
            "bend of the change",
            axiom("along_the_next_change"),
            "share is at least the step",
        ),
        with_terms(h * next_apart, following=share * following, change=h * (bend - 1) * change),
    ),
    Step(
        "next apart, expected",
        ("next apart by both",),
        with_terms(h * E_next_apart, following=share * E_following, change=h * (bend - 1) * E_change),
        Expected(),
    ),
)
#: One step: both inequalities, in squares.
NEIGHBOURS = (
    Step(
        "along the step",
        (definition("sgd move"),),
        eq(along, -gamma * inner_update),
        InnerWith("sgd_grad"),
        mutant=eq(along, -gamma * inner_update * 19 / 20),
    ),
    Step(
        "next along the step",
        (definition("sgd move"),),
        eq(next_along, -gamma * next_update),
        InnerWith("next_grad"),
        mutant=eq(next_along, -gamma * next_update * 19 / 20),
    ),
    Step(
        "both neighbours",
        (axiom("interpolation_forwards"), axiom("interpolation_backwards"), "share is at least 1"),
        with_terms(
            share * following,
            fall=4 * L * (now - after),
            along=2 * L * (along + next_along),
            move=share * L**2 * move,
        ),
    ),
    Step(
        "both neighbours by the update",
        ("both neighbours", "along the step", "next along the step", "square of the step", definition("relative step")),
        with_terms(
            share * following,
            fall=4 * L * (now - after),
            along=-2 * h * (inner_update + next_update),
            update=share * h**2 * update,
        ),
    ),
    Step(
        "both neighbours, expected",
        ("both neighbours by the update",),
        with_terms(
            share * E_following,
            fall=4 * L * (E_now - E_after),
            along=-2 * h * (E_inner_update + E_next_update),
            update=share * h**2 * E_update,
        ),
        Expected(),
    ),
    POLAR[0],
    POLAR[1],
    Step(
        "square of the next apart",
        (definition("next apart"),),
        eq(next_apart, next_grad + taken - 2 * next_taken),
        SquareOf(),
        mutant=eq(next_apart, next_grad + taken - next_taken),
    ),
    Step(
        "square of the next apart, expected",
        ("square of the next apart",),
        eq(E_next_apart, E_next + E_taken - 2 * E_next_taken),
        Expected(),
        mutant=eq(E_next_apart, E_next + E_taken - E_next_taken),
    ),
    Step(
        "both neighbours in squares",
        (
            "both neighbours, expected",
            axiom("exact_inner"),
            axiom("exact_inner_next"),
            axiom("exact_square"),
            "square of the change, expected",
            "square of the next apart, expected",
        ),
        with_terms(
            share * E_following,
            fall=4 * L * (E_now - E_after),
            gradients=-h * (E_grad + E_next),
            old=-(2 * h - share * h**2) * E_taken,
            change=h * E_change,
            next_apart=h * E_next_apart,
        ),
    ),
    Step(
        "one step",
        ("both neighbours in squares", "next apart, expected"),
        with_terms(
            h * (E_grad + E_next),
            fall=4 * L * (E_now - E_after),
            old=-(2 * h - share * h**2) * E_taken,
            change=h * bend * E_change,
        ),
    ),
    Step(
        "all steps",
        ("one step",),
        with_terms(
            h * (total_grad + total_next),
            fall=FALL,
            old=-(2 * h - share * h**2) * total_taken,
            change=h * bend * total_change,
        ),
        summed("E_grad_square", "E_next_grad_square", "E_taken_square", "E_change_square", telescoping=True),
    ),
)
CHANGES = (
    POLAR[2],
    Step(
        "changes, summed",
        ("change by the distance",),
        with_terms(total_change, apart=L**2 * total_apart),
        summed("E_change_square", "E_apart_square"),
    ),
    Step(
        "changes by the excess",
        ("changes, summed", "apart by the excess", definition("relative step")),
        with_terms(total_change, least=h**2 * total_length * least, excess=h**2 * tau**2 * total_excess),
    ),
)
RUN = (
    Step(
        "fall in squares",
        (
            "all steps",
            "gradients, summed",
            axiom("least_of_the_next"),
            "old gradients, summed",
            "changes by the excess",
        ),
        with_terms(
            least * (4 * T * h - T * share * h**2 - h**3 * bend * total_length),
            fall=FALL,
            excess=-h * (2 - share * h - h**2 * tau**2 * bend) * total_excess,
        ),
    ),
    Step(
        "fall",
        ("fall in squares", "bend and step"),
        with_terms(least * (4 * T * h - T * share * h**2 - h**3 * bend * total_length), fall=FALL),
    ),
    Step(
        "weight",
        (
            "lengths of the run",
            axiom("up_to_the_last_iterate"),
            definition("two-sided weight"),
            definition("relative step"),
            definition("share"),
            definition("bend"),
        ),
        eq(weight, Rational(1, 2) + T * (h - share * h**2 / 4) - h**3 * bend * total_length / 4),
    ),
    Step(
        "weight is positive",
        ("weight", "lengths are at most tau, summed", "bend and step"),
        ge(weight, Rational(1, 2)),
        mutant=ge(weight, Rational(21, 40)),
    ),
    Step(
        "least by its weight",
        ("fall", "gap at the last iterate", definition("first gap"), "weight"),
        with_terms(least * weight, gap=L * Delta0),
    ),
    Step(
        "theorem",
        ("weight is positive", "least by its weight"),
        statement(BOUND, least),
        Unfolded(name="two-sided weight"),
    ),
)
STEPS = (
    *MULTIPLIERS,
    *finite.WINDOW,
    *finite.SQUARES,
    *finite.LENGTHS,
    finite.RUN_LENGTHS,
    *finite.END,
    MOVE,
    *BENT,
    *NEIGHBOURS,
    *CHANGES,
    *RUN,
)

PROOF = Proof(BOUND, STEPS, least)
