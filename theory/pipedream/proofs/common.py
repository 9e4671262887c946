"""What the proofs of several theorems share: conditions as facts, the window's distance, the size of an update."""

from __future__ import annotations

from sympy import Expr

from theory.axioms import Fact
from theory.axioms import condition as stated
from theory.bound import Bound
from theory.pipedream import steps
from theory.pipedream.parts import B, G, S, delta_max, gamma, sigma
from theory.pipedream.proofs import window
from theory.pipedream.proofs.average import over_a_run
from theory.proof import (
    Averaged,
    Expected,
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

block_apart, block_norm, block_square, block_squares, j = symbols(
    "block_apart_square block_window_norm block_window_square block_window_squares j"
)
apart, squares, E_apart, E_squares = symbols("apart_square window_squares E_apart_square E_window_squares")
mean_apart, mean_squares, mean_update, mean_taken = symbols(
    "mean_apart_square mean_window_squares mean_update_square mean_taken_square"
)
update, gradient, taken = symbols("E_update_square E_gradient_square E_taken_square")


def condition(bound: Bound, index: int = 0) -> Fact:
    """A condition of the theorem as a fact."""
    return stated(bound.conditions[index])


def averaged(method: str) -> Averaged:
    """The average of what holds at each step."""
    return over_a_run(method)


APART = Step(
    "block apart",
    (definition("block apart"),),
    eq(block_apart, gamma**2 * block_square),
    SquareOf(),
    mutant=eq(block_apart, gamma**2 * block_square * 19 / 20),
)

SQUARES = (
    APART,
    Step(
        "block apart by squares",
        ("block apart", axiom("block_norm_square"), window.PROOF, axiom("short_window")),
        with_terms(block_apart, squares=gamma**2 * delta_max * block_squares),
    ),
    Step(
        "apart by squares",
        ("block apart by squares",),
        with_terms(apart, squares=gamma**2 * delta_max * squares),
        Summed(wholes={"block_apart_square": "apart_square", "block_window_squares": "window_squares"}),
    ),
    Step(
        "apart by squares, expected",
        ("apart by squares",),
        with_terms(E_apart, squares=gamma**2 * delta_max * E_squares),
        Expected(),
    ),
)
#: mean||x - z||^2 <= gamma^2 delta^2 mean||G||^2, whatever the delays depend on.
WINDOWS = (
    *SQUARES,
    Step(
        "apart by squares, averaged",
        ("apart by squares, expected",),
        with_terms(mean_apart, squares=gamma**2 * delta_max * mean_squares),
        averaged("block-sgd"),
    ),
    Step(
        "lemma",
        ("apart by squares, averaged", axiom("overlap", "window_squares", "update_square", "delta_max")),
        statement(steps.WINDOWS_ANY),
    ),
)
WINDOWS_ANY = Proof(steps.WINDOWS_ANY, WINDOWS)


def _mean(name: str, right: Expr, averaged_right: Expr, *premises: Fact) -> tuple[Step, Step]:
    return (
        Step(f"{name} of one step", premises, le(update, right), mutant=le(update, right * 19 / 20)),
        Step(
            f"{name} of a run",
            (f"{name} of one step",),
            le(mean_update, averaged_right),
            averaged("block-sgd"),
            mutant=le(mean_update, averaged_right * 19 / 20),
        ),
    )


MOMENT = _mean("second moment", B**2 / S, B**2 / S, axiom("drawn_square"), axiom("second_moment"))
BLOCK = (
    Step(
        "second moment of a run",
        (axiom("block_of_the_update"),),
        le(mean_update, G**2),
        averaged("block-sgd"),
        mutant=le(mean_update, G**2 * 19 / 20),
    ),
)
VARIANCE = _mean(
    "second moment",
    (taken + sigma**2) / S,
    (mean_taken + sigma**2) / S,
    axiom("drawn_square"),
    axiom("variance_of_the_gradient"),
)
