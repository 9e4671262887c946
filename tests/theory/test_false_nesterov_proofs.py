"""False theorems about Nesterov's direction: the momentum's own, less noise, another oracle, half an induction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from theory.axioms import NOT_UNDER, SCHEMAS
from theory.checkers.check import check_step
from theory.inequality import Inequality
from theory.ledger import ledger
from theory.lmo import PATHWISE
from theory.lmo.nesterov import NESTEROV_BOUNDS
from theory.lmo.parts import NOISE
from theory.lmo.proofs import average, delayed, descent, inexact, momentum, nesterov, tuned
from theory.proof import (
    Proof,
    ProofError,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    vectors,
    with_terms,
)

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, sigma, k = symbols("alpha sigma k")
E_square, E_noise = symbols("E_called_noise_square E_called_noise_norm")


def under_nesterov(proof: Proof):
    """Its theorem, said of Nesterov's direction."""
    return replace(proof.theorem, name="false", assumptions=(*proof.theorem.assumptions, "nesterov"))


def refused(name: str, **changes: object) -> str:
    """Why Theorem 1 for Nesterov's direction is not proved with a step changed."""
    steps = tuple(replace(s, **changes) if s.name == name else s for s in nesterov.AT_X.steps)
    proof = Proof(nesterov.AT_X.theorem, steps, left=nesterov.AT_X.left)
    result = check_step(proof, next(s for s in steps if s.name == name))
    assert not result.proved
    return result.reason


@pytest.mark.mutation
def test_what_the_oracle_says_of_the_momentum_is_no_axiom_under_nesterov(lmo_run):
    """Lemma A is false there: f = x, m_1 > 0 and c_0 < 0, so the step goes uphill."""
    with pytest.raises(ProofError, match="lmo_value does not hold where nesterov is assumed"):
        Proof(under_nesterov(descent.PROOF), descent.PROOF.steps)
    run = lmo_run(np.zeros((1, 1)), np.ones(1), [0.0], [1.0], [[-1.5]], 1.0, 0.5, 0, nesterov=True)
    assert run.m[1] > 0 and run.U[0] > 0
    left, right = PATHWISE["descent"].evaluate(run.record() | {"eta": 1.0, "L": 0.0})
    assert left[0] > right[0] + 0.4


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("proof", "key"),
    [
        (average.PROOF, "lmo_value"),
        (delayed.PROOF, "lmo_value"),  # two proofs down
        (inexact.AT_X, "inexact_value"),
        (tuned.CLASSICAL, "tuned_step 2"),
    ],
)
def test_theorems_that_use_it_are_not_cited_under_nesterov(proof, key):
    """Theorem 1 with the smaller noise of the momentum."""
    theorem = under_nesterov(proof)
    end = Step("s", (proof, axiom("nesterov")), statement(theorem, proof.left))
    with pytest.raises(ProofError, match=f"{key} does not hold where nesterov is assumed"):
        Proof(theorem, (end,), left=proof.left)


@pytest.mark.mutation
def test_a_step_tuned_for_the_momentum_is_not_that_of_nesterovs_bound():
    theorem = under_nesterov(tuned.CLASSICAL)
    end = Step("s", (nesterov.AT_X, axiom("tuned_step", 2)), statement(theorem, tuned.CLASSICAL.left))
    with pytest.raises(ProofError, match="tuned_step 2 does not hold where nesterov is assumed"):
        Proof(theorem, (end,), left=tuned.CLASSICAL.left)


def test_the_oracle_and_where_it_is_called_are_assumed():
    """An inexact oracle taken as exact; a direction that is Nesterov's by no assumption."""
    exact = nesterov.AT_X
    other = tuple("inexact-lmo" if name == "lmo" else name for name in exact.theorem.assumptions)
    theorem = replace(exact.theorem, assumptions=other)
    assert "lmo is used and not assumed" in ledger(Proof(theorem, exact.steps, left=exact.left)).differences(theorem)
    free = replace(exact.theorem, assumptions=tuple(n for n in exact.theorem.assumptions if n != "nesterov"))
    with pytest.raises(ProofError, match="lmo_value_where_called holds only where nesterov is assumed"):
        Proof(free, exact.steps, left=exact.left)
    mixed = tuple(replace(s, premises=(s.premises[0], axiom("lmo_value_where_called"), s.premises[2]))
                  if s.name == "progress along the direction" else s for s in nesterov.INEXACT_AT_X.steps)  # fmt: skip
    inexact_theorem = nesterov.INEXACT_AT_X.theorem
    proof = Proof(inexact_theorem, mixed, left=exact.left)
    assert "lmo is used and not assumed" in ledger(proof).differences(inexact_theorem)


