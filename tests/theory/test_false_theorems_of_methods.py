"""False theorems whose proofs took a fact from another method, or fixed what the theorem is about: all are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

import theory.proofs  # noqa: F401  (all schemas)
from theory.axioms import UNDER, needs
from theory.checkers.check import check_step
from theory.inequality import Inequality
from theory.ledger import ledger
from theory.lmo import error_feedback_path
from theory.lmo.proofs import error_feedback_path as error_feedback_proofs
from theory.lmo.proofs import nesterov
from theory.metrics import METRIC_UNDER, METRICS
from theory.pipedream.proofs import any_delay, exact, variance
from theory.proof import (
    Instance,
    Proof,
    ProofError,
    SquareOf,
    Step,
    axiom,
    definition,
    eq,
    le,
    split_between,
    statement,
    symbols,
)
from theory.symbols import SET_BY_USER
from theory.unfolding import Unfolded

S, G, B, H, K, L, M = symbols("S G B H K L M")
alpha, eta, sigma, tau, theta, gamma, k, s = symbols("alpha eta sigma tau theta gamma k s")


def claim(left: sp.Expr, right: object, *assumptions: str) -> Inequality:
    return Inequality("false", "false", "false", left, {"right": sp.sympify(right)}, assumptions, "nowhere")


def one_step(theorem: Inequality, *premises: object, rule: object = None) -> Proof:
    rule = {} if rule is None else {"rule": rule}
    return Proof(theorem, (Step("s", premises, statement(theorem), **rule),))


# A definition fixes what the theorem is about


def test_the_split_is_not_fixed_where_the_theorem_is_about_any():
    """theta <= 1; and the bound of pipedream-exact-split with theta where 1 + 1/theta belongs."""
    with pytest.raises(ProofError, match="definition equal split fixes theta, of any value of which"):
        one_step(claim(theta, 1), definition("equal split"))
    with pytest.raises(ProofError, match="definition equal split fixes theta"):
        one_step(claim(theta, 1), definition("window"), rule=Unfolded(name="equal split"))
    terms = dict(exact.SPLIT.theorem.terms)
    false = replace(exact.SPLIT.theorem, name="false", terms=terms | {"delay": terms["delay"].subs(theta, 1) * theta})
    last = exact.SPLIT.steps[-1]
    premises = (*last.premises, definition("equal split"))
    end = replace(last, premises=premises, conclusion=statement(false, exact.SPLIT.left))
    with pytest.raises(ProofError, match="definition equal split fixes theta"):
        Proof(false, (*exact.SPLIT.steps[:-1], end), exact.SPLIT.left)


def test_nor_is_it_by_a_theorem_that_is_cited():
    """|theta u - v|^2 with theta = 1 is no statement about any theta."""
    square, drift, inner, rest = symbols(
        "block_split_square block_drift_square block_inner_parts block_martingale_square"
    )
    of_one = claim(square, drift - 2 * inner + rest)
    opened = eq(square, theta**2 * drift - 2 * theta * inner + rest)
    cited = Proof(
        of_one,
        (
            Step("square", (definition("split"),), opened, SquareOf()),
            Step("s", ("square", definition("equal split")), statement(of_one)),
        ),
    )
    false = replace(claim(square + theta * S, of_one.right + theta * S), name="of any")
    with pytest.raises(ProofError, match="definition equal split fixes theta"):
        one_step(false, cited)


def test_a_number_of_steps_is_not_a_number_of_microbatches():
    """K <= M, of any K."""
    with pytest.raises(ProofError, match="microbatches holds only where pipedream is assumed"):
        one_step(claim(K, M), definition("microbatches"))
    with pytest.raises(ProofError, match="definition microbatches fixes K"):
        one_step(claim(K, M, "pipedream"), definition("microbatches"))
    assert {"theta", "K", "M", "eta", "tau", "gamma"} <= SET_BY_USER
    assert not SET_BY_USER & {"L", "sigma", "Delta0", "f_now", "noise_growth"}


# The metric


def test_a_bound_has_the_count_of_its_metric():
    """C, about steps of one block, said of microbatches; K where the metric counts M; and M where it counts K."""
    per_microbatch = next(metric for metric, _ in METRICS if "m<M" in metric)
    theorem = replace(any_delay.C.theorem, name="false", metric=per_microbatch)
    with pytest.raises(ProofError, match="its metric is mean_grad_square only where pipedream is assumed"):
        Proof(theorem, any_delay.C.steps, any_delay.C.left)
    for proof, own, other in ((exact.AGE, M, K), (any_delay.C, K, M)):
        terms = {name: term.subs(own, other) for name, term in proof.theorem.terms.items()}
        with pytest.raises(ProofError, match=f"{other} occurs in it, and its metric counts {own}"):
            Proof(replace(proof.theorem, name="false", terms=terms), proof.steps, proof.left)


def test_the_norm_where_the_oracle_is_called_is_nesterovs():
    own = nesterov.OWN_NORM
    free = replace(own.theorem, assumptions=tuple(name for name in own.theorem.assumptions if name != "nesterov"))
    with pytest.raises(ProofError, match="its metric is E_mean_called_norm only where nesterov is assumed"):
        Proof(free, own.steps, own.left)
    assert set(METRIC_UNDER) <= set(METRICS)


# Walks and windows


@pytest.mark.parametrize(
    ("schema", "instance", "right", "assumption"),
    [
        ("short_delay", "walk to the reference", tau, "delayed-gd"),
        ("length_of_a_window", "walk to the reference", sp.Min(k, tau), "delayed-gd"),
        ("short_window", "walk to the reference", symbols("delta_max")[0], "block-delay"),
        ("walk_of_a_round", "walk to the reference", H - 1, "local-sgd"),
        ("age_of_a_block", "walk back to the gradient", symbols("block_delay")[0], "pipedream"),
        ("walk_of_a_round", "samples since the last average", H - 1, "local-sgd"),
    ],
)
def test_the_length_of_a_window_is_not_that_of_a_walk(schema, instance, right, assumption):
    """reference_age <= delta_max: min(k, s) of the reference may be anything."""
    left = symbols("age" if "back" in instance else "j" if "average" in instance else "reference_age")[0]
    with pytest.raises(ProofError, match=f"{schema} says nothing of a walk"):
        one_step(claim(left, right, assumption), axiom(schema), rule=Instance(instance))


def test_nor_is_it_where_a_walk_is_named_with_it():
    """z_{i+j} - z_i has the length of j steps at any j; the window's j is not that of the walk to the reference."""
    walk, j, gap, back = symbols("walk_norm j reference_gap_norm reference_age")
    joined = le(j * (1 + walk), tau * (1 + walk))
    theorem = claim(back * (1 + gap), tau * (1 + gap), "delayed-gd")
    steps = (
        Step("joined", (axiom("short_delay"),), joined),
        Step("s", ("joined",), statement(theorem), Instance("walk to the reference")),
    )
    with pytest.raises(ProofError, match="short_delay is about the length of some walks"):
        Proof(theorem, steps)
    lemma = replace(claim(joined.left, joined.right, "delayed-gd"), name="joined")
    cited = Proof(lemma, (replace(steps[0], conclusion=statement(lemma)),))
    with pytest.raises(ProofError, match="short_delay is about the length of some walks"):
        one_step(theorem, cited, rule=Instance("walk to the reference"))


