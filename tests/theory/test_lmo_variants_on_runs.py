"""Median, inexact and Nesterov bounds on runs of sign descent with exact constants, and in exact expectation."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from theory import get_bound
from theory.lmo.inexact import FORMS

ROUND_OFF = 1e-12


@dataclass
class Result:
    """Averages of dual norms by form, and the oracle's quality."""

    averages: dict[str, float]
    medians: dict[int, float]
    r_lo: float
    r_hi: float


def run(H, star, x0, m0, noise, eta, alpha, tau, nesterov, quality, references=()) -> Result:
    """Delayed sign descent, literally; quality(k) scales each coordinate of the direction."""
    x, m, K = [np.array(x0, float)], np.array(m0, float), len(noise)
    own, ratios, norms = [], [], []

    def gradient(point):
        return H @ (point - star)

    for k in range(K):
        g = gradient(x[max(k - tau, 0)]) + noise[k]
        m = (1 - alpha) * m + alpha * g
        direction = (1 - alpha) * m + alpha * g if nesterov else m
        d = quality(k) * np.sign(direction)
        own.append(np.abs(direction).sum())
        if own[-1] > 0:
            ratios.append(direction @ d / own[-1])
        norms.append(np.abs(d).max())
        x.append(x[-1] - eta * d)

    def average(lag):
        return float(np.mean([np.abs(gradient(x[max(k - lag, 0)])).sum() for k in range(K)]))

    averages = {"": average(0), "-shifted": average(tau), "-momentum": float(np.mean(own))}
    return Result(averages, {s: average(s) for s in references}, min(ratios), max(norms))


def smoothness(H) -> float:
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(H))))
    return float(np.abs(signs @ H).sum(axis=1).max())


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_noise_free_runs(nesterov, exact, tau):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 3))
        H, star, x0, m0 = A @ A.T, rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(3)
        eta, alpha, K = float(rng.choice([0.02, 0.2])), float(rng.choice([0.1, 0.5, 1.0])), 40
        scales = np.ones((K, 3)) if exact else rng.uniform(0.6, 1.3, (K, 3))
        result = run(
            H, star, x0, m0, np.zeros((K, 3)), eta, alpha, tau, nesterov, lambda k, q=scales: q[k], (0, 1, 2, 5, 9)
        )
        values = dict(eta=eta, alpha=alpha, tau=tau, K=K, L=smoothness(H), sigma=0, rho=1)
        values |= dict(
            Delta0=float((x0 - star) @ H @ (x0 - star) / 2), E0=float(np.abs(m0 - H @ (x0 - star)).sum())
        )
        quality = {} if exact else dict(r_lo=result.r_lo, r_hi=result.r_hi)
        name = f"delayed-lmo{'' if exact else '-inexact'}{'-nesterov' if nesterov else ''}"
        for form, measured in result.averages.items():
            assert measured <= get_bound(name + form).evaluate(**values, **quality) + ROUND_OFF, (name, form)
        for s, measured in result.medians.items():
            assert measured <= get_bound(name + "-median").evaluate(**values, **quality, s=s) + ROUND_OFF, (name, s)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("tau", [0, 2])
def test_expectations_by_enumeration(nesterov, tau):
    """Rademacher noise times a fixed vector, all 2^7 paths: expectations and sigma are exact."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((2, 2))
    H, star, direction, steps = A @ A.T, rng.standard_normal(2), np.array([0.8, -0.3]), 7
    x0, m0, eta, alpha = np.array([0.5, 1.0]), np.zeros(2), 0.2, 0.4
    results = [
        run(H, star, x0, m0, np.outer(signs, direction), eta, alpha, tau, nesterov, lambda k: 1.0, (1, 3))
        for signs in itertools.product([-1.0, 1.0], repeat=steps)
    ]
    values = dict(eta=eta, alpha=alpha, tau=tau, K=steps, L=smoothness(H), sigma=float(np.linalg.norm(direction)))
    values |= dict(rho=np.sqrt(2), Delta0=float((x0 - star) @ H @ (x0 - star) / 2))
    values |= dict(E0=float(np.abs(m0 - H @ (x0 - star)).sum()))
    name = f"delayed-lmo{'-nesterov' if nesterov else ''}"
    for form in FORMS:
        if form != "-median":
            measured = np.mean([result.averages[form] for result in results])
            assert measured <= get_bound(name + form).evaluate(**values)
    for s in (1, 3):
        measured = np.mean([result.medians[s] for result in results])
        assert measured <= get_bound(name + "-median").evaluate(**values, s=s)


@pytest.mark.mutation
def test_the_lag_of_nesterov_is_attained_and_a_smaller_one_refused():
    """One dimension, every step downhill: the direction's error is L eta (mean age + tau), Lemma C for both laws."""
    alpha, tau, eta = 0.3, 2, 0.1
    x, m, k = -eta * np.arange(400.0), -0.0, 399
    for j in range(k + 1):
        g = x[max(j - tau, 0)]
        m = (1 - alpha) * m + alpha * g
    error = abs((1 - alpha) * m + alpha * g - x[k])
    terms = get_bound("delayed-lmo-nesterov-momentum").evaluate_terms(
        L=1, eta=eta, alpha=alpha, tau=tau, sigma=0, rho=1, Delta0=0, K=1, E0=0
    )
    assert error == pytest.approx(terms["momentum_lag"] + terms["delay"], rel=1e-9)
    assert error > (1 - alpha) * terms["momentum_lag"] + terms["delay"] + 1e-3
