"""Proofs under the Polyak-Lojasiewicz inequality: the descent step contracts, and is unrolled by induction."""

from __future__ import annotations

from sympy import Expr, Integer

from theory.bound import Bound
from theory.pipedream import polyak_lojasiewicz
from theory.pipedream.parts import Delta0, G, K, L, S, delta_max, gamma, mu
from theory.pipedream.proofs import blocks, descent
from theory.pipedream.proofs.common import SQUARES, condition
from theory.proof import Induction, Instance, Proof, Step, axiom, definition, le, statement, symbols, with_terms

now, after, last, k, most, E_apart = symbols("excess_now excess_next excess_last k update_most E_apart_square")
Q = 1 - mu * gamma / S
STEP = S * L * gamma * G**2 / (2 * mu)

ANY_DELAY = (
    *SQUARES,
    Step(
        "the largest update",
        (axiom("block_of_the_update"),),
        le(most, G**2),
        Instance("the largest update"),
        mutant=le(most, G**2 * 19 / 20),
    ),
    Step(
        "apart",
        ("apart by squares, expected", axiom("last_steps"), "the largest update"),
        with_terms(E_apart, windows=gamma**2 * delta_max**2 * G**2),
    ),
)


def _proof(theorem: Bound, windows: tuple[Step, ...], apart: str | Proof, window: Expr, kept: bool) -> Proof:
    """From E||x_k - z_k||^2 <= gamma^2 G^2 window at every step; kept: whether the sum of Q^k is kept or taken as 1."""
    one, so_far, in_all = (1 - Q, 1 - Q ** (k + 1), 1 - Q**K) if kept else (Integer(1), Integer(1), Integer(1))
    stale = L**2 * gamma**2 * window * G**2 / (2 * mu)
    rate = mu * gamma / S
    steps = (
        Step(
            "contraction",
            (
                descent.PROOF,
                axiom("polyak_lojasiewicz"),
                apart,
                axiom("block_of_the_update"),
                definition("excess"),
                definition("excess after the step"),
            ),
            with_terms(after, contracted=Q * now, step=rate * STEP, delay=rate * stale),
        ),
        Step(
            "first contraction",
            (definition("first excess"), "contraction", *(() if kept else (condition(theorem),))),
            with_terms(after, initial=Q * Delta0, step=one * STEP, delay=one * stale),
        ),
        Step(
            "unrolled",
            ("first contraction", "contraction", condition(theorem)),
            with_terms(after, initial=Q ** (k + 1) * Delta0, step=so_far * STEP, delay=so_far * stale),
            Induction({"excess_now": "excess_next"}, ("first contraction",), axioms=("block-sgd",)),
        ),
        Step(
            "after the last step",
            ("unrolled",),
            with_terms(last, initial=Q**K * Delta0, step=in_all * STEP, delay=in_all * stale),
            Instance("after the last step"),
        ),
        Step("theorem", ("after the last step",), statement(theorem, last)),
    )
    return Proof(theorem, (*windows, *steps), last)


PROOF = _proof(polyak_lojasiewicz.BOUND, ANY_DELAY, "apart", delta_max**2, kept=False)
COUNTED = _proof(polyak_lojasiewicz.COUNTED, (), blocks.WINDOWS, delta_max**2 / S + delta_max * (1 - 1 / S), kept=True)
