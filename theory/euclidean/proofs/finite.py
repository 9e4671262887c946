"""Proof for delayed gradient descent with its start counted: squares as the smallest one and what is above it."""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer, Min, Rational

import theory.euclidean.axioms  # noqa: F401  (registers the schemas)
from theory.euclidean import delayed_gd
from theory.euclidean.delayed_gd import WINDOWS, h
from theory.pipedream.parts import Delta0, K, L, gamma
from theory.pipedream.proofs import descent, window
from theory.pipedream.proofs.common import APART, condition
from theory.proof import (
    Expected,
    Instance,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    ge,
    split_run,
    split_sum,
    statement,
    symbols,
    with_terms,
)
from theory.replica_rules import Totalled

k, tau, T, j, least, length, total_length, weight = symbols(
    "k tau steps j least_square length_square total_length_square finite_weight"
)
block_apart, block_squares, block_excess, apart, excess, E_apart, E_excess = symbols(
    "block_apart_square block_window_squares block_window_excess apart_square window_excess E_apart_square "
    "E_window_excess"
)
total_apart, total_windows, total_excess, total_taken, total_grad, E_taken, E_update_excess = symbols(
    "total_apart_square total_window_excess total_update_excess total_taken_square total_grad_square E_taken_square "
    "E_update_excess"
)
now, following, first, end, f_star, E_grad, infimum = symbols(
    "E_f_now E_f_next E_f_first E_f_end f_star E_grad_square f_infimum"
)
HALF = Rational(1, 2) * gamma
SUM = WINDOWS.subs(K, T + 1)


def summed(*names: str, telescoping: bool = False) -> Totalled:
    """The sum over the T steps of a run."""
    means = {name: f"total_{name.removeprefix('E_')}" for name in names}
    ends = (("E_f_now", "E_f_next", "E_f_first", "E_f_end"),) if telescoping else ()
    return Totalled(means, ends, axioms=("delayed-gd", "finite-sum"))


