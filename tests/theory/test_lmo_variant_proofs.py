"""Proofs of Theorem 1i and of the tuned corollaries: every step follows, every constant and axiom is needed."""

from __future__ import annotations

import pytest

pytest.importorskip("z3")

from theory.checkers.check import check_all  # noqa: E402
from theory.lmo.proofs import inexact, inexact_median, tuned  # noqa: E402

PROOFS = (inexact.AT_X, inexact.SHIFTED, inexact.MOMENTUM, inexact_median.PROOF, tuned.CLASSICAL, tuned.SHIFTED)


@pytest.fixture(scope="module")
def results():
    return check_all(PROOFS)


@pytest.mark.mutation
@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_proved_with_every_constant_needed(proof, results):
    result = results[proof.name]
    assert result.proved, result.reason
    last = result.steps[-1]
    assert len(last.mutants) == len(proof.theorem.terms)
    assert all(values is not None for step in result.steps for values in step.mutants.values())
    assert all(values is not None for step in result.steps for values in step.premises.values())
    used = {axiom for name in (proof.name, *closure_of(proof)) for step in results[name].steps for axiom in step.axioms}
    assert used >= set(proof.theorem.assumptions)


def closure_of(proof):
    """Names of the proofs that a proof rests on, all the way down."""
    return [name for other in proof.rests_on for name in (other.name, *closure_of(other))]
