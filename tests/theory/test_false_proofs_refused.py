"""False theorems whose proofs were once accepted, each by a hole in the checker; every one is refused now."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from theory import pairs
from theory.axioms import UNDER, Fact, define
from theory.checkers.check import check
from theory.errors import InputError
from theory.euclidean.proofs import delayed_gd
from theory.feedback.worst_case import quadratic_run
from theory.inequality import Inequality
from theory.ledger import ledger
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delay, delayed, descent, momentum, momentum_error, noise, shifted, tuned
from theory.metrics import METRICS
from theory.proof import (
    Averaged,
    Direct,
    Expected,
    Induction,
    Instance,
    Integrated,
    NormOf,
    Proof,
    ProofError,
    Relation,
    Step,
    axiom,
    definition,
    eq,
    le,
    split,
    split_all,
    statement,
    symbols,
    with_terms,
)
from theory.proofs import PROOFS
from theory.replica_rules import OverReplicas, Totalled
from theory.sum_rules import Summed

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, eta, tau, k, K, L, E0 = symbols("alpha eta tau k K L E0")
grad, direction = symbols("grad_norm direction_norm")
b = 1 - alpha


def claim(left: sp.Expr, *assumptions: str, **terms: sp.Expr) -> Inequality:
    """A false inequality."""
    return Inequality("false", "false", "false", left, terms, assumptions, "nowhere")


def named(proof: Proof, name: str) -> Step:
    return next(step for step in proof.steps if step.name == name)


def with_step(proof: Proof, name: str, **changes: object) -> Proof:
    """The proof with one step changed."""
    return replace(proof, steps=tuple(replace(s, **changes) if s.name == name else s for s in proof.steps))


def why_not(proof: Proof) -> str:
    result = check(proof)
    assert not result.proved
    return result.reason


# names that a rule takes from the author


@pytest.mark.mutation
def test_the_average_of_one_quantity_is_not_that_of_another():
    """Theorem 1 without its delay: the shifted error's average passed off as the error's."""
    (mean,) = symbols("E_mean_error_norm")
    false = with_terms(mean, start=START * (1 - b**K), momentum_lag=LAG, noise=NOISE)
    steps = [s for s in shifted.RECURSION if not s.name.startswith("average shifted")]
    rule = Averaged({"E_shifted_error_norm": "E_mean_error_norm"}, sums={b ** (k + 1): b * (1 - b**K) / alpha})
    theorem = claim(mean, "lmo", start=START * (1 - b**K), momentum_lag=LAG, noise=NOISE)
    end = Step("a", ("expected shifted error, limits",), false, rule)
    with pytest.raises(ProofError, match="E_shifted_error_norm -> E_mean_error_norm is not a quantity and its average"):
        Proof(theorem, (descent.LENGTH, *noise.STEPS, *steps, end))


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("rule", "left", "reason"),
    [
        (Averaged({"direction_norm": "mean_grad_norm"}), "mean_grad_norm", "is not a quantity and its average"),
        (Summed(wholes={"direction_norm": "grad_norm"}), "grad_norm", "is not a quantity and its sum"),
        (
            Averaged({}, (("direction_norm", "grad_norm", "f_first", "f_last"),)),
            "grad_norm",
            "are not known to telescope",
        ),
        (Averaged({"grad_norm": "mean_grad_norm"}, axioms=()), "grad_norm", "rests on one of"),
    ],
)
def test_pairs_of_names_are_in_a_table(rule, left, reason):
    """norm(d_k) <= 1 turned into a gradient of at most 1."""
    theorem = claim(*symbols(left), "lmo", "constant-step", one=sp.Integer(1))
    with pytest.raises(ProofError, match=reason):
        Proof(theorem, (Step("s", (axiom("lmo_norm"),), statement(theorem), rule),))
    with pytest.raises(ProofError, match=reason):
        rule.apply(le(direction, 1))


@pytest.mark.mutation
def test_an_integral_is_that_of_its_quantity():
    """dualnorm(grad f) <= L norm(step)^2/2."""
    r, t, step = symbols("segment_inner t step_norm")
    theorem = claim(grad, "duality", "smoothness", half=L * step**2 / 2)
    along = Step("a", (axiom("duality_on_segment"), axiom("smoothness_on_segment")), le(r, L * t * step**2))
    end = Step("b", ("a",), statement(theorem), Integrated("segment_inner", "grad_norm"))
    with pytest.raises(ProofError, match="grad_norm is not known to be that of segment_inner"):
        Proof(theorem, (along, end))


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Induction({"walk_norm_before": "grad_norm"}, (), ("step_norm",), "j"), "walk_norm_before -> grad_norm"),
        (Induction({"walk_norm_before": "walk_norm"}, (), ("gap_norm",), "j"), "gap_norm is not known to vary"),
        (Induction({"walk_norm_before": "walk_norm"}, (), (), "tau"), "walk_norm_before is counted by j"),
        (Induction({"walk_norm_before": "walk_norm"}, (), (), "j", axioms=()), "rests on constant-step"),
        (Induction({}, (), (), "j"), "nothing is not one of the quantities of the step before"),
    ],
)
def test_an_induction_knows_what_it_hands_on(rule, reason):
    steps = tuple(replace(s, rule=replace(rule, base=s.rule.base)) if s.name == "j steps" else s for s in delay.STEPS)
    with pytest.raises(ProofError, match=reason):
        Proof(delay.PROOF.theorem, steps)


@pytest.mark.mutation
def test_a_sum_over_blocks_takes_no_coefficient_that_differs_between_them():
    """The windows of two blocks have different lengths j."""
    apart, squares, j = symbols("block_apart_square block_window_squares j")
    rule = Summed(wholes={"block_apart_square": "apart_square", "block_window_squares": "window_squares"})
    with pytest.raises(ProofError, match="what j adds up to"):
        rule.apply(le(apart, j * squares))


@pytest.mark.mutation
def test_an_average_takes_no_coefficient_that_changes():
    (delta,) = symbols("delta")
    with pytest.raises(ProofError, match="the coefficient of grad_norm changes with k"):
        Averaged({"grad_norm": "mean_grad_norm"}).apply(le(delta * grad, L))


# facts, left sides and conditions


def test_a_fact_made_by_hand_is_refused():
    """dualnorm(grad f) <= E0 as a definition, as a condition, under another fact's name, and as a step's conclusion."""
    free = le(grad, E0)
    theorem = claim(grad, start=E0)
    genuine = definition("lag")
    for fact, reason in (
        (Fact("free lunch", "definition", free), "'free lunch' cannot be made"),
        (Fact("definition lag", "definition", free, source="lag"), "is not what its name says"),
        (replace(genuine, relation=free), "is not what its name says"),
        (replace(definition("first noise"), scope="every"), "is not what its name says"),
        (replace(axiom("lmo_norm"), relation=free), "is not what its name says"),
        (replace(axiom("lmo_norm"), axiom="norm"), "is not what its name says"),
        (replace(axiom("smoothness", "bias"), relation=free), "is not what its name says"),
        (Fact("condition", "condition", free), "is no condition of the theorem"),
        (Fact("step", "step", free), "is not one to start from"),
        (Fact("theorem descent", "theorem", free), "is not one to start from"),
    ):
        with pytest.raises(ProofError, match=reason):
            Proof(theorem, (Step("s", (fact,), statement(theorem)),))
    assert replace(genuine, relation=free) != genuine


def test_the_terms_of_a_conclusion_are_its_right_side():
    """The theorem's terms on a conclusion that is weaker."""
    with pytest.raises(InputError, match="its terms add up to 1"):
        Relation(grad, "<=", E0 + 1, (("one", sp.Integer(1)),))


