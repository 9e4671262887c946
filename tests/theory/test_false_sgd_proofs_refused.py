"""False theorems about SGD with old gradients: what their proofs would have to put in place of a fact is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from theory.checkers.check import check_step
from theory.pipedream.parts import B, S, delta_max
from theory.pipedream.proofs import second_moment_drift as drift
from theory.proof import Induction, Proof, ProofError, Step, definition, eq, le, symbols

pytest.importorskip("z3", reason="the extra proofs is not installed")


def changed(proof: Proof, name: str, **changes: object) -> tuple[Proof, Step]:
    """The proof with one step changed, and that step."""
    step = next(s for s in proof.steps if s.name == name)
    new = replace(step, **changes)
    return replace(proof, steps=tuple(new if s is step else s for s in proof.steps)), new


def why_not(proof: Proof, step: Step) -> str:
    result = check_step(proof, step)
    assert not result.proved
    return result.reason


@pytest.mark.mutation
def test_the_bound_of_a_walk_is_its_definition():
    """(B/S) j, without the root that the draws cost."""
    most, j = symbols("walk_most j")
    genuine = definition("most of a walk")
    lower = replace(genuine, relation=eq(most, B * j / S))
    with pytest.raises(ProofError, match="is not what its name says"):
        changed(drift.PROOF, "the bound grows enough", premises=(lower, definition("one less")))
    false = le(most, B * delta_max / S)
    assert "does not follow; counterexample" in why_not(
        *changed(drift.PROOF, "the longest window", conclusion=false, mutant=le(most, B * delta_max / S / 2))
    )


@pytest.mark.mutation
def test_the_bound_of_a_walk_is_handed_on_as_itself_and_has_to_grow():
    step = next(s for s in drift.STEPS if s.name == "square of j updates")
    assert isinstance(step.rule, Induction)
    before = {**step.rule.before, "walk_most_before": "E_walk_window_norm"}
    with pytest.raises(ProofError, match="walk_most_before -> E_walk_window_norm is not one of"):
        changed(drift.PROOF, step.name, rule=replace(step.rule, before=before))
    gap = tuple(p for p in step.premises if p != "the bound grows enough")
    assert "does not follow" in why_not(*changed(drift.PROOF, step.name, premises=gap))
