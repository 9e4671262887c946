"""Theorem 1 by running on: against Theorem 1s on longer runs, Theorem 1, and noise-free runs."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory import get_bound
from theory.lmo.at_iterate import BOUND
from theory.lmo.parts import E0, Delta0, K, L, alpha, eta, rho, sigma, tau


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
