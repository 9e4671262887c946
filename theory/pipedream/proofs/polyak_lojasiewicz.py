"""Proof under the Polyak-Lojasiewicz inequality: the descent step contracts, and is unrolled by induction."""

from __future__ import annotations

from theory.pipedream import polyak_lojasiewicz
from theory.pipedream.parts import Delta0, G, L, S, delta_max, gamma, mu
from theory.pipedream.proofs import descent
from theory.pipedream.proofs.common import WINDOWS, condition
from theory.proof import Induction, Instance, Proof, Step, axiom, definition, le, statement, symbols, with_terms

excess, before, last, k, most, E_apart, E_squares = symbols(
    "excess excess_before excess_last k update_most E_apart_square E_window_squares"
)
Q = 1 - mu * gamma / S
STEP = S * L * gamma * G**2 / (2 * mu)
STALE = L**2 * gamma**2 * delta_max**2 * G**2 / (2 * mu)
STATED = condition(polyak_lojasiewicz.BOUND)

STEPS = (
    *WINDOWS[:4],
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
    Step(
        "contraction",
        (
            descent.PROOF,
            axiom("polyak_lojasiewicz"),
            "apart",
            axiom("block_of_the_update"),
            definition("excess"),
            definition("excess before"),
        ),
        with_terms(excess, contracted=Q * before, step=mu * gamma / S * STEP, delay=mu * gamma / S * STALE),
    ),
    Step(
        "unrolled",
        (definition("first excess"), "contraction", STATED),
        with_terms(excess, initial=Q**k * Delta0, step=(1 - Q**k) * STEP, delay=(1 - Q**k) * STALE),
        Induction({"excess_before": "excess"}, (definition("first excess").key,), axioms=("block-sgd",)),
    ),
    Step(
        "after the last step",
        ("unrolled",),
        with_terms(
            last,
            initial=(Q**k * Delta0).subs(k, symbols("K")[0]),
            step=((1 - Q**k) * STEP).subs(k, symbols("K")[0]),
            delay=((1 - Q**k) * STALE).subs(k, symbols("K")[0]),
        ),
        Instance("after the last step"),
    ),
    Step("theorem", ("after the last step",), statement(polyak_lojasiewicz.BOUND, last)),
)

PROOF = Proof(polyak_lojasiewicz.BOUND, STEPS, last)
