"""False theorems about SGD with old gradients: what their proofs would have to put in place of a fact is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from theory.checkers.check import check_step
from theory.local_sgd.proofs import counted, descent, rounds
from theory.pipedream.parts import B, L, S, delta_max
from theory.pipedream.proofs import second_moment_drift as drift
from theory.proof import (
    Averaged,
    Induction,
    Proof,
    ProofError,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
)
from theory.replica_rules import OverReplicas, Totalled

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


# LocalSGD


@pytest.mark.mutation
def test_one_replica_is_not_the_mean_of_all():
    """|x_r - x_k|^2 of one replica passed off as the mean; a table of pairs, and nothing of a replica left over."""
    one, other, mean = symbols("replica_turn_square replica_apart_square replicas_turn_square")
    with pytest.raises(ProofError, match="replica_turn_square -> replicas_change_square is not a"):
        OverReplicas(means={"replica_turn_square": "replicas_change_square"}).apply(le(one, L))
    with pytest.raises(ProofError, match="nothing says what the mean of replica_apart_square over the replicas is"):
        OverReplicas(means={"replica_turn_square": "replicas_turn_square"}).apply(le(one, other))
    rule = OverReplicas(means={"replica_turn_square": "replicas_turn_square"})
    assert rule.apply(le(one, B**2)).difference == mean - B**2  # what is the same for all is counted once
    with pytest.raises(ProofError, match="not affine"):
        rule.apply(le(one**2, L))
    with pytest.raises(ProofError, match="nothing says what the mean of E_replica_inner_rest"):
        OverReplicas().apply(eq(symbols("E_replica_inner_rest")[0], 0 * L))


@pytest.mark.mutation
def test_sums_over_steps_are_not_averages():
    """The objective after T whole steps is not that after K; a sum of pairs from the table only; constants T times."""
    grad, total, T_, K = symbols("E_grad_square total_grad_square steps K")
    rule = Totalled({"E_grad_square": "total_grad_square"}, axioms=("local-sgd", "finite-sum"))
    assert rule.apply(le(grad, B)).difference == total - T_ * B
    with pytest.raises(ProofError, match="E_grad_square -> mean_grad_square is not a quantity and its sum"):
        replace(rule, means={"E_grad_square": "mean_grad_square"}).apply(le(grad, B))
    with pytest.raises(ProofError, match="E_f_now, E_f_next, E_f_first, E_f_last are not known to telescope"):
        replace(rule, telescoping=(("E_f_now", "E_f_next", "E_f_first", "E_f_last"),)).apply(le(grad, B))
    with pytest.raises(ProofError, match="rests on one of"):
        replace(rule, axioms=("constant-step", "finite-sum")).apply(le(grad, B))
    with pytest.raises(ProofError, match="E_grad_square -> total_grad_square is not a quantity and its average"):
        Averaged({"E_grad_square": "total_grad_square"}).apply(le(grad, B))
    with pytest.raises(ProofError, match="the coefficient of E_grad_square changes with k"):
        rule.apply(le(symbols("since")[0] * grad, B))
    assert K not in rule.apply(le(grad, B)).difference.free_symbols


@pytest.mark.mutation
def test_facts_about_replicas_need_local_sgd():
    inner_update, inner_mean = symbols("E_inner_update E_inner_update_mean")
    false = replace(descent.PROOF.theorem, name="false", left=inner_update, terms={"mean": inner_mean})
    false = replace(false, assumptions=("independent-batch",))
    with pytest.raises(ProofError, match="replicas_are_known holds only where local-sgd is assumed"):
        Proof(false, (Step("s", (axiom("replicas_are_known"),), statement(false)),))
    walk = next(s for s in counted.STEPS if s.name == "walk by squares")
    theorem = replace(false, left=walk.conclusion.left, terms={"squares": walk.conclusion.right}, assumptions=())
    with pytest.raises(ProofError, match="is an instance only where local-sgd is assumed"):
        Proof(theorem, (replace(walk, conclusion=statement(theorem)),))


@pytest.mark.mutation
def test_a_step_may_end_a_round():
    """Without the case after an average, squares of the steps would add up to more; and a round has H - 1 at most."""
    one = next(s for s in rounds.SQUARES if s.name == "squares, one step")
    for left_out in (0, 1):
        less = replace(one, premises=one.premises[:left_out] + one.premises[left_out + 1 :])
        result = check_step(*changed(counted.PROOF, one.name, premises=less.premises))
        assert not result.proved and "does not follow; counterexample" in result.reason
    part = next(s for s in rounds.SQUARES if s.name == "squares, a part of a round")
    (now,) = symbols("round_squares")
    result = check_step(*changed(counted.PROOF, part.name, conclusion=le(now, -L), mutant=le(now, -2 * L)))
    assert not result.proved
    with pytest.raises(ProofError, match="are not known to be all"):
        changed(counted.PROOF, part.name, cases=part.cases[:1])
    assert definition("round squares").relation.left == now