def test_the_left_side_is_that_of_the_metric():
    p = momentum.PROOF
    moved = replace(momentum.PROOF.theorem, name="false", metric=delayed.PROOF.theorem.metric)
    end = replace(p.steps[-1], conclusion=statement(moved, p.left))
    with pytest.raises(ProofError, match="left = E_mean_momentum_norm is not its metric, which is E_mean_grad_norm"):
        Proof(moved, (*p.steps[:-1], end), left=p.left)
    with pytest.raises(ProofError, match="left = None is not its metric"):
        Proof(moved, (*p.steps[:-1], end))
    other = replace(moved, metric=r"\|\nabla f(x_0)\|")
    with pytest.raises(ProofError, match="has no quantity at x"):
        Proof(other, (*p.steps[:-1], end), left=p.left)


def test_an_inequality_has_its_own_left_side():
    """dualnorm(e_k) <= 1 from norm(d_k) <= 1."""
    theorem = claim(symbols("error_norm")[0], "lmo", one=sp.Integer(1))
    end = Step("s", (axiom("lmo_norm"),), with_terms(direction, one=sp.Integer(1)))
    with pytest.raises(ProofError, match="an inequality has its own"):
        Proof(theorem, (end,), left=direction)
    with pytest.raises(ProofError, match="which is not the theorem"):
        Proof(theorem, (end,))
    with pytest.raises(InputError, match="it has its own"):
        statement(theorem, direction)


