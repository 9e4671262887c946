"""The proof of Theorem 2s: a constant less, and false proofs with what it added, all refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from theory.checkers.check import check_step
from theory.lmo.proofs import momentum_error, shifted
from theory.lmo.proofs.error_feedback_weights import PROOF
from theory.proof import Everywhere, Instance, Proof, ProofError, Step, le, symbols, with_terms

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, eta, k, L, E0, dbar = symbols("alpha eta k L E0 dbar")
b = 1 - alpha


def changed(name: str, **changes: object) -> Step:
    """One step of the proof, changed."""
    return replace(next(step for step in PROOF.steps if step.name == name), **changes)


def with_step(proof: Proof, step: Step) -> Proof:
    return replace(proof, steps=tuple(step if s.name == step.name else s for s in proof.steps))


@pytest.mark.mutation
def test_without_the_change_from_y_to_x_it_does_not_follow():
    """b LAG in place of LAG: the error one step before, as if y_{k-1} were x_{k-1}."""
    step = changed("shifted lag in numbers")
    terms = dict(step.conclusion.terms) | {"momentum_lag": b * L * eta * b / alpha}
    wrong = replace(step, conclusion=with_terms(step.conclusion.left, **terms))
    assert "does not follow; counterexample" in check_step(PROOF, wrong).reason


@pytest.mark.mutation
def test_the_metric_is_that_quantity_at_delay_1_only():
    """At delay 2 the gradients of steps 1, ..., K are taken at x_0, x_0, x_1, ..., x_{K-2}."""
    assumptions = tuple(name for name in PROOF.theorem.assumptions if name != "delay-one")
    with pytest.raises(ProofError, match="its metric is E_mean_taken_norm only where delay-one is assumed"):
        Proof(replace(PROOF.theorem, name="false", assumptions=assumptions), PROOF.steps, PROOF.left)


@pytest.mark.mutation
def test_instances_of_the_step_before():
    """The error before has the power of the step before; and a gradient is taken at x_{k-1} at delay 1 only."""
    lag, before, w, w_before = symbols("lag_norm lag_norm_before delta_mean_weighted delta_mean_weighted_before")
    assert Instance("lag before").apply(le(lag, b**k * E0 + w)) == le(before, b ** (k - 1) * E0 + w_before)
    with pytest.raises(ProofError, match="delta has no name at lag before"):
        Instance("lag before").apply(le(lag, symbols("delta")[0] * L))
    at_x = Step("lag before", ("unrolled",), le(before, b**k * E0), Instance("lag before"))
    with pytest.raises(ProofError, match="'lag before' is no instance at x"):
        p = momentum_error.PROOF
        Proof(p.theorem, (*p.steps[:-2], at_x, *p.steps[-2:]))
    assumptions = tuple(name for name in PROOF.theorem.assumptions if name != "delay-one")
    metric = r"\frac{1}{K} \sum_{k=1}^{K} \mathbb{E} \|\nabla f(y_k)\|_*"
    longer = replace(PROOF.theorem, name="false", assumptions=assumptions, metric=metric)
    with pytest.raises(ProofError, match="only where delay-one is assumed"):
        Proof(longer, PROOF.steps, symbols("E_mean_grad_norm")[0])


@pytest.mark.mutation
def test_what_holds_everywhere_holds_at_the_first_step_and_at_later_ones():
    step = changed("shifted lag at every step")
    first, later = step.premises
    for premises in ((first,), (later,)):
        with pytest.raises(ProofError, match="shifted lag at every step: its premises hold at"):
            with_step(PROOF, replace(step, premises=premises))
    for count in (0, 2):
        with pytest.raises(ProofError, match="its premises hold at|are not counted from 1"):
            with_step(PROOF, replace(step, rule=Everywhere(first=count)))
    with pytest.raises(ProofError, match="its rule rests on"):
        with_step(PROOF, replace(step, rule=Everywhere(first=1, axioms=("lmo",))))


@pytest.mark.mutation
@pytest.mark.parametrize("lost", ["start", "momentum_lag"])
def test_a_conclusion_that_fails_at_one_of_them(lost):
    """Without the start it fails at the first step, without the lag at later ones only."""
    step = changed("shifted lag at every step")
    terms = {name: term for name, term in step.conclusion.terms if name != lost}
    reason = check_step(PROOF, replace(step, conclusion=with_terms(step.conclusion.left, **terms))).reason
    assert "does not follow; counterexample" in reason
    assert (", k=" in reason) == (lost == "momentum_lag")


@pytest.mark.mutation
def test_nothing_is_handed_on():
    """A recursion and its first step give no bound on later steps without an induction."""
    p = shifted.PROOF
    step = next(step for step in p.steps if step.name == "shifted unrolled")
    alone = replace(step, rule=Everywhere())
    assert "does not follow" in check_step(with_step(p, alone), alone).reason
    with pytest.raises(ProofError, match="its premises hold at first and later steps"):  # at x the first is k = 0
        with_step(p, replace(step, rule=Everywhere(first=1)))


def test_the_return_is_sharper_than_before():
    """(1-alpha) dbar is at most (1-alpha) min(2, dbar/alpha), what adding up single drifts gave."""
    old = b * sp.Min(2, dbar / alpha)
    for a in (sp.Rational(1, 20), sp.Rational(1, 2), sp.Integer(1)):
        for d in (0, sp.Rational(1, 3), 1, 2):
            at = {alpha: a, dbar: d}
            assert (PROOF.theorem.terms["return"] / (L * eta)).subs(at) <= old.subs(at)
