"""Proof of B: two inductions over a window of one block, first E|w| <= j G/S, then E|w|^2; the blocks added up."""

from __future__ import annotations

from theory.pipedream import blocks, steps
from theory.pipedream.parts import G, S, delta_max, gamma
from theory.pipedream.proofs import average, window
from theory.pipedream.proofs.common import APART, BLOCK, averaged
from theory.proof import (
    Expected,
    Induction,
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
from theory.rules import Instance
from theory.sum_rules import Summed

norm, before, one = symbols("E_block_window_norm E_block_window_norm_before E_block_update_norm")
square, square_before, one_square, inner = symbols(
    "block_window_square block_window_square_before block_update_square block_inner"
)
E_square, E_square_before, E_one, E_inner, E_mean = symbols(
    "E_block_window_square E_block_window_square_before E_block_update_square E_block_inner E_block_inner_mean"
)
mean, mean_norm, norm_before = symbols("block_inner_mean block_mean_norm block_window_norm_before")
j, j_before, apart, mean_apart, block_apart, left = symbols(
    "j j_before E_apart_square mean_apart_square E_block_apart_square mean_grad_square"
)

NORMS = (
    *window.STEPS[:2],
    Step("no update, expected", ("no update",), le(norm, 0 * one), Expected(), mutant=le(norm, -G)),
    Step(
        "one update more, expected",
        ("one update more",),
        le(norm, before + one),
        Expected(),
        mutant=le(norm, before + one * 19 / 20),
    ),
    Step(
        "norm of an update",
        (axiom("drawn_block_norm"), axiom("mean_norm_of_a_block"), axiom("block_second_moment")),
        le(one, G / S),
        mutant=le(one, G / S * 19 / 20),
    ),
    Step(
        "norm of j updates",
        ("no update, expected", "one update more, expected", "norm of an update"),
        le(norm, j * G / S),
        Induction(
            {"E_block_window_norm_before": "E_block_window_norm"},
            ("no update, expected",),
            ("E_block_update_norm",),
            index="j",
            axioms=(),
        ),
        mutant=le(norm, j * G / S * 19 / 20),
    ),
    Step(
        "norm of the updates before",
        ("norm of j updates",),
        le(before, j_before * G / S),
        Instance("one update less"),
        mutant=le(before, j_before * G / S * 19 / 20),
    ),
)
INNER = (
    Step(
        "norm of the mean",
        (axiom("norm_of_the_mean"), axiom("block_second_moment_at_a_point")),
        le(mean_norm, G),
        mutant=le(mean_norm, G * 19 / 20),
    ),
    Step(
        "along the mean",
        (axiom("window_along_the_mean"), "norm of the mean"),
        le(mean, G * norm_before),
        mutant=le(mean, G * norm_before * 19 / 20),
    ),
    Step(
        "along the mean, expected",
        ("along the mean",),
        le(E_mean, G * before),
        Expected(),
        mutant=le(E_mean, G * before * 19 / 20),
    ),
    Step(
        "along a new update",
        (
            axiom("drawn_along_the_window"),
            axiom("mean_along_the_window"),
            "along the mean, expected",
            "norm of the updates before",
            definition("one less"),
        ),
        le(E_inner, (j - 1) * G**2 / S**2),
        mutant=le(E_inner, (j - 1) * G**2 / S**2 * 19 / 20),
    ),
)
SQUARES = (
    Step("no square", (definition("empty window"),), eq(square, 0 * G), SquareOf(), mutant=eq(square, G**2)),
    Step("no square, expected", ("no square",), eq(E_square, 0 * G), Expected(), mutant=eq(E_square, G**2)),
    Step(
        "square of one more",
        (definition("window"),),
        eq(square, square_before + 2 * inner + one_square),
        SquareOf(),
        mutant=eq(square, square_before + inner + one_square),
    ),
    Step(
        "square of one more, expected",
        ("square of one more",),
        eq(E_square, E_square_before + 2 * E_inner + E_one),
        Expected(),
        mutant=eq(E_square, E_square_before + E_inner + E_one),
    ),
    Step(
        "square of an update",
        (axiom("drawn_block_square"), axiom("block_second_moment")),
        le(E_one, G**2 / S),
        mutant=le(E_one, G**2 / S * 19 / 20),
    ),
    Step(
        "square of one more, in numbers",
        ("square of one more, expected", "along a new update", "square of an update"),
        with_terms(E_square, before=E_square_before, along=2 * (j - 1) * G**2 / S**2, new=G**2 / S),
    ),
    Step(
        "square of j updates",
        ("no square, expected", "square of one more, in numbers"),
        with_terms(E_square, twice=j**2 * G**2 / S**2, once=j * G**2 * (1 / S - 1 / S**2)),
        Induction(
            {"E_block_window_square_before": "E_block_window_square"}, ("no square, expected",), index="j", axioms=()
        ),
    ),
)
#: E||x_k - z_k||^2, at every step.
WINDOW_STEPS = (
    *NORMS,
    *INNER,
    *SQUARES,
    APART,
    Step(
        "block apart, expected",
        ("block apart",),
        eq(block_apart, gamma**2 * E_square),
        Expected(),
        mutant=eq(block_apart, gamma**2 * E_square * 19 / 20),
    ),
    Step(
        "block apart, counted",
        ("block apart, expected", "square of j updates", axiom("short_window")),
        with_terms(
            block_apart,
            twice=gamma**2 * G**2 * delta_max**2 / S**2,
            once=gamma**2 * G**2 * delta_max * (1 / S - 1 / S**2),
        ),
    ),
    Step(
        "lemma",
        ("block apart, counted",),
        statement(steps.WINDOWS_COUNTED),
        Summed(wholes={"E_block_apart_square": "E_apart_square"}),
    ),
)
WINDOWS = Proof(steps.WINDOWS_COUNTED, WINDOW_STEPS)

STEPS = (
    Step(
        "apart, averaged",
        (WINDOWS,),
        with_terms(mean_apart, windows=gamma**2 * G**2 * (delta_max**2 / S + delta_max * (1 - 1 / S))),
        averaged("block-sgd"),
    ),
    *BLOCK,
    Step("theorem", (average.PROOF, "apart, averaged", "second moment of a run"), statement(blocks.BOUND, left)),
)

PROOF = Proof(blocks.BOUND, STEPS, left)
