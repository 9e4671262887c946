"""Proof of A with long windows: sqrt(E|w_j|^2) <= (B/S)(j + sqrt(j (S-1))) by induction, that bound a name of its own.

The two roots meet in one step without any random quantity; the induction itself has none.
"""

from __future__ import annotations

from sympy import sqrt

from theory.pipedream import second_moment
from theory.pipedream.parts import B, S, delta_max, gamma
from theory.pipedream.proofs import average
from theory.pipedream.proofs.common import MOMENT, averaged
from theory.pipedream.proofs.second_moment import COMMON
from theory.proof import Induction, Proof, Step, axiom, definition, le, statement, symbols, with_terms

E_square, E_square_before, E_before, E_inner = symbols(
    "E_walk_window_square E_walk_window_square_before E_walk_window_norm_before E_walk_inner"
)
most, most_before, E_apart, mean_apart, left = symbols(
    "walk_most walk_most_before E_apart_square mean_apart_square mean_grad_square"
)
LONGEST = B * (delta_max + sqrt(delta_max * (S - 1))) / S

STEPS = (
    *(step for step in COMMON if not step.name.startswith(("no update", "one update more"))),
    Step(
        "along a new update",
        (axiom("drawn_along_the_walk"), axiom("mean_along_the_walk"), "along the mean, expected"),
        le(E_inner, B * E_before / S),
        mutant=le(E_inner, B * E_before / S * 19 / 20),
    ),
    Step(
        "square of one more, by the norm",
        ("square of one more, expected", "along a new update", "square of an update"),
        with_terms(E_square, before=E_square_before, along=2 * B * E_before / S, new=B**2 / S),
    ),
    Step(
        "the bound grows enough",
        (definition("most of a walk"), definition("most of the walk before"), definition("one less")),
        le(most_before**2 + 2 * B * most_before / S + B**2 / S, most**2),
        mutant=le(most_before**2 + 2 * B * most_before / S + B**2 / S, most**2 * 19 / 20),
    ),
    Step(
        "square of j updates",
        (
            "no square, expected",
            "square of one more, by the norm",
            axiom("mean_norm_of_the_walk"),
            "the bound grows enough",
        ),
        le(E_square, most**2),
        Induction(
            {
                "E_walk_window_square_before": "E_walk_window_square",
                "E_walk_window_norm_before": "E_walk_window_norm",
                "walk_most_before": "walk_most",
            },
            ("no square, expected",),
            index="j",
            axioms=(),
        ),
        mutant=le(E_square, most**2 * 19 / 20),
    ),
    Step(
        "the longest window",
        (definition("most of a walk"), axiom("short_window")),
        le(most, LONGEST),
        mutant=le(most, LONGEST * 19 / 20),
    ),
    Step(
        "apart, by the bound",
        ("apart, expected", "square of j updates", "the longest window"),
        with_terms(E_apart, windows=gamma**2 * LONGEST**2),
    ),
    Step(
        "apart, averaged",
        ("apart, by the bound",),
        with_terms(mean_apart, windows=gamma**2 * LONGEST**2),
        averaged("block-sgd"),
    ),
    *MOMENT,
    Step(
        "theorem",
        (average.PROOF, "apart, averaged", "second moment of a run"),
        statement(second_moment.DRIFT, left),
    ),
)

PROOF = Proof(second_moment.DRIFT, STEPS, left)