WINDOW = (
    APART,
    Step(
        "block apart by squares",
        ("block apart", axiom("block_norm_square"), window.PROOF),
        with_terms(block_apart, squares=gamma**2 * j * block_squares),
    ),
    Step(
        "block apart above the least",
        ("block apart by squares", axiom("excess_of_a_window")),
        with_terms(block_apart, least=gamma**2 * j**2 * least, excess=gamma**2 * j * block_excess),
    ),
    Step(
        "block apart by its length",
        ("block apart above the least", axiom("length_of_a_window"), definition("squared length")),
        with_terms(block_apart, least=gamma**2 * length * least, excess=gamma**2 * tau * block_excess),
    ),
    Step(
        "apart by its length",
        ("block apart by its length",),
        with_terms(apart, least=gamma**2 * length * least, excess=gamma**2 * tau * excess),
        Instance("the only block"),
    ),
    Step(
        "apart by its length, expected",
        ("apart by its length",),
        with_terms(E_apart, least=gamma**2 * length * least, excess=gamma**2 * tau * E_excess),
        Expected(),
    ),
    Step(
        "apart, summed",
        ("apart by its length, expected",),
        with_terms(total_apart, least=gamma**2 * total_length * least, excess=gamma**2 * tau * total_windows),
        summed("E_apart_square", "E_window_excess", "length_square"),
    ),
    Step(
        "apart by the excess",
        ("apart, summed", axiom("overlap_of_the_excess")),
        with_terms(total_apart, least=gamma**2 * total_length * least, excess=gamma**2 * tau**2 * total_excess),
    ),
)
SQUARES = (
    Step(
        "old gradients",
        (axiom("excess_of_an_update"), axiom("exact_square")),
        eq(E_taken, least + E_update_excess),
    ),
    Step(
        "old gradients, summed",
        ("old gradients",),
        eq(total_taken, least * T + total_excess),
        summed("E_taken_square", "E_update_excess"),
    ),
    Step(
        "gradients, summed",
        (axiom("least_of_an_iterate"),),
        with_terms(least * T, gradients=total_grad),
        summed("E_grad_square"),
    ),
)
LENGTHS = (
    Step(
        "lengths",
        (definition("squared length"),),
        eq(total_length, SUM),
        replace(summed("length_square"), sums={Min(k, tau) ** 2: SUM}, cases=split_sum()),
        mutant=eq(total_length, SUM * 19 / 20),
    ),
    Step(
        "lengths are at most tau",
        (definition("squared length"),),
        with_terms(length, longest=tau**2),
    ),
    Step(
        "lengths are at most tau, summed",
        ("lengths are at most tau",),
        with_terms(total_length, longest=tau**2 * T),
        summed("length_square"),
    ),
)
RUN_LENGTHS = Step(
    "lengths of the run",
    ("lengths", axiom("up_to_the_last_iterate")),
    eq(total_length, WINDOWS),
    mutant=eq(total_length, WINDOWS * 19 / 20),
    cases=split_run(),
)
END = (
    Step(
        "gap at an iterate",
        (axiom("gradient_by_the_infimum"), axiom("infimum_above"), axiom("least_of_an_iterate")),
        with_terms(least, gap=2 * L * (now - f_star)),
    ),
    Step(
        "gap at the last iterate",
        ("gap at an iterate",),
        with_terms(least, gap=2 * L * (end - f_star)),
        Instance("the last iterate"),
    ),
)
STEPS = (
    *WINDOW,
    *SQUARES,
    *LENGTHS,
    *END,
    Step(
        "one step",
        (descent.EXACT_PROOF, axiom("exact_square")),
        with_terms(
            following,
            objective=now,
            gradient=-HALF * E_grad,
            taken=-HALF * (1 - h) * E_taken,
            apart=HALF * L**2 * E_apart,
        ),
    ),
    Step(
        "all steps",
        ("one step",),
        with_terms(
            end,
            objective=first,
            gradient=-HALF * total_grad,
            taken=-HALF * (1 - h) * total_taken,
            apart=HALF * L**2 * total_apart,
        ),
        summed("E_grad_square", "E_taken_square", "E_apart_square", telescoping=True),
    ),
    Step(
        "fall in squares",
        ("all steps", "gradients, summed", "old gradients, summed", "apart by the excess"),
        with_terms(
            end,
            objective=first,
            least=-HALF * least * (T * (2 - h) - h**2 * total_length),
            excess=-HALF * (1 - h - tau**2 * h**2) * total_excess,
        ),
    ),
    Step(
        "fall",
        ("fall in squares", condition(delayed_gd.FINITE)),
        with_terms(end, objective=first, least=-HALF * least * (T * (2 - h) - h**2 * total_length)),
    ),
    Step(
        "least counted",
        ("fall", "gap at the last iterate", definition("first gap")),
        with_terms(least * (1 + h * (T * (2 - h) - h**2 * total_length)), gap=2 * L * Delta0),
    ),
    RUN_LENGTHS,
    Step(
        "weight",
        ("lengths of the run", axiom("up_to_the_last_iterate"), definition("finite weight")),
        eq(weight, 1 + h * (T * (2 - h) - h**2 * total_length)),
    ),
    Step(
        "weight is positive",
        ("weight", "lengths are at most tau, summed", condition(delayed_gd.FINITE)),
        ge(weight, Integer(1)),
        mutant=ge(weight, Rational(21, 20)),
    ),
    Step(
        "least by its weight",
        ("least counted", "weight"),
        with_terms(least * weight, gap=2 * L * Delta0),
    ),
    Step(
        "theorem",
        ("least by its weight", "weight is positive", definition("finite weight")),
        statement(delayed_gd.FINITE, least),
    ),
)

PROOF = Proof(delayed_gd.FINITE, STEPS, least)
