"""Theorem 1 by running on: against Theorem 1s on longer runs, Theorem 1, and noise-free runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from theory import get_bound
from theory.checkers.check import check_step
from theory.lmo.at_iterate import BOUND
from theory.lmo.parts import E0, Delta0, K, L, alpha, eta, rho, sigma, tau
from theory.lmo.proofs import delayed, error_feedback_weights, shifted, tuned
from theory.lmo.proofs.at_iterate import PROOF
from theory.proof import Proof, ProofError, RunOn, le, symbols, with_terms


def test_it_is_theorem_1s_on_a_longer_run():
    longer = get_bound("delayed-lmo-shifted").expression.subs(K, K + tau) * (K + tau) / K
    assert sp.simplify(longer - BOUND.expression) == 0
    assert sp.simplify(BOUND.expression.subs(tau, 0) - get_bound("delayed-lmo").expression.subs(tau, 0)) == 0


def test_the_indices_of_the_proof():
    """k -> (k - tau)+ over K + tau steps takes 0 tau + 1 times and every other j < K once."""
    for delay in range(4):
        for steps in (1, 3, 7):
            taken = sorted(max(k - delay, 0) for k in range(steps + delay))
            assert taken == sorted([0] * delay + list(range(steps)))


def test_below_theorem_1_from_the_stated_length_on():
    values = {L: 1, eta: sp.Rational(1, 10), alpha: sp.Rational(1, 20), sigma: 2, rho: 1, Delta0: 3, E0: 1, tau: 2}
    noise = 2 * rho * sigma * sp.sqrt(alpha / (2 - alpha)) / (L * eta)
    length = (tau + sp.Rational(1, 2) + 2 * (1 - alpha) / alpha + noise).subs(values)
    gap = (get_bound("delayed-lmo").expression - BOUND.expression).subs(values)
    assert gap.subs(K, sp.ceiling(length)) > 0 > gap.subs(K, sp.floor(length) - 1)


@pytest.mark.mutation
def test_a_run_is_continued_for_a_theorem_only():
    """Not for a step, a theorem at y, a step size that depends on K, another left side, a number of the run's end."""
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    step, end = PROOF.steps

    def refused(premise, match):
        with pytest.raises(ProofError, match=match):
            Proof(BOUND, (*shifted.PROOF.steps[:-1], replace(step, premises=(premise,)), end), PROOF.left)

    refused("average in expectation", "a run is continued for one theorem at x, as a whole")
    refused(tuned.SHIFTED, "delayed-lmo-shifted-tuned rests on tuned-step, of which longer runs know nothing")
    refused(error_feedback_weights.PROOF, "error-feedback-weights is about y, the theorem about x")
    with pytest.raises(ProofError, match="is not E_mean_taken_norm <="):
        RunOn().apply(delayed.PROOF.conclusion)
    taken, last = symbols("E_mean_taken_norm E_f_last")
    with pytest.raises(ProofError, match="nothing says what E_f_last is on a longer run"):
        RunOn().apply(le(taken, last / K))


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["step", "delay", "noise"])
def test_the_longer_run_is_paid_for(name):
    """Without the factor 1 + tau/K of any term the step has a counterexample."""
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    step = PROOF.steps[0]
    terms = {n: t / (1 + tau / K) if n == name else t for n, t in step.conclusion.terms}
    wrong = replace(step, conclusion=with_terms(step.conclusion.left, **terms))
    assert "does not follow; counterexample" in check_step(PROOF, wrong).reason


@pytest.mark.parametrize("delay", [0, 1, 2, 4])
def test_noise_free_runs(random_run, delay):
    """The average at the iterates, with the term that BOUND leaves out: dual norm l_1, convex quadratics."""
    tightest = 0.0
    for seed in range(30):
        run = random_run(seed, delay, sigma=0.0, convex=True)
        steps = len(run.U)
        f_star = run.f(np.linalg.solve(run.H, -run.v))
        first = np.abs(run.gradient(run.x[0])).sum()
        right = BOUND.evaluate(
            L=run.L, eta=run.eta, alpha=run.alpha, tau=delay, sigma=0, rho=1, K=steps,
            Delta0=run.f(run.x[0]) - f_star, E0=np.abs(run.m[0] - run.gradient(run.x[0])).sum(),
        )
        left = np.mean([np.abs(run.gradient(x)).sum() for x in run.x[:steps]])
        assert left <= right - delay / steps * first + 1e-9 * right
        tightest = max(tightest, left / right)
    assert tightest > 0.3
