"""False statements about the gradient s steps back: s goes back with the index, and is not taken for constant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from theory.axioms import DEFINITIONS, axiom
from theory.checkers import solver
from theory.checkers.check import check_step
from theory.errors import InputError
from theory.inequality import Inequality
from theory.lmo.parts import NOISE, START
from theory.lmo.proofs import median, momentum_error
from theory.pairs import ALONG
from theory.proof import (
    Averaged,
    Induction,
    Instance,
    Proof,
    ProofError,
    Step,
    definition,
    le,
    split,
    split_along,
    split_reference,
    statement,
    symbols,
    with_terms,
)
from theory.proofs import PROOFS
from theory.vectors import CONSTANT

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, eta, tau, s, k, K, L, E0 = symbols("alpha eta tau s k K L E0")
w = symbols("reference_lag_norm")[0]
b = 1 - alpha
UNROLLED = next(step for step in median.STEPS if step.name == "reference lag unrolled")


def changed(name: str, **changes: object) -> Proof:
    steps = tuple(replace(step, **changes) if step.name == name else step for step in median.STEPS)
    return Proof(median.PROOF.theorem, steps, left=median.PROOF.left)


def refused(step: Step) -> str:
    result = check_step(median.PROOF, step)
    assert not result.proved
    return result.reason


@pytest.mark.mutation
def test_the_reference_moves_with_the_step():
    """With s held fixed the momentum would have no lag at all behind the gradient taken: |s - tau| = 0 there."""
    free = with_terms(w, start=b ** (k + 1) * E0, reference=median.AWAY)
    fixed = Induction({"reference_lag_norm_before": "reference_lag_norm"}, UNROLLED.rule.base)
    premises = ("first reference lag in norms", "reference recursion in numbers")
    for rule in (fixed, replace(fixed, cases=split()), replace(fixed, along=("k",))):
        with pytest.raises(ProofError, match="at the step before, reference_lag_norm_before has s one less, too"):
            changed(UNROLLED.name, conclusion=free, premises=premises, rule=rule)
        assert "has s one less" in refused(replace(UNROLLED, conclusion=free, premises=premises, rule=rule))


@pytest.mark.mutation
def test_nothing_else_moves_with_it():
    step = next(step for step in momentum_error.STEPS if step.name == "unrolled")
    rule = replace(step.rule, cases=split_along(), along=("s",))
    steps = tuple(replace(one, rule=rule) if one is step else one for one in momentum_error.STEPS)
    with pytest.raises(ProofError, match="at the step before, lag_norm_before has nothing one less, too"):
        Proof(momentum_error.PROOF.theorem, steps)


@pytest.mark.mutation
def test_nothing_is_handed_on_to_a_reference_of_no_steps():
    """dualnorm of the lag at most (1-alpha)^{k+1} E0 + L eta max(s - tau, tau - s): true at k = 0, false at s = 0."""
    for cases in ((), split(), split_reference()):  # s = 0 among the cases that use the statement at s - 1
        with pytest.raises(ProofError, match="are not known to be all"):
            changed(UNROLLED.name, rule=replace(UNROLLED.rule, cases=cases))
    handed = tuple(name for name in UNROLLED.premises if name != "reference lag at most")
    assert "does not follow; counterexample" in refused(replace(UNROLLED, premises=handed))
    free = with_terms(w, start=b ** (k + 1) * E0, reference=median.AWAY)
    assert "does not follow; counterexample" in refused(replace(UNROLLED, conclusion=free))


@pytest.mark.mutation
def test_the_reference_is_not_said_to_be_the_first_one_later():
    """The lag would be that of the first step for ever."""
    with pytest.raises(ProofError, match="holds at first steps"):
        changed(UNROLLED.name, rule=replace(UNROLLED.rule, base=()))
    with pytest.raises(ProofError, match="its premises hold at first and later steps"):
        changed("first reference lag", premises=(definition("first reference"), definition("noise")))


def test_a_walk_to_the_reference_is_one_at_x_only():
    gap, age, walk, j = symbols("reference_gap_norm reference_age walk_norm j")
    assert Instance("walk to the reference").apply(le(walk, eta * j)) == le(gap, eta * age)
    theorem = Inequality("false", "false", "false", gap, {"age": eta * age}, ("lmo", "error-feedback"), "nowhere")
    one = Step("j steps", (axiom("lmo_norm"),), le(walk, eta * j))
    with pytest.raises(ProofError, match="is no instance at y"):
        Proof(theorem, (one, Step("s", ("j steps",), statement(theorem), Instance("walk to the reference"))))
    with pytest.raises(ProofError, match="holds at x, the theorem is about y"):
        Proof(theorem, (Step("s", (axiom("steps_to_the_reference"),), statement(theorem)),))


def test_what_goes_along_is_in_a_table_that_is_used():
    rules = [step.rule for proof in PROOFS.values() for step in proof.steps if isinstance(step.rule, Induction)]
    assert set(ALONG) == {name for rule in rules if rule.along for name in rule.before}
    assert {rule.along for rule in rules if rule.along} == {("s",)}


def test_no_constant_is_a_function_of_the_reference():
    """An induction in which s goes back by one takes the others for the same."""
    for name, (_, _, relation, _) in DEFINITIONS.items():
        if relation.left.name in CONSTANT:
            assert not relation.right.has(s), name


def test_bernoulli_is_for_natural_exponents():
    """(1-alpha)^k >= 1 - k alpha, no sharper one, and not for an exponent that may lie between 0 and 1."""
    one = le(0, alpha)
    assert solver.proves([one], le(1 - k * alpha, b**k))
    assert not solver.proves([one], le(1 - k * alpha * 19 / 20, b**k))
    with pytest.raises(InputError, match="exponents are sums of natural numbers"):
        solver.proves([one], le(1 - L * alpha, b**L))


def test_what_does_not_change_is_averaged_as_it_stands():
    """A term with an absolute value or a maximum may stand beside powers of the step's number."""
    error, mean = symbols("E_reference_error_norm E_mean_reference_error_norm")
    means = {"E_reference_error_norm": "E_mean_reference_error_norm"}
    rule = Averaged(means, sums={b ** (k + 1): b * (1 - b**K) / alpha})
    found = rule.apply(le(error, b ** (k + 1) * E0 + median.DISTANCE + NOISE))
    assert (found.difference - (mean - START * (1 - b**K) - median.DISTANCE - NOISE)).expand() == 0
    with pytest.raises(ProofError, match="no closed form is given"):
        rule.apply(le(error, E0 * k))
