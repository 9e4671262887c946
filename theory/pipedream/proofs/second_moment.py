"""Proof of A with delays independent of the draws: E|w_j|, then E|w_j|^2, w_j the updates in all windows."""

from __future__ import annotations

from sympy import sqrt

from theory.pipedream import second_moment
from theory.pipedream.parts import B, S, delta_max, gamma
from theory.pipedream.proofs import average
from theory.pipedream.proofs.common import MOMENT, averaged
from theory.proof import (
    Expected,
    Induction,
    Instance,
    NormOf,
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

norm, before, one, E_norm, E_before, E_one = symbols(
    "walk_window_norm walk_window_norm_before walk_update_norm "
    "E_walk_window_norm E_walk_window_norm_before E_walk_update_norm"
)
square, square_before, one_square, inner = symbols(
    "walk_window_square walk_window_square_before walk_update_square walk_inner"
)
E_square, E_square_before, E_one_square, E_inner = symbols(
    "E_walk_window_square E_walk_window_square_before E_walk_update_square E_walk_inner"
)
mean, E_mean, mean_norm = symbols("walk_inner_mean E_walk_inner_mean walk_mean_norm")
j, j_before, apart, E_apart, mean_apart, left = symbols(
    "j j_before apart_square E_apart_square mean_apart_square mean_grad_square"
)
NEW = 2 * (j - 1) * B**2 / (S * sqrt(S))

COMMON = (
    Step("no update", (definition("empty walk"),), le(norm, 0 * one), NormOf(), mutant=le(norm, -one)),
    Step("no update, expected", ("no update",), le(E_norm, 0 * B), Expected(), mutant=le(E_norm, -B)),
    Step(
        "one update more",
        (definition("walk of updates"),),
        le(norm, before + one),
        NormOf(),
        mutant=le(norm, before + one * 19 / 20),
    ),
    Step(
        "one update more, expected",
        ("one update more",),
        le(E_norm, E_before + E_one),
        Expected(),
        mutant=le(E_norm, E_before + E_one * 19 / 20),
    ),
    Step(
        "square of an update",
        (axiom("part_of_an_update"), axiom("drawn_square"), axiom("second_moment")),
        le(E_one_square, B**2 / S),
        mutant=le(E_one_square, B**2 / S * 19 / 20),
    ),
    Step(
        "norm of the mean",
        (axiom("norm_of_the_whole_mean"), axiom("second_moment_at_a_point")),
        le(mean_norm, B),
        mutant=le(mean_norm, B * 19 / 20),
    ),
    Step(
        "along the mean",
        (axiom("walk_along_the_mean"), "norm of the mean"),
        le(mean, B * before),
        mutant=le(mean, B * before * 19 / 20),
    ),
    Step(
        "along the mean, expected", ("along the mean",), le(E_mean, B * E_before), Expected(), mutant=le(E_mean, 0 * B)
    ),
    Step("no square", (definition("empty walk"),), eq(square, 0 * B), SquareOf(), mutant=eq(square, B**2)),
    Step("no square, expected", ("no square",), eq(E_square, 0 * B), Expected(), mutant=eq(E_square, B**2)),
    Step(
        "square of one more",
        (definition("walk of updates"),),
        eq(square, square_before + 2 * inner + one_square),
        SquareOf(),
        mutant=eq(square, square_before + inner + one_square),
    ),
    Step(
        "square of one more, expected",
        ("square of one more",),
        eq(E_square, E_square_before + 2 * E_inner + E_one_square),
        Expected(),
        mutant=eq(E_square, E_square_before + E_inner + E_one_square),
    ),
    Step(
        "apart",
        (definition("apart"),),
        eq(apart, gamma**2 * square),
        SquareOf(),
        mutant=eq(apart, gamma**2 * square * 19 / 20),
    ),
    Step(
        "apart, expected",
        ("apart",),
        eq(E_apart, gamma**2 * E_square),
        Expected(),
        mutant=eq(E_apart, gamma**2 * E_square * 19 / 20),
    ),
)
PAIRS = (
    *COMMON,
    Step(
        "norm of an update",
        (axiom("mean_norm_of_an_update"), "square of an update"),
        le(E_one, B / sqrt(S)),
        mutant=le(E_one, B / sqrt(S) * 19 / 20),
    ),
    Step(
        "norm of j updates",
        ("no update, expected", "one update more, expected", "norm of an update"),
        le(E_norm, j * B / sqrt(S)),
        Induction(
            {"E_walk_window_norm_before": "E_walk_window_norm"},
            ("no update, expected",),
            ("E_walk_update_norm",),
            index="j",
            axioms=(),
        ),
        mutant=le(E_norm, j * B / sqrt(S) * 19 / 20),
    ),
    Step(
        "norm of the updates before",
        ("norm of j updates",),
        le(E_before, j_before * B / sqrt(S)),
        Instance("one update of the walk less"),
        mutant=le(E_before, j_before * B / sqrt(S) * 19 / 20),
    ),
    Step(
        "along a new update",
        (
            axiom("drawn_along_the_walk"),
            axiom("mean_along_the_walk"),
            "along the mean, expected",
            "norm of the updates before",
            definition("one less"),
        ),
        le(E_inner, NEW / 2),
        mutant=le(E_inner, NEW / 2 * 19 / 20),
    ),
    Step(
        "square of one more, in numbers",
        ("square of one more, expected", "along a new update", "square of an update"),
        with_terms(E_square, before=E_square_before, along=NEW, new=B**2 / S),
    ),
    Step(
        "square of j updates",
        ("no square, expected", "square of one more, in numbers"),
        with_terms(E_square, once=j * B**2 / S, pairs=j * (j - 1) * B**2 / (S * sqrt(S))),
        Induction(
            {"E_walk_window_square_before": "E_walk_window_square"}, ("no square, expected",), index="j", axioms=()
        ),
    ),
    Step(
        "apart, counted",
        ("apart, expected", "square of j updates", axiom("short_window")),
        with_terms(
            E_apart,
            windows=gamma**2 * B**2 * (delta_max / S + delta_max * (delta_max - 1) / (S * sqrt(S))),
        ),
    ),
    Step(
        "apart, averaged",
        ("apart, counted",),
        with_terms(
            mean_apart,
            windows=gamma**2 * B**2 * (delta_max / S + delta_max * (delta_max - 1) / (S * sqrt(S))),
        ),
        averaged("block-sgd"),
    ),
    *MOMENT,
    Step(
        "theorem",
        (average.PROOF, "apart, averaged", "second moment of a run"),
        statement(second_moment.INDEPENDENT, left),
    ),
)

PROOF = Proof(second_moment.INDEPENDENT, PAIRS, left)
