"""False theorems once accepted because of how rules, scopes and values were put together; every one is refused now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy as sp

from theory import starts
from theory.axioms import COUNTED_BY_J, SCOPES
from theory.bound import Bound
from theory.checkers.check import check, check_step
from theory.checkers.flatten import Flattener
from theory.inequality import Inequality
from theory.lmo.proofs import delay
from theory.methods import METHODS, families
from theory.proof import (
    Averaged,
    Everywhere,
    Expected,
    Fact,
    Induction,
    Instance,
    NormOf,
    Proof,
    ProofError,
    Relation,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    vectors,
)
from theory.proofs import PROOFS
from theory.registry import BOUNDS
from theory.replica_rules import Totalled

alpha, eta, gamma, tau, k, K, j, S, E0 = symbols("alpha eta gamma tau k K j S E0")
b = 1 - alpha


def claim(left: sp.Expr, *assumptions: str, **terms: sp.Expr) -> Inequality:
    return Inequality("false", "false", "false", left, terms, assumptions, "nowhere")


def one(left: sp.Expr, right: sp.Expr, assumptions: tuple[str, ...], *premises: Fact) -> Proof:
    """One step from facts to left <= right."""
    theorem = claim(left, *assumptions, one=sp.sympify(right))
    return Proof(theorem, (Step("s", premises, statement(theorem)),))


def named(steps: tuple[Step, ...], name: str) -> Step:
    return next(step for step in steps if step.name == name)


# what telescopes, once

PAIR = ("E_delta_mean_weighted_before", "E_delta_mean_weighted", "E_weighted_start", "E_weighted_end")


def test_what_telescopes_counts_once():
    """alpha dbar <= (2 alpha - 1) mean + 2 (1-alpha) (end - start)/K was proved."""
    now, before, drift = symbols("E_delta_mean_weighted E_delta_mean_weighted_before E_delta")
    mean, dbar, start, end = symbols("E_mean_weighted dbar E_weighted_start E_weighted_end")
    by_step, sharper = eq(now, b * before + alpha * drift), eq(now, b * before + alpha * drift / 2)
    first = Step("w", (definition("weighted drift"),), by_step, Expected(), mutant=sharper)
    theorem = claim(
        alpha * dbar,
        "constant-step",
        "error-feedback",
        m=(2 * alpha - 1) * mean,
        e=2 * b * end / K,
        s=-2 * b * start / K,
    )
    means = {"E_delta_mean_weighted": "E_mean_weighted", "E_delta": "dbar"}
    with pytest.raises(ProofError, match="E_delta_mean_weighted_before is given twice"):
        Proof(theorem, (first, Step("a", ("w",), statement(theorem), Averaged(means, (PAIR,) * 2, first=1))))
    assert Averaged(means, (PAIR,), first=1).apply(by_step)


def test_what_telescopes_counts_once_in_sums():
    ends = ("E_f_now", "E_f_next", "E_f_first", "E_f_end")
    with pytest.raises(ProofError, match="sum over steps: E_f_now is given twice"):
        Totalled({}, (ends,) * 2, axioms=("local-sgd", "finite-sum")).check_names()


# powers of what may be negative


@pytest.mark.parametrize("power", [(1 - 2 * alpha) ** k, (1 - 2 * alpha) ** (2 * k + 1)])
def test_a_power_of_what_may_be_negative_may_be_negative(power: sp.Expr):
    pytest.importorskip("z3")
    (growth,) = symbols("noise_growth")
    proof = one(growth - power, 1 - b ** (2 * k + 2), (), definition("noise growth"))
    assert "does not follow" in check(proof).reason


def test_a_power_of_what_is_not_negative_is_none():
    pytest.importorskip("z3")
    (growth,) = symbols("noise_growth")
    proof = one(growth - b**k, 1 - b ** (2 * k + 2), (), definition("noise growth"))
    step = proof.steps[0]
    sharper = Step("s", step.premises, step.conclusion, mutant=le(growth - b**k / 2, 1 - b ** (2 * k + 2)))
    assert "does not follow" not in check_step(proof, sharper).reason
    assert Flattener()((1 - 2 * alpha) ** k).is_nonnegative is None


# one method a theorem


def test_every_registered_theorem_is_about_one_method():
    assert {len(families(bound.assumptions)) for bound in BOUNDS.values()} == {1}
    assert {len(families(proof.theorem.assumptions)) for proof in PROOFS.values()} <= {0, 1}
    assert all(any(name in bound.assumptions for bound in BOUNDS.values()) for own in METHODS.values() for name in own)


@pytest.mark.parametrize(
    "assumptions", [("local-sgd", "delayed-gd"), ("lmo", "delayed-gd"), ("constant-step", "block-sgd")]
)
def test_methods_do_not_meet(assumptions: tuple[str, ...]):
    """S^2 (K-1) <= K was proved of LocalSGD with K = S^2 T and delayed gradient descent with K = T + 1."""
    with pytest.raises(ProofError, match="its assumptions are of two methods"):
        one(S**2 * (K - 1), K, assumptions, axiom("whole_steps"), axiom("up_to_the_last_iterate"))


def test_the_steps_of_two_methods_are_not_one():
    """eta <grad, d> <= gamma <grad, G> was proved."""
    inner, update = symbols("inner_grad inner_update")
    facts = axiom("objective_along_step"), axiom("objective_along_update")
    for assumptions in ((), ("lmo",), ("block-sgd",)):
        with pytest.raises(ProofError, match="holds only where one of"):
            one(eta * inner, gamma * update, assumptions, *facts)
    for name in ("step", "sgd move"):
        with pytest.raises(ProofError, match=f"definition {name} holds only where one of"):
            one(symbols("step_norm")[0], eta, (), definition(name))


# what j counts has scopes of its own


def test_no_walk_is_not_the_first_step():
    """walk_norm + k taken_step_norm <= eta k (j + 1) was proved: at k = 0 from j = 0, at k > 0 for every j."""
    walk, taken, stale = symbols("walk_norm taken_step_norm stale_step_norm")
    theorem = claim(walk + k * taken, "lmo", "constant-step", "fixed-delay", w=k * j * eta, t=k * eta)
    steps = (
        *delay.STEPS[:5],
        Step("zero", (definition("walk of no step"),), le(walk, 0 * eta), NormOf(), mutant=le(walk, -eta)),
        Step("old", ("a step is at most eta",), le(stale, eta), Instance("an old step")),
        Step("t", ("old", axiom("taken_one_step_on")), le(taken, eta)),
        Step("end", ("zero", "j steps", "t"), statement(theorem), Everywhere()),
    )
    with pytest.raises(ProofError, match="its premises hold at later and walk's first steps"):
        Proof(theorem, steps)


def test_an_induction_over_steps_does_not_join_what_j_counts():
    (walk,) = symbols("walk_norm")
    zero = Step("zero", (definition("walk of no step"),), le(walk, 0 * eta), NormOf(), mutant=le(walk, -eta))
    on = named(delay.STEPS, "one step more")
    theorem = claim(walk, "lmo", "constant-step", "fixed-delay", w=j * eta)
    rule = Induction({"lag_norm_before": "lag_norm"}, ("zero",))
    steps = (*delay.STEPS[:2], zero, on, Step("end", ("zero", on.name), statement(theorem), rule))
    with pytest.raises(ProofError, match="zero holds at walk's first steps"):
        Proof(theorem, steps)
    assert len(SCOPES) == 4 + 2 * len(COUNTED_BY_J)


# E0 on the path, and in the mean


def first_lag() -> tuple[Step, ...]:
    """|w_0| = (1-alpha) E0 on the path, and E|w_0| = (1-alpha) E0 in the mean."""
    lag, mean = symbols("lag_norm E_lag_norm")
    lag_vector, start = vectors("lag start")
    names = ("lag", "error", "momentum", "first noise", "start")
    facts = (*map(definition, names), axiom("first_gradient"))
    return (
        Step("w0", facts, eq(lag_vector, b * start)),
        Step("n0", ("w0",), eq(lag, b * E0), NormOf()),
        Step("e0", ("n0",), eq(mean, b * E0), Expected()),
    )


def test_the_norm_on_the_path_is_not_its_expectation():
    """lag_norm <= E_lag_norm was proved at k = 0."""
    lag, mean = symbols("lag_norm E_lag_norm")
    theorem = claim(lag, "lmo", "fixed-delay", x=mean)
    with pytest.raises(ProofError, match="step end: E0 is the norm on the path in one premise, and its expectation in"):
        Proof(theorem, (*first_lag(), Step("end", ("n0", "e0"), statement(theorem))))


def test_what_e0_is_goes_with_a_fact():
    theorem = claim(symbols("lag_norm")[0], "lmo", "fixed-delay", x=b * E0)
    facts = [Fact("n0", "step", le(E0, 1), start=kind) for kind in (starts.ON_THE_PATH, starts.IN_THE_MEAN, "")]
    step = Step("s", ("n0",), statement(theorem))
    assert [starts.start_of("", step, [fact]) for fact in facts] == [starts.ON_THE_PATH, starts.IN_THE_MEAN, ""]
    assert starts.start_of("", replace(step, rule=Expected()), facts) == starts.IN_THE_MEAN
    with pytest.raises(ProofError, match="E0 is the norm"):
        starts.start_of("", step, facts)
    ends = {name: proof.fact(proof.steps[-1].name).start for name, proof in PROOFS.items()}
    assert ends["momentum-error"] == starts.ON_THE_PATH and ends["delayed-lmo"] == starts.IN_THE_MEAN


# values that are not what they seem


class Agreeable(Fact):
    """Says that it is equal to whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Fact.__hash__


