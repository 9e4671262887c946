"""Proof of the intermediate form: Lemma A summed over a run, the objective telescopes."""

from __future__ import annotations

from theory.lmo import average
from theory.lmo.proofs import descent
from theory.proof import Averaged, Proof, Step, statement

OVER_RUN = Averaged(
    {"grad_norm": "mean_grad_norm", "error_norm": "mean_error_norm"},
    telescoping=(("f_now", "f_next", "f_first", "f_last"),),
)

PROOF = Proof(average.INEQUALITY, (Step("sum", (descent.PROOF,), statement(average.INEQUALITY), OVER_RUN),))