def test_the_distance_of_the_reference_is_not_bounded_by_the_delay():
    """|min(k, tau) - min(k, s)| <= tau is false at tau = 0, k = s = 1."""
    age = symbols("reference_age")[0]
    theorem = claim(sp.Abs(sp.Min(k, tau) - sp.Min(k, s)), tau, "delayed-gd", "fixed-delay")
    first = Step("a", (axiom("short_delay"),), le(age, tau), Instance("walk to the reference"))
    end = Step("b", ("a", axiom("steps_to_the_reference")), statement(theorem), cases=split_between())
    with pytest.raises(ProofError, match="short_delay says nothing of a walk|are of two methods"):
        Proof(theorem, (first, end))


# Facts of one method


ONLY_UNDER = {
    "block_of_the_update": ("block-sgd", ("pipedream", "block-second-moment")),
    "noise_is_orthogonal": ("pipedream", ("unbiased", "block-sgd")),
    "variance_of_a_block": ("pipedream", ("variance", "block-sgd")),
    "drawn_along_the_window": ("block-sgd", ("independent-delay", "unbiased")),
    "drawn_along_the_walk": ("block-sgd", ("independent-delay", "unbiased")),
    "mean_along_the_window": ("independent-delay", ("unbiased", "block-sgd")),
    "mean_along_the_walk": ("independent-delay", ("unbiased", "block-sgd")),
    "variance_of_the_gradient": ("unbiased", ("variance", "pipedream")),
    "drawn_mean": ("unbiased", ("block-sgd",)),
    "whole_mean": ("unbiased", ("pipedream",)),
    "norm_of_the_mean": ("unbiased", ("block-sgd",)),
    "norm_of_the_whole_mean": ("unbiased", ("block-sgd",)),
    "independent_samples": ("unbiased", ("local-sgd", "variance")),
    "square_of_the_step": ("euclidean", ("lmo",)),
    "back_to_the_weights": ("delay-one", ("error-feedback",)),
    "lmo_value_where_called": ("nesterov", ("lmo",)),
    "inexact_value_where_called": ("nesterov", ("inexact-lmo",)),
}