class AnyRelation(Relation):
    __eq__ = Agreeable.__eq__
    __hash__ = Relation.__hash__


class OtherFact(Proof):
    """Has facts of its own."""

    def __post_init__(self) -> None:
        pass

    def fact(self, premise: Fact | str | Proof) -> Fact:
        return replace(axiom("lmo_norm"), relation=le(symbols("grad_norm")[0], 1))


class Unlike(dict):
    """A table that may say something else when it is read again."""


class Twofold(str):
    """A name that may be another one when it is read again."""


FALSE = claim(symbols("grad_norm")[0], "lmo", one=sp.Integer(1))
TRUE = claim(symbols("direction_norm")[0], "lmo", one=sp.Integer(1))


def agreeable_fact() -> Proof:
    own = axiom("lmo_norm")
    false = Agreeable(**{**vars(own), "relation": le(FALSE.left, 1)})
    return Proof(FALSE, (Step("s", (false,), statement(FALSE)),))


def agreeable_relation() -> Proof:
    fact = replace(axiom("lmo_norm"), relation=AnyRelation(FALSE.left, "<=", sp.Integer(1)))
    return Proof(FALSE, (Step("s", (fact,), statement(FALSE)),))


def subclass_of_proof() -> Proof:
    return OtherFact(FALSE, (Step("s", (axiom("lmo_norm"),), statement(FALSE)),))


