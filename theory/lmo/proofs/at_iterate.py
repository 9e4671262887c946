"""Proof of Theorem 1 with half the delay: Theorem 1s on a run continued for tau steps."""

from __future__ import annotations

from theory.lmo import at_iterate
from theory.lmo.parts import tau
from theory.lmo.proofs import shifted
from theory.proof import Proof, RunOn, Step, statement, symbols, with_terms

K, mean, first = symbols("K E_mean_grad_norm E_first_grad_norm")

PROOF = Proof(
    at_iterate.BOUND,
    (
        Step(
            "run on",
            (shifted.PROOF,),
            with_terms(mean, first=-tau / K * first, **at_iterate.BOUND.terms),
            RunOn(),
        ),
        Step("theorem", ("run on",), statement(at_iterate.BOUND, mean)),
    ),
    mean,
)
