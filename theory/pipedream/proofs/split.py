"""A window is drift and martingale: (1 + theta) of the first square, (1 + 1/theta) of the second."""

from __future__ import annotations

from theory.pipedream.parts import theta
from theory.pipedream.proofs import window
from theory.proof import Expected, Induction, Instance, SquareOf, Step, axiom, definition, eq, le, symbols, with_terms

j, square, drift, rest, parts, young, drift_norm, drift_squares = symbols(
    "j block_window_square block_drift_square block_martingale_square block_inner_parts block_split_square "
    "block_drift_norm block_drift_squares"
)
E_square, E_drift, E_rest = symbols("E_block_window_square E_block_drift_square E_block_martingale_square")
before, inner, one = symbols("block_martingale_square_before block_inner_martingale block_difference_square")
E_before, E_inner, E_one, E_squares = symbols(
    "E_block_martingale_square_before E_block_inner_martingale E_block_difference_square E_block_martingale_squares"
)

YOUNG = (
    Step(
        "square of the window",
        (definition("drift and martingale"),),
        eq(square, drift + rest + 2 * parts),
        SquareOf(),
        mutant=eq(square, drift + rest + parts),
    ),
    Step(
        "a square that is not negative",
        (definition("split"),),
        eq(young, theta**2 * drift + rest - 2 * theta * parts),
        SquareOf(),
        mutant=eq(young, theta**2 * drift + rest - theta * parts),
    ),
    Step(
        "split",
        ("square of the window", "a square that is not negative"),
        with_terms(square, drift=(1 + theta) * drift, martingale=(1 + 1 / theta) * rest),
    ),
    Step(
        "drift by squares",
        (window.PROOF,),
        le(drift_norm**2, j * drift_squares),
        Instance("means in the window"),
        mutant=le(drift_norm**2, j * drift_squares * 19 / 20),
    ),
)
_REST = (
    Step("no rest", (definition("no difference"),), eq(rest, 0 * j), SquareOf(), mutant=eq(rest, 1 + 0 * j)),
    Step("no rest, expected", ("no rest",), eq(E_rest, 0 * j), Expected(), mutant=eq(E_rest, 1 + 0 * j)),
    Step(
        "rest and one more",
        (definition("block difference"),),
        eq(rest, before + 2 * inner + one),
        SquareOf(),
        mutant=eq(rest, before + inner + one),
    ),
    Step(
        "rest and one more, expected",
        ("rest and one more",),
        eq(E_rest, E_before + 2 * E_inner + E_one),
        Expected(),
        mutant=eq(E_rest, E_before + E_inner + E_one),
    ),
)


def orthogonal(schema: str) -> tuple[Step, ...]:
    """E|rest|^2 grows by one square a step."""
    return (
        *_REST,
        Step(
            "orthogonal",
            ("rest and one more, expected", axiom(schema)),
            eq(E_rest, E_before + E_one),
            mutant=eq(E_rest, E_before + E_one * 19 / 20),
        ),
    )


def by_squares() -> Step:
    """E|rest|^2 <= sum of the squares."""
    return Step(
        "rest by squares",
        ("no rest, expected", "orthogonal", axiom("one_difference_more")),
        le(E_rest, E_squares),
        Induction(
            {
                "E_block_martingale_square_before": "E_block_martingale_square",
                "E_block_martingale_squares_before": "E_block_martingale_squares",
            },
            ("no rest, expected",),
            ("E_block_difference_square",),
            index="j",
            axioms=(),
        ),
        mutant=le(E_rest, E_squares * 19 / 20),
    )