def changed_afterwards() -> Proof:
    proof = Proof(TRUE, (Step("s", (axiom("lmo_norm"),), statement(TRUE)),))
    false = replace(axiom("lmo_norm"), relation=le(FALSE.left, 1))
    object.__setattr__(proof, "steps", (Step("s", (false,), statement(FALSE)),))
    object.__setattr__(proof, "theorem", FALSE)
    return proof


def changing_table() -> Proof:
    rule = Averaged(Unlike({"grad_norm": "mean_grad_norm"}))
    return Proof(TRUE, (Step("s", (axiom("lmo_norm"),), statement(TRUE), rule),))


def changing_name() -> Proof:
    theorem = claim(symbols("inner_error")[0], "duality", one=symbols("error_norm direction_norm")[0])
    fact = axiom("duality", Twofold("error"), "direction")
    return Proof(theorem, (Step("s", (fact,), statement(theorem)),))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (agreeable_fact, "Agreeable is no type that a proof is made of"),
        (agreeable_relation, "AnyRelation is no type"),
        (subclass_of_proof, "OtherFact is no type that a proof is made of"),
        (changed_afterwards, "is not what its name says"),
        (changing_table, "Unlike is no type"),
        (changing_name, "Twofold is no type"),
    ],
)
def test_values_are_what_they_seem(make: Callable[[], Proof], words: str):
    pytest.importorskip("z3")
    with pytest.raises(ProofError, match=words):
        check(make())


# what is chosen where nothing is given


@pytest.mark.parametrize("optional", [{"sigma": 0}, {"E0": 0}, {"sigma": 0, "E0": 0}])
def test_a_choice_is_one_that_the_theorem_covers(optional: dict[str, int]):
    proof = PROOFS["delayed-lmo"]
    with pytest.raises(ProofError, match="may be taken where it is left out"):
        replace(proof, theorem=replace(proof.theorem, name="false", optional=optional))


@pytest.mark.parametrize("term", [eta * symbols("E0")[0] * symbols("r")[0] ** -1, -symbols("r")[0] * eta * E0])
def test_the_worst_r_is_one_only_where_the_terms_grow_with_it(term: sp.Expr):
    proof = PROOFS["star-convex"]
    assert isinstance(proof.theorem, Bound)
    for terms, best in ((proof.theorem.terms, sp.Rational(1, 2)), ({**proof.theorem.terms, "start": term}, 1)):
        with pytest.raises(ProofError, match="may be taken where it is left out"):
            replace(proof, theorem=replace(proof.theorem, name="false", terms=terms, optional={"r": best}))


def test_a_step_is_checked_anew_where_its_terms_or_scopes_differ():
    """Two relations that differ in how the right side is named are equal, and so are steps of them."""
    pytest.importorskip("z3")
    proof = Proof(TRUE, (Step("s", (axiom("lmo_norm"),), statement(TRUE)),))
    halves = replace(TRUE, terms={"one": sp.Rational(1, 2), "two": sp.Rational(1, 2)})
    known: dict = {}
    steps = [Step("s", (axiom("lmo_norm"),), statement(theorem)) for theorem in (TRUE, halves)]
    found = [check_step(proof, step, known) for step in (*steps, *steps)]
    assert steps[0] == steps[1] and len(known) == 2 and found[:2] == found[2:]
    assert [len(result.mutants) for result in found[:2]] == [1, 2]
