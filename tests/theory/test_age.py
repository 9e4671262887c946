"""The laws of the gradients' age against their sums, written out term by term."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theory.evaluation import evaluate_expression, free_names
from theory.lmo.age import CLASSICAL, NESTEROV, AgeLaw

ENOUGH = 1000  # (1 - 0.05)^1000 < 1e-22


def probabilities(law: AgeLaw, a: float) -> np.ndarray:
    """P(i), from how the momentum is formed: m = sum a (1-a)^i g_i, Nesterov (1-a) m + a g_0."""
    P = a * (1 - a) ** np.arange(ENOUGH)
    if law is NESTEROV:
        P = (1 - a) * P
        P[0] += a
    return P


def at(expression, **values) -> float:
    names = free_names(expression)
    return float(evaluate_expression(expression, {n: np.float64(values[n]) for n in names}, "test"))


@pytest.mark.parametrize("law", [CLASSICAL, NESTEROV], ids=lambda law: law.name)
@pytest.mark.parametrize("a", [0.05, 0.3, 0.5, 0.7, 1.0])
def test_mean_variance_distance_and_median(law, a):
    P, i = probabilities(law, a), np.arange(ENOUGH)
    assert P.sum() == pytest.approx(1, abs=1e-12)
    assert at(law.mean, alpha=a) == pytest.approx((P * i).sum(), abs=1e-11)
    assert at(law.root, alpha=a) == pytest.approx(math.sqrt((P**2).sum()), rel=1e-12)
    for tau in (0, 1, 3):
        A = i + tau
        distances = [float((P * np.abs(A - s)).sum()) for s in range(60)]
        names = free_names(law.distance())
        columns = np.broadcast_arrays(*(dict(alpha=a, tau=tau, s=np.arange(60.0))[name] for name in names))
        arrays = {name: np.array(column, float) for name, column in zip(names, columns, strict=True)}
        np.testing.assert_allclose(evaluate_expression(law.distance(), arrays, "test"), distances, atol=1e-11)
        median = at(law.median, alpha=a, tau=tau)
        naive = next(s for s in range(tau, 60) if P[: s - tau + 1].sum() >= 0.5 - 1e-15)
        assert median == naive
        assert distances[int(median)] == pytest.approx(min(distances), abs=1e-12)


@pytest.mark.parametrize("law", [CLASSICAL, NESTEROV], ids=lambda law: law.name)
def test_what_is_left_of_the_first_momentum(law):
    """m_0 has the weight (1-a)^{k+1}, Nesterov (1-a)^{k+2}, which is also the law's tail; its sum is the mean age."""
    a = 0.2
    tails = [1 - probabilities(law, a)[: k + 1].sum() for k in range(400)]
    power = 2 if law is NESTEROV else 1
    np.testing.assert_allclose(tails, [(1 - a) ** (k + power) for k in range(400)], atol=1e-13)
    assert sum(tails) == pytest.approx(at(law.mean, alpha=a), rel=1e-10)


@pytest.mark.mutation
def test_an_off_by_one_is_seen():
    """n = s in place of s - tau would pass at tau = 0 only."""
    P, i = probabilities(CLASSICAL, 0.3), np.arange(ENOUGH)
    right = (P * np.abs(i + 2 - 3)).sum()
    assert at(CLASSICAL.distance(), alpha=0.3, tau=2, s=3) == pytest.approx(right, abs=1e-12)
    assert abs(at(CLASSICAL.distance(), alpha=0.3, tau=0, s=3) - right) > 0.1
