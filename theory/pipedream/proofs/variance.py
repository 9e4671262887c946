"""Proof of D, for every split and for theta = 1."""

from __future__ import annotations

from theory.bound import Bound
from theory.pipedream import steps, variance
from theory.pipedream.parts import S, delta_max, gamma, sigma, theta
from theory.pipedream.proofs import average, split
from theory.pipedream.proofs.common import APART, VARIANCE, averaged, condition
from theory.proof import (
    Expected,
    Fact,
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
from theory.sum_rules import Summed

block_apart, drift_squares, rest = symbols("block_apart_square block_drift_squares block_martingale_square")
E_block_apart, E_drift_squares, E_rest, E_rest_squares = symbols(
    "E_block_apart_square E_block_drift_squares E_block_martingale_square E_block_martingale_squares"
)
apart, drifts, rests = symbols("E_apart_square E_drift_squares E_martingale_squares")
mean_apart, mean_drifts, mean_rests, mean_taken, mean_expected, mean_difference, left = symbols(
    "mean_apart_square mean_drift_squares mean_martingale_squares mean_taken_square mean_expected_square "
    "mean_martingale_square mean_grad_square"
)
difference, update, along, taken = symbols("martingale_square update_square inner_update_taken taken_square")
E_difference, E_update, E_along, E_taken, E_expected = symbols(
    "E_martingale_square E_update_square E_inner_update_taken E_taken_square E_expected_square"
)
D, M = 1 + theta, 1 + 1 / theta
STEP_SQUARE = (E_taken + sigma**2) / S - E_taken / S**2
RUN_SQUARE = (mean_taken + sigma**2) / S - mean_taken / S**2

STEPS = (
    *split.YOUNG,
    *split.orthogonal("rest_is_orthogonal"),
    split.by_squares(),
    APART,
    Step(
        "block apart, split",
        ("block apart", "split", axiom("drift_norm_square"), "drift by squares", axiom("short_window")),
        with_terms(block_apart, drift=gamma**2 * D * delta_max * drift_squares, martingale=gamma**2 * M * rest),
    ),
    Step(
        "block apart, expected",
        ("block apart, split",),
        with_terms(E_block_apart, drift=gamma**2 * D * delta_max * E_drift_squares, martingale=gamma**2 * M * E_rest),
        Expected(),
    ),
    Step(
        "block apart, by squares",
        ("block apart, expected", "rest by squares"),
        with_terms(
            E_block_apart, drift=gamma**2 * D * delta_max * E_drift_squares, martingale=gamma**2 * M * E_rest_squares
        ),
    ),
    Step(
        "apart",
        ("block apart, by squares",),
        with_terms(apart, drift=gamma**2 * D * delta_max * drifts, martingale=gamma**2 * M * rests),
        Summed(
            wholes={
                "E_block_apart_square": "E_apart_square",
                "E_block_drift_squares": "E_drift_squares",
                "E_block_martingale_squares": "E_martingale_squares",
            }
        ),
    ),
    Step(
        "apart, averaged",
        ("apart",),
        with_terms(mean_apart, drift=gamma**2 * D * delta_max * mean_drifts, martingale=gamma**2 * M * mean_rests),
        averaged("block-sgd"),
    ),
    Step(
        "square of a mean",
        (axiom("drawn_mean"),),
        eq(mean_expected, mean_taken / S**2),
        averaged("block-sgd"),
        mutant=eq(mean_expected, mean_taken / S**2 * 19 / 20),
    ),
    Step(
        "square of a difference",
        (definition("difference"),),
        eq(difference, update - 2 * along / S + taken / S**2),
        SquareOf(),
        mutant=eq(difference, update - along / S + taken / S**2),
    ),
    Step(
        "square of a difference, expected",
        ("square of a difference",),
        eq(E_difference, E_update - 2 * E_along / S + E_taken / S**2),
        Expected(),
        mutant=eq(E_difference, E_update - E_along / S + E_taken / S**2),
    ),
    VARIANCE[0],
    Step(
        "difference of one step",
        (
            "square of a difference, expected",
            axiom("drawn_along_the_mean"),
            axiom("sample_along_its_mean"),
            "second moment of one step",
        ),
        le(E_difference, STEP_SQUARE),
        mutant=le(E_difference, STEP_SQUARE - sigma**2 / S / 20),
    ),
    Step(
        "difference of a run",
        ("difference of one step",),
        le(mean_difference, RUN_SQUARE),
        averaged("block-sgd"),
        mutant=le(mean_difference, RUN_SQUARE - sigma**2 / S / 20),
    ),
    Step(
        "lemma",
        (
            "apart, averaged",
            axiom("overlap", "drift_squares", "expected_square", "delta_max"),
            "square of a mean",
            axiom("overlap", "martingale_squares", "martingale_square", "delta_max"),
            "difference of a run",
        ),
        statement(steps.WINDOWS_SPLIT),
    ),
)
WINDOWS = Proof(steps.WINDOWS_SPLIT, STEPS)


def _proof(theorem: Bound, *more: Fact) -> Proof:
    end: tuple[Fact | str | Proof, ...] = (
        average.PROOF,
        WINDOWS,
        "second moment of a run",
        condition(theorem),
        *more,
    )
    return Proof(theorem, (*VARIANCE, Step("theorem", end, statement(theorem, left))), left)


SPLIT = _proof(variance.SPLIT)
PROOF = _proof(variance.BOUND, definition("equal split"))
