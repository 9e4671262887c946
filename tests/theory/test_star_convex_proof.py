"""The proof under weight decay: its numbers on recursions, and false proofs with what it added, all refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from theory.checkers.check import check_step
from theory.checkers.solver import proves
from theory.errors import InputError
from theory.functions import GeometricSum
from theory.inequality import Inequality
from theory.lmo.proofs import delay, descent, star_convex
from theory.proof import (
    Induction,
    Instance,
    Proof,
    ProofError,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    with_terms,
)

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, eta, k, K, L, b, r = symbols("alpha eta k K L b r")
p, q = 1 - b, 1 - alpha
FINITE = star_convex.FINITE


def claim(left: sp.Expr, *assumptions: str, **terms: sp.Expr) -> Inequality:
    return Inequality("false", "false", "false", left, terms, assumptions, "nowhere")


def changed(name: str, **changes: object) -> Step:
    """One step of the proof, changed."""
    return replace(next(step for step in FINITE.steps if step.name == name), **changes)


@pytest.mark.mutation
def test_what_holds_without_decay_is_not_used_with_it():
    """norm(x_{k+1} - x_k) <= eta, and Lemma A: a run with decay breaks both."""
    step, f_next, f_now = symbols("step_norm f_next f_now")
    theorem = claim(step, "weight-decay", "lmo", eta=eta)
    with pytest.raises(ProofError, match="definition step holds at x undecayed, the theorem is about x decayed"):
        Proof(theorem, (descent.LENGTH, Step("s", ("length of the step", axiom("lmo_norm")), statement(theorem))))
    lemma = claim(f_next, "weight-decay", now=f_now)
    with pytest.raises(ProofError, match="descent is about x, the theorem about x decayed"):
        Proof(lemma, (Step("s", (descent.PROOF,), statement(lemma)),))
    with pytest.raises(ProofError, match="objective_along_step holds at undecayed"):
        Proof(lemma, (Step("s", (axiom("objective_along_step"),), statement(lemma)),))
    with pytest.raises(ProofError, match="decayed_step holds at x decayed, the theorem is about y"):
        y = claim(step, "error-feedback", eta=eta)
        Proof(y, (Step("s", (axiom("decayed_step"), axiom("lmo_norm")), statement(y)),))
    mixed = claim(step, eta=eta)  # one fact about decay is enough
    with pytest.raises(ProofError, match="definition step holds at x undecayed"):
        Proof(mixed, (Step("s", (definition("step"), axiom("decayed_step")), statement(mixed)),))


@pytest.mark.mutation
def test_an_induction_rests_on_the_assumption_of_its_method():
    walk = next(step for step in delay.STEPS if step.name == "j steps")
    with pytest.raises(ProofError, match="rests on constant-step, which excludes weight decay"):
        Proof(FINITE.theorem, tuple(walk if s.name == "j steps" else s for s in FINITE.steps), FINITE.left)
    sgd = changed("excess unrolled")
    sgd = replace(sgd, rule=replace(sgd.rule, axioms=("block-sgd",)))
    with pytest.raises(ProofError, match="rests on block-sgd, which excludes weight decay"):
        Proof(FINITE.theorem, tuple(sgd if s.name == sgd.name else s for s in FINITE.steps), FINITE.left)
    assert isinstance(walk.rule, Induction)
    other = replace(walk, rule=replace(walk.rule, axioms=("weight-decay",)))
    with pytest.raises(ProofError, match="rests on weight-decay, and the theorem is about x"):
        Proof(delay.PROOF.theorem, tuple(other if s is walk else s for s in delay.PROOF.steps))


@pytest.mark.mutation
@pytest.mark.parametrize("start", [GeometricSum(p, q, k + 1) * q**2, GeometricSum(p, q, k) * q])
def test_the_excess_is_that_after_the_step(start):
    """The start's error counted as if D_k came after step k: one factor 1 - alpha, or one summand, too few."""
    step = changed("excess unrolled")
    terms = dict(step.conclusion.terms)
    terms["start"] = (1 + r) * eta * symbols("E0")[0] * start
    wrong = replace(step, conclusion=with_terms(step.conclusion.left, **terms))
    assert "does not follow; counterexample" in check_step(FINITE, wrong).reason


def test_after_the_last_step_there_are_K():
    after, last = symbols("excess_next excess_last")
    rule = Instance("after the last step")
    assert rule.apply(le(after, L * k)) == le(last, L * (K - 1))
    with pytest.raises(ProofError, match="excess_now has no name at after the last step"):
        rule.apply(le(symbols("excess_now")[0], L * k))


@pytest.mark.mutation
def test_a_ball_that_is_too_small_or_a_step_that_is_too_short():
    (x, step) = symbols("iterate_norm step_norm")
    for name, conclusion in (
        ("in the ball", le(x, eta / b * 19 / 20)),
        ("a step is at most eta", le(step, eta * (2 - b))),  # at the rim it goes straight across
    ):
        assert "does not follow; counterexample" in check_step(FINITE, changed(name, conclusion=conclusion)).reason


def sums(p: Fraction, q: Fraction, n: int) -> Fraction:
    """The sum, written out."""
    return sum((p ** (n - 1 - j) * q**j for j in range(n)), Fraction(0))


def test_what_the_checker_knows_of_a_geometric_sum():
    """A sum one longer is p times the sum and a power of q: for all numbers; and it knows nothing else."""
    for P in (Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1)):
        for Q in (Fraction(0), Fraction(1, 2), Fraction(1)):
            for n in range(1, 6):
                assert sums(P, Q, n + 1) == P * sums(P, Q, n) + Q**n
                assert GeometricSum(*map(sp.Rational, (P, Q, n))) == sp.Rational(sums(P, Q, n))
    n = sp.Symbol("n", integer=True, nonnegative=True)
    shorter, longer = GeometricSum(p, q, n), GeometricSum(p, q, n + 1)
    assert proves([], eq_of(longer, p * shorter + q**n))
    for wrong in (p * shorter + q ** (n + 1), q * shorter + q**n, shorter + q**n, p * shorter):
        assert not proves([], eq_of(longer, wrong), timeout=1)
    assert not proves([], eq_of(GeometricSum(p, q, n + 2), p * shorter + q**n), timeout=1)
    assert not proves([], eq_of(GeometricSum(q, p, n + 1), p * shorter + q**n), timeout=1)
    with pytest.raises(InputError):
        le(n, 1)  # n is no quantity: the relations here are made by substitution


def eq_of(left: sp.Expr, right: sp.Expr):
    """An equality in symbols of its own."""
    a, c = symbols("eta L")
    return eq(a, c).subs({a: left, c: right})