def test_a_condition_that_is_used_is_stated():
    p = delayed_gd.PROOF
    free = replace(p.theorem, name="false", conditions=())
    with pytest.raises(ProofError, match=r"gamma\*\*2\*tau\*\*2 \+ L\*gamma <= 1 is no condition of the theorem"):
        Proof(free, p.steps, left=p.left)
    corollary = Proof(free, (Step("s", (p,), statement(free, p.left)),), left=p.left)
    assert "condition L**2*gamma**2*tau**2 + L*gamma <= 1 is used and not stated" in ledger(corollary).differences(free)
    assert list(ledger(p).conditions.values()) == [("delayed-gd/theorem",)]


# cases, expectations, axioms with arguments


def test_cases_of_later_steps_are_not_all_steps():
    """Lemma C without E0, from cases that leave the first step out."""
    (lag,) = symbols("lag_norm")
    theorem = replace(
        momentum_error.PROOF.theorem,
        name="false",
        terms={n: t for n, t in momentum_error.PROOF.theorem.terms.items() if n != "start"},
    )
    steps = []
    for step in momentum_error.STEPS[:-1]:
        if step.name == "unrolled":
            free = with_terms(lag, x=k * b * E0)
            steps.append(Step("k times", ("first error in norms",), free, cases=split()))
        steps.append(step)
    steps.append(Step("lemma", ("unrolled", "error and noise"), statement(theorem), cases=split_all()))
    with pytest.raises(ProofError, match="k times: its cases .* are not known to be all"):
        Proof(theorem, tuple(steps))
    walk = named(delay.PROOF, "j steps")
    with pytest.raises(ProofError, match="are not known to be all"):  # of an induction over another number
        with_step(delay.PROOF, "j steps", rule=replace(walk.rule, cases=split()))


@pytest.mark.mutation
def test_an_expectation_leaves_nothing_random_on_its_path():
    """f(z_{k+1}) - f(z_k) would be at most its expectation on every path."""
    f_now, f_next, E_now, E_next, inner, mean = symbols("f_now f_next E_f_now E_f_next inner_grad segment_mean")
    theorem = claim(f_next, "lmo", now=f_now, mean=E_next - E_now)
    along = axiom("objective_along_step")
    expected = Step("p", (along,), eq(E_next - E_now, -eta * inner + mean), Expected())
    proof = Proof(theorem, (expected, Step("s", ("p", along), statement(theorem))))
    assert "nothing says what the expectation of inner_grad is" in why_not(proof)


def test_windows_hold_what_the_table_says():
    """mean|grad f(x)|^2 <= tau mean|grad f(z)|^2; and tau for windows that may be longer."""
    with pytest.raises(InputError, match="are no sum over windows"):
        axiom("overlap", "grad_square", "taken_square", "tau")
    together, one = symbols("mean_window_squares mean_update_square")
    theorem = claim(together, "block-sgd", "block-delay", tau=tau * one)
    end = Step("s", (axiom("overlap", "window_squares", "update_square", "tau"),), statement(theorem))
    with pytest.raises(ProofError, match="holds only where delayed-gd is assumed"):
        Proof(theorem, (end,))


def test_a_tuned_step_is_that_of_the_metric():
    with pytest.raises(InputError, match="c = 0 is not allowed; give one of 2, 1"):
        axiom("tuned_step", 0)
    p = tuned.CLASSICAL
    for others in ((axiom("tuned_step", 1),), (axiom("tuned_step", 2), axiom("tuned_step", 1))):
        end = replace(p.steps[-1], premises=(delayed.PROOF, *others))
        with pytest.raises(ProofError, match="tuned_step 1 is not the best step of its metric"):
            Proof(p.theorem, (end,), left=p.left)


# x and y


def test_what_holds_at_x_is_not_cited_at_y():
    """Lemma C has min(k, tau) steps to the gradient at x only; x^2/2 with alpha = tau = 1 breaks it at y."""
    error, noise_norm = symbols("error_norm noise_norm")
    lemma = momentum_error.PROOF
    assumptions = (*lemma.theorem.assumptions, "error-feedback")
    theorem = claim(error, *assumptions, **dict(lemma.theorem.terms))
    with pytest.raises(ProofError, match="momentum-error is about x, the theorem about y"):
        Proof(theorem, (Step("s", (lemma, axiom("delay_beyond_one")), statement(theorem), cases=split_all()),))
    with pytest.raises(ProofError, match="holds at x.*, the theorem is about y"):
        Proof(theorem, lemma.steps)
    run = quadratic_run("extrapolate", 1, Fraction(1, 2), 6)
    assert abs(run.x[2] - run.y[3]) > 1  # dualnorm(e_3) at L = eta = 1; the lemma says at most min(3, tau) = 1
    f_next, f_now = symbols("f_next f_now")
    both = claim(f_next, *assumptions, "duality", now=f_now)
    with pytest.raises(ProofError, match="momentum-error is about x"):
        Proof(both, (Step("s", (descent.PROOF_AT_Y, lemma), statement(both)),))
    with pytest.raises(ProofError, match="ef-descent is about y"):
        Proof(claim(f_next, now=f_now), (Step("s", (descent.PROOF_AT_Y,), le(f_next, f_now)),))


