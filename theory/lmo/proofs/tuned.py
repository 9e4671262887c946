"""Proofs of the corollaries: Theorems 1 and 1s at the best step."""

from __future__ import annotations

import theory.lmo.tuned_axioms  # noqa: F401  (registers the schema)
from theory.bound import Bound
from theory.lmo import tuned
from theory.lmo.proofs import delayed, shifted
from theory.proof import Proof, Step, axiom, statement


def _corollary(theorem: Proof, bound: Bound, c: int) -> Proof:
    step = Step("theorem", (theorem, axiom("tuned_step", c)), statement(bound, theorem.left))
    return Proof(bound, (step,), left=theorem.left)


CLASSICAL = _corollary(delayed.PROOF, tuned.BOUND, 2)
SHIFTED = _corollary(shifted.PROOF, tuned.SHIFTED, 1)
