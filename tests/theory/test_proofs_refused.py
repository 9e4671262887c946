"""What is no proof is refused: too strong a step, a premise too many or too few, circles, cases that are not all."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from theory.axioms import DEFINITIONS, Fact, define, schema
from theory.checkers import solver
from theory.checkers.check import check, check_step
from theory.errors import InputError
from theory.lmo import descent
from theory.lmo.proofs import delay, delayed, error_feedback, momentum_error
from theory.lmo.proofs import descent as lemma_a
from theory.proof import (
    Averaged,
    Expected,
    Induction,
    Integrated,
    NormOf,
    Proof,
    ProofError,
    Step,
    axiom,
    definition,
    eq,
    from_one,
    le,
    statement,
    symbols,
    vectors,
    with_terms,
)
from theory.relation import Relation
from theory.rules import check_affine

pytest.importorskip("z3", reason="the extra proofs is not installed")

eta, L, K, k, alpha = symbols("eta L K k alpha")
G, M, E, D = symbols("grad_norm momentum_norm error_norm direction_norm")
f_now, f_next = symbols("f_now f_next")
A = lemma_a.PROOF


def with_step(proof: Proof, name: str, **changes: object) -> Proof:
    """The proof with one step changed."""
    return replace(proof, steps=tuple(replace(s, **changes) if s.name == name else s for s in proof.steps))


def named(proof: Proof, name: str) -> Step:
    return next(step for step in proof.steps if step.name == name)


def refused(proof: Proof, step: str) -> str:
    """Why the step is refused, its name in front."""
    result = check_step(proof, named(proof, step))
    assert not result.proved
    return result.reason


@pytest.mark.mutation
def test_a_step_too_strong_has_a_counterexample():
    strong = with_step(A, "error along the direction", conclusion=le(symbols("inner_error")[0], E * 19 / 20))
    assert "does not follow; counterexample direction_norm=" in refused(strong, "error along the direction")
    assert "step error along the direction" in check(strong).reason


@pytest.mark.mutation
def test_a_step_with_a_premise_less_fails():
    less = with_step(A, "error along the direction", premises=(axiom("duality", "error", "direction"),))
    assert "does not follow" in refused(less, "error along the direction")


@pytest.mark.mutation
def test_a_premise_that_is_not_needed_is_refused():
    premises = ("length of the step", axiom("lmo_norm"), axiom("duality", "error", "direction"))
    more = with_step(A, "error along the direction", premises=premises)
    assert "length of the step: without it" in refused(more, "error along the direction")


@pytest.mark.mutation
def test_a_loose_step_is_refused():
    loose = with_step(A, "error along the direction", conclusion=le(symbols("inner_error")[0], 2 * E))
    assert "is not refuted" in refused(loose, "error along the direction")


@pytest.mark.mutation
def test_another_constant_in_the_theorem_is_refused():
    for term in descent.INEQUALITY.terms:
        factor = sp.Rational(20, 19) if term == "gradient" else sp.Rational(19, 20)  # sharper: more descent
        mutant = descent.INEQUALITY.scaled(term, factor)
        with pytest.raises(ProofError, match=f"term {term} of its end is"):
            Proof(mutant, A.steps)
        ended = (*A.steps[:-1], replace(A.steps[-1], conclusion=statement(mutant)))
        assert "does not follow; counterexample" in refused(Proof(mutant, ended), "lemma")


@pytest.mark.mutation
def test_another_assumption_in_the_theorem_is_refused():
    fewer = replace(descent.INEQUALITY, assumptions=("duality", "lmo"))
    assert check(Proof(fewer, A.steps)).reason == "smoothness is used and not assumed"
    with pytest.raises(ProofError, match="definition step holds only where one of constant-step"):
        Proof(replace(fewer, assumptions=("duality", "smoothness")), A.steps)
    more = replace(descent.INEQUALITY, assumptions=(*descent.INEQUALITY.assumptions, "variance"))
    assert check(Proof(more, A.steps)).reason == "variance is assumed and not used"


def test_what_rests_on_something_unproved_is_not_proved():
    broken = with_step(delay.PROOF, "one step more", conclusion=le(*symbols("walk_norm walk_norm_before")))
    steps = tuple(
        replace(s, premises=tuple(broken if p is delay.PROOF else p for p in s.premises))
        for s in momentum_error.PROOF.steps
    )
    result = check(Proof(momentum_error.PROOF.theorem, steps))
    assert not result.proved and "it uses delay, which is not proved" in result.reason
    assert all(step.proved for step in result.steps)


@pytest.mark.parametrize("premise", ["lemma", "nowhere", "momentum against gradient"])
def test_circles_and_missing_premises(premise):
    """Itself, a step that does not exist, a step that comes later."""
    target = "lemma" if premise == "lemma" else "gradient along the direction"
    with pytest.raises(ProofError, match=f"premise '{premise}' is not proved before it"):
        with_step(A, target, premises=(premise,))


def test_proofs_that_are_none():
    with pytest.raises(ProofError, match="has no steps"):
        Proof(descent.INEQUALITY, ())
    with pytest.raises(ProofError, match="which is not the theorem"):
        Proof(descent.INEQUALITY, A.steps[:-1])
    with pytest.raises(ProofError, match="two steps are named"):
        Proof(descent.INEQUALITY, (A.steps[0], *A.steps))
    with pytest.raises(ProofError, match="has no premises"):
        Step("x", (), le(G, M))
    with pytest.raises(ProofError, match="give a mutant"):
        Step("x", (axiom("lmo_norm"),), le(G, 0 * M))
    with pytest.raises(ProofError, match="cites a premise twice"):
        Step("x", (axiom("lmo_norm"), axiom("lmo_norm")), le(G, M))


def test_contradicting_premises_prove_nothing():
    """From a contradiction everything follows, also the mutant: no counterexample, so the step is refused."""
    wrong = Fact("wrong", "definition", eq(D, -1 + 0 * D))
    step = Step("x", (axiom("lmo_norm"), wrong), le(G, M))
    assert "is not refuted" in check_step(A, step).reason


def test_a_fact_is_an_instance_of_its_schema():
    with pytest.raises(InputError, match="schema 'luck' is unknown"):
        axiom("luck")
    with pytest.raises(InputError, match="no difference of two gradients"):
        axiom("smoothness", "momentum")
    with pytest.raises(InputError, match="the table of vectors has none"):
        axiom("duality", "gap", "direction")
    with pytest.raises(InputError, match="definition 'luck' is unknown"):
        definition("luck")
    with pytest.raises(InputError, match="axiom: 'luck' is unknown"):
        schema("luck")
    with pytest.raises(InputError, match="scope: 'sometimes'"):
        schema("lmo", "sometimes")
    with pytest.raises(InputError, match="exists already with another meaning"):
        define("step", "another step", eq(vectors("step")[0], eta * vectors("direction")[0]))
    with pytest.raises(InputError, match="give SYMBOL == an expression without it"):
        define("circle", "x = x + d", eq(vectors("step")[0], vectors("step")[0] + vectors("direction")[0]))
    assert "circle" not in DEFINITIONS


def test_relations_that_are_none():
    with pytest.raises(InputError, match="not a quantity"):
        le(sp.Symbol("eta"), L)
    with pytest.raises(InputError, match="rounded constant"):
        le(G, 0.5 * M)
    with pytest.raises(InputError, match="take a norm first"):
        le(*vectors("grad momentum"))
    with pytest.raises(InputError, match="not linear in its vectors"):
        eq(vectors("grad")[0], vectors("momentum")[0] * vectors("error")[0])
    with pytest.raises(InputError, match="not linear in its vectors"):
        eq(vectors("grad")[0], vectors("momentum")[0] + 1)
    with pytest.raises(InputError, match="sense '<'"):
        Relation(G, "<", M)
    with pytest.raises(InputError, match="has no numbers"):
        definition("step").relation.evaluate({})


def test_facts_of_the_first_and_of_later_steps_do_not_meet():
    premises = tuple(map(definition, ("noise", "first noise")))
    w = vectors("noise")[0]
    mixed = Step("mixed", premises, eq(w, w / 2))
    with pytest.raises(ProofError, match="hold at first and later steps"):
        Proof(descent.INEQUALITY, (mixed, *A.steps))
    last = replace(A.steps[-1], premises=(*A.steps[-1].premises, definition("noise")))
    with pytest.raises(ProofError, match="its end holds at later steps only"):
        Proof(descent.INEQUALITY, (*A.steps[:-1], last))
    swapped = replace(named(momentum_error.PROOF, "unrolled").rule, base=("recursion in numbers",))
    with pytest.raises(ProofError, match="first error in norms holds at first steps"):
        with_step(momentum_error.PROOF, "unrolled", rule=swapped)


def test_an_expectation_needs_an_affine_relation():
    square, norm = symbols("noise_square noise_norm")
    with pytest.raises(ProofError, match="is not affine in"):
        Expected().apply(eq(square, norm**2))
    with pytest.raises(ProofError, match="is not affine in"):
        check_affine(le(G, M * E), set(symbols("momentum_norm error_norm")))
    assert Expected().apply(le(G, eta * E)) == le(symbols("E_grad_norm")[0], eta * symbols("E_error_norm")[0])


def test_an_average_needs_telescoping_and_closed_forms():
    means = {"grad_norm": "mean_grad_norm", "error_norm": "mean_error_norm"}
    pair = (("f_now", "f_next", "f_first", "f_last"),)
    b = 1 - alpha
    with pytest.raises(ProofError, match="do not telescope"):
        Averaged(means, pair).apply(le(f_next, 2 * f_now - G))
    with pytest.raises(ProofError, match="changes with k"):
        Averaged(means).apply(le(G, k * E))
    with pytest.raises(ProofError, match="nothing says what momentum_norm adds up to"):
        Averaged(means).apply(le(G, M))
    with pytest.raises(ProofError, match="no closed form is given"):
        Averaged(means).apply(le(G, b**k))
    right = b * (1 - b**K) / alpha
    for wrong in (right * 19 / 20, right + 1, (1 - b**K) / alpha):
        with pytest.raises(ProofError, match="sum over k of"):
            Averaged(means, sums={b ** (k + 1): wrong}).apply(le(G, b ** (k + 1)))
    good = Averaged(means, sums={b ** (k + 1): right}).apply(le(G, L * b ** (k + 1)))
    assert sp.simplify(good.difference - symbols("mean_grad_norm")[0] + L * right / K) == 0


def test_an_integral_needs_a_bound_that_does_not_change_along_the_segment():
    r, dual, step, t = symbols("segment_inner segment_dual step_norm t")
    rule = Integrated("segment_inner", "segment_mean")
    with pytest.raises(ProofError, match="segment_dual changes along the segment"):
        rule.apply(le(r, dual * step))
    with pytest.raises(ProofError, match="is not segment_inner <= a polynomial in t"):
        rule.apply(le(r, step / (1 + t)))


def test_a_norm_needs_signs_and_names():
    grad, momentum, error, lag = vectors("grad momentum error lag")
    with pytest.raises(ProofError, match="the sign of"):
        NormOf().apply(eq(lag, (1 - 2 * alpha) * error))
    with pytest.raises(InputError, match="names no norm for it"):
        NormOf().apply(eq(grad, vectors("momentum_before")[0]))
    with pytest.raises(ProofError, match="no equality between vectors"):
        NormOf().apply(le(G, M))
    assert NormOf("grad").apply(eq(error, momentum - grad)) == le(G, M + E)


@pytest.mark.mutation
def test_induction_finds_the_sequence_that_breaks_it():
    """One step less of the geometric sum: the sequence that attains the recursion breaks it."""
    step = named(momentum_error.PROOF, "unrolled")
    terms = dict(step.conclusion.terms)
    wrong = terms | {"momentum_lag": terms["momentum_lag"].subs(k, k - 1)}
    changed = with_step(momentum_error.PROOF, "unrolled", conclusion=with_terms(step.conclusion.left, **wrong))
    reason = refused(changed, "unrolled")
    assert "counterexample" in reason and "lag_norm@" in reason


def test_induction_has_to_name_what_varies():
    step = named(error_feedback.path.MOMENTUM_ERROR, "unrolled")
    assert isinstance(step.rule, Induction)
    silent = replace(step, rule=replace(step.rule, varying=()))
    assert "delta is neither constant nor said to vary" in check_step(error_feedback.path.MOMENTUM_ERROR, silent).reason


def test_cases_have_to_be_all():
    with pytest.raises(ProofError, match="are not known to be all"):
        with_step(delayed.PROOF, "expected error", cases=({k: sp.Integer(0)},))
    with pytest.raises(ProofError, match="are not known to be all"):  # k = 0 is left out: for error feedback only
        with_step(delayed.PROOF, "expected error", cases=from_one())
    rule = replace(named(delayed.PROOF, "average error").rule, first=1)
    with pytest.raises(ProofError, match="are not counted from 0"):
        with_step(delayed.PROOF, "average error", rule=rule)


def test_nothing_is_divided_by_what_may_be_zero_and_roots_have_to_exist():
    with pytest.raises(InputError, match="nothing divides by it"):
        solver.proves([le(G, M)], le(G / (1 - alpha), M / (1 - alpha)))
    with pytest.raises(InputError, match="has no root"):
        solver.proves([le(G, M)], le(G, M + sp.sqrt(alpha - sp.Rational(1, 2))))
    with pytest.raises(InputError, match="sigma is not seen to be positive"):  # under a root, too
        sigma = symbols("sigma")[0]
        solver.proves([le(G, M)], le(G, M * sp.sqrt(1 + L / sigma)))
    with pytest.raises(InputError, match="exponents are sums of natural numbers"):
        solver.proves([le(G, M)], le(G, M * (1 - alpha) ** (-k)))


def test_a_timeout_is_no_proof(monkeypatch):
    step = named(A, "lemma")
    relations = [fact.relation for fact in A.facts(step)]
    assert solver.proves(relations, step.conclusion)
    monkeypatch.setattr(solver.Question, "solve", lambda question, *_, **__: question.z3.unknown)
    assert not solver.proves(relations, step.conclusion)
    assert "does not follow; no counterexample found" in check_step(A, step).reason


def test_a_counterexample_is_believed_only_when_it_is_one():
    conclusion = le(G, M)
    good = {G: sp.Integer(2), M: sp.Integer(1)}
    assert solver.refutes(good, [], conclusion)
    assert not solver.refutes({G: sp.Integer(1), M: sp.Integer(1)}, [], conclusion)
    assert not solver.refutes(good, [le(G, M)], conclusion)
    assert not solver.refutes({G: sp.Integer(2), M: sp.Integer(-1)}, [], conclusion)  # a norm is not negative
    half = {K: sp.Rational(3, 2), G: sp.Integer(2)}
    assert not solver.refutes(half, [], le(G, K))  # K is a whole number


@pytest.mark.mutation
def test_the_hint_that_served_is_tried_first_again():
    """And the list that all steps share stays as it is."""
    hints = [{"alpha": 1}, {"alpha": sp.Rational(1, 3)}, {}]
    assert solver.counterexample([], le(1 - alpha, 0), hints) == {"alpha": "1/3"}
    assert hints[0] == {"alpha": sp.Rational(1, 3)} and len(hints) == 3
    assert isinstance(solver.HINTS, tuple)


def test_without_the_solver_there_is_one_line(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(InputError, match=r"^z3: is not installed; .*pip install 'staleproof\[proofs\]'$"):
        check(A)
