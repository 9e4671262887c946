"""Every theorem has a proof; each step follows, each sharper constant and each premise less has a counterexample."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from theory.bound import Bound
from theory.checkers.check import ProofResult, check_all
from theory.checkers.induction import at
from theory.ledger import closure, ledger
from theory.lmo import PATHWISE
from theory.local_sgd.steps import STEPS as LOCAL_STEPS
from theory.pipedream.steps import STEPS
from theory.proofs import PROOFS, get_proof
from theory.proved import PROVED, proof_of
from theory.registry import BOUNDS
from theory.symbols import QUANTITIES
from theory.TEMPLATE import BOUND as TEMPLATE
from theory.vectors import VECTORS

pytest.importorskip("z3", reason="the extra proofs is not installed")


@pytest.fixture(scope="module")
def results() -> dict[str, ProofResult]:
    return check_all(list(PROOFS.values()))


@pytest.mark.parametrize("name", list(PROOFS))
def test_every_step_is_proved(results, name):
    result = results[name]
    assert result.proved, result.reason
    for step in result.steps:
        assert step.proved and step.mutants and step.premises, step.name


#: Proved in the docstring and held against runs (tests/theory/test_*_runs.py), not yet as a value.
IN_WORDS: set[str] = set()


def unproved() -> set[str]:
    wanted = {name for name, bound in BOUNDS.items() if bound.origin == "derived here"} | set(PATHWISE)
    return wanted - set(PROOFS)


def test_every_theorem_that_is_not_of_others_has_a_proof():
    assert unproved() == IN_WORDS


def test_a_false_theorem_from_the_template_is_found(monkeypatch):
    """Its third of the step term passes all that looks at the bound alone; that it has no proof is seen."""
    false = replace(TEMPLATE, terms={**TEMPLATE.terms, "step": TEMPLATE.terms["step"] / 3})
    monkeypatch.setitem(BOUNDS, false.name, false)
    assert unproved() == {"template"} and proof_of(false) == "in words"


def test_the_names_of_what_is_proved_are_those_of_the_proofs():
    assert [name for name in BOUNDS if name in PROOFS] == list(PROVED)
    assert {proof_of(bound) for bound in BOUNDS.values()} == {"by machine", "as reported"}


@pytest.mark.mutation
@pytest.mark.parametrize("name", list(PROOFS))
def test_each_constant_of_the_theorem_is_refuted_when_sharper(results, name):
    """One mutant a term of the theorem, and its counterexample is one: exact, admissible, it breaks the mutant."""
    last, proof = results[name].steps[-1], PROOFS[name]
    terms = [term for term, value in proof.theorem.terms.items() if value != 0]
    assert len(last.mutants) == len(terms)
    for term, (what, values) in zip(terms, last.mutants.items(), strict=True):
        assert what.startswith(term) and values is not None
        factor = sp.Rational(what.rsplit(" ", 1)[1])
        point = {symbol_of(key): sp.Rational(value) for key, value in values.items()}
        for symbol, value in point.items():
            quantity = QUANTITIES.get(symbol.name)
            assert quantity is None or quantity.domain.admits(np.array(float(value))), (symbol, value)
        whole = proof.conclusion
        old = dict(whole.terms)[term]
        sharper = whole.left - whole.right + old - factor * old
        assert sp.simplify(sharper.subs(point)) > 0
        assert sp.simplify((whole.left - whole.right).subs(point)) <= 0


def symbol_of(name: str) -> sp.Symbol:
    if name in VECTORS and name not in QUANTITIES:
        return VECTORS[name].symbol
    if "@" in name:
        quantity, _, index = name.partition("@")
        return at(quantity, int(index))
    return QUANTITIES[name].symbol


@pytest.mark.parametrize("name", list(PROOFS))
def test_the_ledger_is_the_list_of_assumptions(name):
    proof = PROOFS[name]
    book = ledger(proof)
    assert set(book.assumptions) == set(proof.theorem.assumptions)
    assert book.differences(proof.theorem) == ()


@pytest.mark.parametrize("name", list(PROOFS))
def test_without_any_axiom_a_named_step_fails(results, name):
    """Each axiom of the ledger is used by a step, which has a counterexample without it or cannot use its rule."""
    book = ledger(PROOFS[name])
    for axiom, places in {**book.assumptions, **book.mathematics}.items():
        for place in places:
            proof, _, step_name = place.partition("/")
            step = next(s for s in results[proof].steps if s.name == step_name)
            used = step.axioms[axiom]
            assert used
            for key in used:
                if not key.startswith("rule "):
                    assert step.premises[key], f"{place} without {key}"
                else:  # without its rule it has no hypotheses at all
                    assert all(values for values in step.premises.values()), place


def test_results_are_json_with_exact_numbers(results):
    text = json.dumps({name: result.as_dict() for name, result in results.items()}, allow_nan=False)
    assert json.loads(text)["descent"]["proved"] is True
    for result in results.values():
        for step in result.steps:
            for values in (*step.mutants.values(), *step.premises.values()):
                assert all(Fraction(value) is not None for value in values.values())


def test_proofs_rest_on_what_comes_before_them():
    order = [proof.name for proof in closure(list(PROOFS.values()))]
    for proof in PROOFS.values():
        assert all(order.index(other.name) < order.index(proof.name) for other in proof.rests_on)
    assert len(order) == len(set(order)) == len(PROOFS)


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown proof 'theorem-9'; none is spelled alike"):
        get_proof("theorem-9")


def test_bounds_are_what_is_proved():
    for name, proof in PROOFS.items():
        theorem = BOUNDS.get(name) or {**PATHWISE, **STEPS, **LOCAL_STEPS}[name]
        assert proof.theorem is theorem
        assert isinstance(theorem, Bound) == (proof.left is not None)


def test_every_step_agrees_in_its_units():
    """Change the units of f and of x: all terms of a relation scale alike, so no norm is taken for another."""
    primes = [sp.Integer(p) for p in sp.primerange(2, 800)]
    counts = {"tau": 1, "K": 2, "k": 1, "j": 1, "age": 1, "alpha": sp.Rational(2, 5), "t": sp.Rational(1, 2)}
    counts |= {"H": 3, "since": 1, "since_next": 2, "steps": 2}
    seen = 0
    places = {(p, step) for p in PROOFS.values() for step in p.steps}
    for relation in {f.relation for p, step in places for f in (*p.facts(step), p.fact(step.name))}:
        if relation.vectors:
            continue
        point, scaled = {}, {}
        for number, symbol in enumerate(sorted(relation.difference.free_symbols, key=str)):
            power_f, power_x = QUANTITIES[symbol.name].dimension
            point[symbol] = sp.sympify(counts.get(symbol.name, primes[number]))
            scaled[symbol] = point[symbol] * 2**power_f * 3**power_x
        terms = [t for side in (relation.left, relation.right) for t in sp.Add.make_args(sp.expand(side))]
        values = [(t.xreplace(point), t.xreplace(scaled)) for t in terms]
        ratios = {sp.nsimplify(sp.simplify(after / before)) for before, after in values if before != 0}
        assert len(ratios) <= 1, str(relation)
        seen += len(ratios)
    assert seen > 100