def test_places_of_shipped_proofs():
    at_y = {name for name, proof in PROOFS.items() if proof.place == "y"}
    assert at_y == {name for name in PROOFS if name.startswith(("ef-", "error-feedback"))}
    with pytest.raises(InputError, match="place: 'z' is not one of"):
        define("nowhere", "nothing", eq(symbols("extra")[0], tau), place="z")


def test_instances_only_where_they_are_one():
    apart, squares = symbols("apart_square window_squares")
    p = delayed_gd.PROOF
    theorem = replace(p.theorem, name="false", assumptions=("block-sgd", "block-delay"))
    with pytest.raises(ProofError, match="is an instance only where delayed-gd is assumed"):
        Proof(theorem, tuple(s for s in p.steps if s.name == "apart by squares" or s in p.steps[:2]), left=p.left)
    walk = named(delay.PROOF, "back to the gradient")
    at_y = claim(walk.conclusion.left, "error-feedback", age=walk.conclusion.right)
    one = Step("j steps", (axiom("lmo_norm"),), named(delay.PROOF, "j steps").conclusion)
    with pytest.raises(ProofError, match="is no instance at y"):
        Proof(at_y, (one, replace(walk, conclusion=statement(at_y))))


# blocks


@pytest.mark.mutation
def test_what_is_constant_in_a_block_is_not_constant_in_all():
    """A statement with the longest window of one block, turned into one about the whole model."""
    block, squares, longest = symbols("block_apart_square block_window_squares block_delay")
    with pytest.raises(ProofError, match="block_delay has no name at one block"):
        Instance("one block").apply(le(block, longest * squares))
    with pytest.raises(ProofError, match="nothing says what block_delay adds up to"):
        Averaged({"E_apart_square": "mean_apart_square"}).apply(le(symbols("E_apart_square")[0], longest * L))


def test_a_rule_is_one_of_the_list_and_rests_on_its_axioms():
    class Luck(Direct):
        def apply(self, relation: Relation) -> Relation:
            return le(grad, E0)

    with pytest.raises(ProofError, match="Luck is no type that a proof is made of"):
        with_step(delay.PROOF, "lemma", rule=Luck())
    with pytest.raises(ProofError, match="its rule rests on"):
        with_step(delay.PROOF, "one step more", rule=NormOf(axioms=()))


def test_no_entry_of_a_table_is_idle():
    """A pair that no proof uses would be an open door."""
    rules = [(step.rule, proof) for proof in PROOFS.values() for step in proof.steps]
    averages = [r for r, _ in rules if type(r) is Averaged]
    sums = [r for r, _ in rules if isinstance(r, Totalled)]
    inductions = [r for r, _ in rules if isinstance(r, Induction)]
    assert set(pairs.MEANS) == {name for r in averages for name in r.means}
    assert pairs.TELESCOPING == {names for r in averages for names in r.telescoping}
    assert set(pairs.TOTALS) == {name for r in sums for name in r.means}
    assert pairs.ENDS == {names for r in sums for names in r.telescoping}
    assert set(pairs.REPLICAS) == {name for r, _ in rules if isinstance(r, OverReplicas) for name in r.means}
    assert set(pairs.BEFORE) == {name for r in inductions for name in r.before}
    assert set(pairs.INSTEAD.values()) <= {r.axioms for r in inductions}
    assert set(pairs.VARYING) == {name for r in inductions for name in r.varying}
    assert set(pairs.INTEGRALS) == {r.pointwise for r, _ in rules if isinstance(r, Integrated)}
    assert set(pairs.WHOLES) == {name for r, _ in rules if isinstance(r, Summed) for name in r.wholes}
    bounds = [proof for proof in PROOFS.values() if proof.left is not None]
    assert set(METRICS) == {(proof.theorem.metric, proof.place == "y") for proof in bounds}
    used = {fact.key for proof in PROOFS.values() for step in proof.steps for fact in proof.facts(step)}
    assert set(UNDER) <= used
