"""The proofs about SGD with old gradients: every step checked, mutants refuted, every axiom needed; and what is not."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import sympy as sp

pytest.importorskip("z3")

from theory import get_bound
from theory.checkers.check import ProofResult, check, check_step
from theory.checkers.solver import counterexample, proves
from theory.euclidean.proofs import delayed_gd
from theory.ledger import closure
from theory.pipedream.proofs import (
    any_delay,
    blocks,
    descent,
    exact,
    polyak_lojasiewicz,
    second_moment,
    second_moment_drift,
    variance,
)
from theory.proof import Proof, ProofError, le, symbols, with_terms
from theory.sum_rules import Summed

THEOREMS = {
    proof.name: proof
    for proof in (
        any_delay.PAPER,
        any_delay.A,
        any_delay.C,
        second_moment.PROOF,
        second_moment_drift.PROOF,
        blocks.PROOF,
        variance.PROOF,
        variance.SPLIT,
        polyak_lojasiewicz.PROOF,
        polyak_lojasiewicz.COUNTED,
        exact.PROOF,
        exact.AGE,
        exact.SPLIT,
        delayed_gd.PROOF,
    )
}


@pytest.fixture(scope="module")
def done() -> dict[str, ProofResult]:
    """Results by name; each proof is checked once for all tests."""
    return {}


def checked(proof: Proof, done: dict[str, ProofResult]) -> ProofResult:
    return done.get(proof.name) or check(proof, done)


@pytest.mark.parametrize("proof", closure(list(THEOREMS.values())), ids=lambda proof: proof.name)
def test_every_step_is_proved(proof, done):
    result = checked(proof, done)
    assert result.proved, result.reason
    for step in result.steps:
        assert step.mutants and all(step.mutants.values()), step.name
        assert step.premises and all(step.premises.values()), step.name


@pytest.mark.parametrize("name", list(THEOREMS))
def test_the_ledger_is_the_theorem_s_list(name, done):
    result = checked(THEOREMS[name], done)
    assert set(result.ledger.assumptions) == set(get_bound(name).assumptions)
    assert set(result.ledger.mathematics) <= {
        "norm", "inner-product", "calculus", "integral", "expectation", "jensen", "finite-sum", "double-sum"
    }  # fmt: skip
    assert "euclidean" in result.ledger.assumptions


@pytest.mark.mutation
@pytest.mark.parametrize("name", list(THEOREMS))
def test_a_sharper_theorem_is_refuted(name):
    """Each term of the last step a twentieth smaller: a counterexample in exact numbers; and the proof of one theorem
    is not the proof of another.
    """
    proof = THEOREMS[name]
    last = check_step(proof, proof.steps[-1])
    assert len(last.mutants) == len(get_bound(name).terms) and all(last.mutants.values())
    for term, expression in get_bound(name).terms.items():
        sharper = replace(get_bound(name), terms={**get_bound(name).terms, term: expression * 19 / 20})
        with pytest.raises(ProofError, match=f"term {term}|is not the theorem"):
            Proof(sharper, proof.steps, proof.left)


@pytest.mark.mutation
def test_a_premise_less_is_a_gap():
    """The paper's theorem without the block bound, D without independent delays: the named step fails."""
    step = variance.WINDOWS.steps[[s.name for s in variance.WINDOWS.steps].index("orthogonal")]
    weaker = replace(step, premises=step.premises[:1])
    proof = Proof(variance.WINDOWS.theorem, tuple(weaker if s is step else s for s in variance.WINDOWS.steps))
    result = check_step(proof, weaker)
    assert not result.proved and "does not follow; counterexample" in result.reason
    end = any_delay.PAPER.steps[-1]
    gap = replace(end, premises=end.premises[:2])
    result = check_step(Proof(any_delay.PAPER.theorem, (*any_delay.PAPER.steps[:-1], gap), any_delay.PAPER.left), gap)
    assert not result.proved


@pytest.mark.mutation
def test_a_wrong_constant_in_the_descent_is_refuted():
    """Half the factor of ||x_k - z_k||^2, or the old gradient's square counted twice."""
    relation = descent.PROOF.conclusion
    facts = [descent.PROOF.fact(name).relation for name in descent.LEMMA]
    assert proves(facts, relation)
    for term, by in (("apart", sp.Rational(1, 2)), ("taken", 2), ("gradient", 2), ("curvature", sp.Rational(1, 2))):
        terms = dict(relation.terms)
        terms[term] *= by
        assert counterexample(facts, with_terms(relation.left, **terms)), term


def test_summing_over_blocks_refuses_what_differs_between_them():
    block, whole, j, delay = symbols("block_apart_square apart_square j block_delay")
    rule = Summed(wholes={"block_apart_square": "apart_square"})
    S, longest = symbols("S delta_max")
    assert rule.apply(le(block, longest)).difference == whole - S * longest
    for differs in (j, delay):  # the windows of two blocks need not be of one length
        with pytest.raises(ProofError, match=f"nothing says what {differs} adds up to over the blocks"):
            rule.apply(le(block, differs))
    with pytest.raises(ProofError, match="not affine"):
        rule.apply(le(block**2, j))


def test_sums_over_windows_count_a_step_as_often_as_it_is_seen():
    """The axiom `double-sum` in numbers: windows of at most d steps before k, all patterns of start-up and lengths."""
    for steps, d in itertools.product((1, 2, 5), (0, 1, 2, 3)):
        values = [1 + 7 * k % 5 for k in range(steps)]
        for lengths in itertools.product(range(d + 1), repeat=steps):
            windows = [sum(values[max(k - n, 0) : k]) for k, n in enumerate(lengths)]
            assert sum(windows) <= d * sum(values)