def test_the_norm_where_the_oracle_is_called_is_not_the_momentums():
    own, p = momentum.PROOF.theorem, nesterov.OWN_NORM
    moved = replace(p.theorem, name="false", metric=own.metric)
    with pytest.raises(ProofError, match="left = E_mean_called_norm is not its metric, which is E_mean_momentum_norm"):
        Proof(moved, p.steps, left=p.left)


def test_nesterovs_direction_is_known_at_x_only():
    called, m = vectors("called momentum")
    theorem = Inequality("false", "false", "false", symbols("called_norm")[0], {"one": symbols("L")[0]},
                         ("error-feedback", "nesterov"), "nowhere")  # fmt: skip
    with pytest.raises(ProofError, match="nesterov holds at x, the theorem is about y"):
        Proof(theorem, (Step("s", (axiom("nesterov"),), eq(called, m)),))


@pytest.mark.mutation
def test_the_noise_of_the_momentum_is_too_small():
    """alpha/(2-alpha) without the factor; and the sum of squares without the part of the new sample."""
    b = 1 - alpha
    momentums = with_terms(E_square, noise=sigma**2 * alpha / (2 - alpha) * (1 - b ** (2 * k + 2)))
    assert "does not follow; counterexample" in refused("later called square in numbers", conclusion=momentums)
    assert "does not follow" in refused("expected called noise", conclusion=with_terms(E_noise, noise=NOISE))
    old = with_terms(E_square, momentum=b**2 * symbols("E_noise_square")[0])
    assert "does not follow" in refused("called square by the momentum's", conclusion=old)
    lag, w, bias = symbols("called_lag_norm lag_norm delay_bias")
    assert "does not follow" in refused("called lag in norms", conclusion=le(lag, b * w + alpha * bias * b))


@pytest.mark.mutation
def test_first_and_later_steps_are_both_needed_for_all():
    """The induction hands nothing on from one q to the next: either half alone says nothing of the other."""
    step = next(s for s in nesterov.AT_X.steps if s.name == "called square in numbers")
    first, later = step.premises
    assert "does not follow; counterexample" in refused(step.name, premises=(first,))
    assert "does not follow" in refused(step.name, premises=(later,), rule=replace(step.rule, base=()))
    with pytest.raises(ProofError, match="holds at later steps"):
        refused(step.name, rule=replace(step.rule, base=(first, later)))
    with pytest.raises(ProofError, match="E_called_noise_square_before -> E_noise_square is not one"):
        refused(step.name, rule=replace(step.rule, before={"E_called_noise_square_before": "E_noise_square"}))


@pytest.mark.mutation
def test_the_new_sample_is_part_of_both_noises():
    """q_k as (1-alpha) nu_k + alpha n_k has no known inner product: nu_k holds n_k, which is not of the past."""
    square, nu, sample, inner = symbols("called_noise_square noise_square sample_square inner_noise")
    b = 1 - alpha
    false = eq(square, b**2 * nu + 2 * alpha * b * inner + alpha**2 * sample)
    reason = refused("called square", premises=(definition("called noise"),), conclusion=false)
    assert "inner product of" in reason and "the table of vectors has none" in reason


def test_what_does_not_hold_is_an_axiom_and_shipped_proofs_obey():
    assert set(NOT_UNDER) <= set(SCHEMAS)
    for form, bound in NESTEROV_BOUNDS.items():
        assert "nesterov" in bound.assumptions, form
    assert sp.simplify(NESTEROV_BOUNDS[""].terms["noise"] / (2 * NOISE)).subs(alpha, sp.Rational(1, 2)) > 1
