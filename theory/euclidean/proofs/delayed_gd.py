"""Proof for delayed gradient descent: the window of old gradients, and every old point is an iterate."""

from __future__ import annotations

from theory.euclidean import delayed_gd
from theory.pipedream.parts import gamma
from theory.pipedream.proofs import average, window
from theory.pipedream.proofs.common import APART, averaged, condition
from theory.proof import Expected, Instance, Proof, Step, axiom, eq, statement, symbols, with_terms

block_apart, block_squares, tau, least = symbols("block_apart_square block_window_squares tau least_square")
apart, squares, E_apart, E_squares = symbols("apart_square window_squares E_apart_square E_window_squares")
mean_apart, mean_squares, update, taken = symbols(
    "mean_apart_square mean_window_squares mean_update_square mean_taken_square"
)

STEPS = (
    APART,
    Step(
        "block apart by squares",
        ("block apart", axiom("block_norm_square"), window.PROOF, axiom("short_delay")),
        with_terms(block_apart, squares=gamma**2 * tau * block_squares),
    ),
    Step(
        "apart by squares",
        ("block apart by squares",),
        with_terms(apart, squares=gamma**2 * tau * squares),
        Instance("one block"),
    ),
    Step(
        "apart by squares, expected",
        ("apart by squares",),
        with_terms(E_apart, squares=gamma**2 * tau * E_squares),
        Expected(),
    ),
    Step(
        "apart by squares, averaged",
        ("apart by squares, expected",),
        with_terms(mean_apart, squares=gamma**2 * tau * mean_squares),
        averaged("delayed-gd"),
    ),
    Step(
        "updates",
        (axiom("exact_square"),),
        eq(update, taken),
        averaged("delayed-gd"),
        mutant=eq(update, taken * 19 / 20),
    ),
    Step(
        "apart by gradients",
        ("apart by squares, averaged", axiom("overlap", "window_squares", "update_square", "tau"), "updates"),
        with_terms(mean_apart, gradients=gamma**2 * tau**2 * taken),
    ),
    Step(
        "theorem",
        (
            average.EXACT,
            "updates",
            "apart by gradients",
            axiom("least_of_the_iterates"),
            axiom("least_of_the_old"),
            condition(delayed_gd.BOUND),
        ),
        statement(delayed_gd.BOUND, least),
    ),
)

PROOF = Proof(delayed_gd.BOUND, STEPS, least)
