"""Proof of E: PipeDream's windows are fixed, their noise is orthogonal; three statements of one chain."""

from __future__ import annotations

from theory.bound import Bound
from theory.pipedream import exact, steps
from theory.pipedream.parts import gamma, sigma, theta
from theory.pipedream.proofs import average, split
from theory.pipedream.proofs.common import APART, averaged, condition
from theory.proof import (
    Expected,
    Fact,
    Induction,
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
from theory.sum_rules import Summed

block_apart, drift_squares, rest, variance, aged = symbols(
    "block_apart_square block_drift_squares block_martingale_square block_variance block_aged_variance"
)
E_block_apart, E_drift_squares, E_rest, E_before, E_one = symbols(
    "E_block_apart_square E_block_drift_squares E_block_martingale_square E_block_martingale_square_before "
    "E_block_difference_square"
)
apart, drifts, all_aged, j, age_max = symbols("E_apart_square E_drift_squares aged_variance j age_max")
mean_apart, mean_drifts, mean_taken, mean_expected, mean_update, left = symbols(
    "mean_apart_square mean_drift_squares mean_taken_square mean_expected_square mean_update_square mean_grad_square"
)
update, taken = symbols("E_update_square E_taken_square")
D, N = 1 + theta, 1 + 1 / theta

STEPS = (
    *split.YOUNG,
    *split.orthogonal("noise_is_orthogonal"),
    Step(
        "rest and one more, in numbers",
        ("orthogonal", axiom("variance_of_a_block")),
        with_terms(E_rest, before=E_before, new=variance),
    ),
    Step(
        "noise of j samples",
        ("no rest, expected", "rest and one more, in numbers"),
        le(E_rest, j * variance),
        Induction(
            {"E_block_martingale_square_before": "E_block_martingale_square"},
            ("no rest, expected",),
            index="j",
            axioms=(),
        ),
        mutant=le(E_rest, j * variance * 19 / 20),
    ),
    Step(
        "noise of a window",
        ("noise of j samples", axiom("age_of_a_block"), definition("aged variance")),
        le(E_rest, aged),
        mutant=le(E_rest, aged * 19 / 20),
    ),
    APART,
    Step(
        "block apart, split",
        (
            "block apart",
            "split",
            axiom("drift_norm_square"),
            "drift by squares",
            axiom("age_of_a_block"),
            axiom("oldest_block"),
        ),
        with_terms(block_apart, drift=gamma**2 * D * age_max * drift_squares, noise=gamma**2 * N * rest),
    ),
    Step(
        "block apart, expected",
        ("block apart, split",),
        with_terms(E_block_apart, drift=gamma**2 * D * age_max * E_drift_squares, noise=gamma**2 * N * E_rest),
        Expected(),
    ),
    Step(
        "block apart, in numbers",
        ("block apart, expected", "noise of a window"),
        with_terms(E_block_apart, drift=gamma**2 * D * age_max * E_drift_squares, noise=gamma**2 * N * aged),
    ),
    Step(
        "apart",
        ("block apart, in numbers",),
        with_terms(apart, drift=gamma**2 * D * age_max * drifts, noise=gamma**2 * N * all_aged),
        Summed(
            wholes={
                "E_block_apart_square": "E_apart_square",
                "E_block_drift_squares": "E_drift_squares",
                "block_aged_variance": "aged_variance",
            }
        ),
    ),
    Step(
        "apart, averaged",
        ("apart",),
        with_terms(mean_apart, drift=gamma**2 * D * age_max * mean_drifts, noise=gamma**2 * N * all_aged),
        averaged("pipedream"),
    ),
    Step(
        "square of a mean",
        (axiom("whole_mean"),),
        eq(mean_expected, mean_taken),
        averaged("pipedream"),
        mutant=eq(mean_expected, mean_taken * 19 / 20),
    ),
    Step(
        "lemma",
        (
            "apart, averaged",
            axiom("overlap", "drift_squares", "expected_square", "age_max"),
            "square of a mean",
            axiom("age_of_the_first_stage"),
        ),
        statement(steps.WINDOWS_FIXED),
    ),
)
WINDOWS = Proof(steps.WINDOWS_FIXED, STEPS)
NOISE = (
    Step(
        "second moment of one step",
        (axiom("all_square"), axiom("variance_of_the_gradient")),
        le(update, taken + sigma**2),
        mutant=le(update, (taken + sigma**2) * 19 / 20),
    ),
    Step(
        "second moment of a run",
        ("second moment of one step",),
        le(mean_update, mean_taken + sigma**2),
        averaged("pipedream"),
        mutant=le(mean_update, (mean_taken + sigma**2) * 19 / 20),
    ),
)


def _proof(theorem: Bound, *more: Fact) -> Proof:
    end: tuple[Fact | str | Proof, ...] = (
        average.FULL,
        WINDOWS,
        "second moment of a run",
        condition(theorem),
        definition("microbatches"),
        *more,
    )
    return Proof(theorem, (*NOISE, Step("theorem", end, statement(theorem, left))), left)


SPLIT = _proof(exact.SPLIT, definition("block age"))
AGE = _proof(exact.AGE, definition("block age"), definition("equal split"))
PROOF = _proof(exact.BOUND, axiom("ages_with_equal_noise"), definition("equal split"))
