"""Proofs of the corollaries: Theorems 1 and 1s at the best step, Theorem 1 at the leading-order best momentum too."""

from __future__ import annotations

import theory.lmo.tuned_axioms  # noqa: F401  (registers the schemas)
from theory.bound import Bound
from theory.lmo import tuned
from theory.lmo.proofs import delayed, shifted
from theory.proof import Proof, Rewritten, Step, axiom, statement


def _corollary(theorem: Proof, bound: Bound, c: int) -> Proof:
    step = Step("theorem", (theorem, axiom("tuned_step", c)), statement(bound, theorem.left))
    return Proof(bound, (step,), left=theorem.left)


CLASSICAL = _corollary(delayed.PROOF, tuned.BOUND, 2)
SHIFTED = _corollary(shifted.PROOF, tuned.SHIFTED, 1)
BOTH = Proof(
    tuned.BOTH,
    (
        Step(
            "theorem",
            tuple(map(axiom, ("scale_of_the_run", "scale_of_the_noise", "tuned_momentum"))) + (CLASSICAL,),
            statement(tuned.BOTH, CLASSICAL.left),
            Rewritten(),
        ),
    ),
    left=CLASSICAL.left,
)