@pytest.mark.parametrize("schema", ONLY_UNDER)
def test_a_fact_is_used_only_where_it_holds(schema):
    """E|g|^2 <= G^2 of all blocks, |x_{k+1} - x_k|_F^2 <= eta^2 of a step that is short in another norm,
    x_k - y_k = tau U_{k-1} of telescoped updates, sigma^2/S as the noise of a mean of biased samples."""
    needed, others = ONLY_UNDER[schema]
    with pytest.raises(ProofError, match=f"{schema} holds only where {needed} is assumed"):
        one_step(claim(G, B, *others), axiom(schema))


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("difference", "block-sgd"),
        ("initial gap", "lower-bound"),
        ("first gap", "lower-bound"),
        ("drift", "error-feedback"),
        ("weighted drift", "error-feedback"),
    ],
)
def test_so_is_a_definition(name, needed):
    with pytest.raises(ProofError, match=f"definition {name} holds only where {needed} is assumed"):
        one_step(claim(G, B), definition(name))


def test_an_objective_may_lie_below_f_star():
    """E f(x_k) - f_* is a number of any sign where f_* is no lower bound."""
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    f_star, now = symbols("f_star E_f_now")
    theorem = claim(f_star, now)
    step = Step("s", (definition("excess"),), statement(theorem))
    assert "does not follow; counterexample" in check_step(Proof(theorem, (step,)), step).reason


# What a fact needs is counted


def test_the_ledger_counts_what_facts_need():
    """A proof that cites one that needs an assumption needs it, too."""
    fixed = exact.WINDOWS
    assert "windows-fixed/orthogonal" in " ".join(ledger(fixed).assumptions["pipedream"])
    delay = error_feedback_proofs.DELAY
    assert "error-feedback" in delay.theorem.assumptions and not ledger(delay).differences(delay.theorem)
    free = replace(error_feedback_path.DELAY, name="without", assumptions=("smoothness",))
    end = Step("s", (delay,), statement(free))
    with pytest.raises(ProofError, match="ef-delay is about y, the theorem about x"):
        Proof(free, (end,))
    assert needs(definition("drift")) == ("error-feedback",)
    assert needs(axiom("noise_is_orthogonal")) == ("pipedream",) == UNDER["noise_is_orthogonal"]


def test_d_needs_delays_that_do_not_depend_on_the_draws():
    """Its windows with the axiom of fixed ones: a delay that looks at the draws breaks the bound."""
    orthogonal = next(step for step in exact.WINDOWS.steps if "orthogonal" in step.name)
    theorem = variance.WINDOWS.theorem
    free = replace(theorem, assumptions=tuple(name for name in theorem.assumptions if name != "independent-delay"))
    steps = tuple(orthogonal if step.name == orthogonal.name else step for step in variance.WINDOWS.steps)
    with pytest.raises(ProofError, match="noise_is_orthogonal holds only where pipedream is assumed"):
        Proof(free, steps)
