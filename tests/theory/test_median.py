"""Theorem 1m: known numbers, Theorems 1 and 1s inside it, no better reference than the median."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theory import InputError, get_bound

POINT = dict(L=1, eta=0.01, alpha=0.05, tau=1, sigma=0, rho=1, Delta0=1, K=1000, E0=0)
FULL = POINT | dict(L=1.3, sigma=0.4, rho=1.7, E0=0.8, K=77)
MEDIAN = get_bound("delayed-lmo-median")


def test_known_value():
    assert MEDIAN.chosen(POINT)["s"] == 14
    value = MEDIAN.evaluate(**POINT)
    assert value == pytest.approx(0.4400700, abs=5e-8)
    lag = (value - 0.1 - 0.005) / 0.01
    assert lag == pytest.approx(33.507, abs=5e-4)
    assert lag / 39 == pytest.approx(1 - 0.141, abs=1e-3)  # Theorem 1 has 2 (1-a)/a + tau 2 = 40, 1s 39


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("tau", [0, 1, 4])
def test_it_contains_theorems_1_and_1s(alpha, tau):
    values = FULL | dict(alpha=alpha, tau=tau)
    assert MEDIAN.evaluate(**values, s=0) == pytest.approx(get_bound("delayed-lmo").evaluate(**values), rel=1e-14)
    shifted = get_bound("delayed-lmo-shifted").evaluate(**values)
    assert MEDIAN.evaluate(**values, s=tau) == pytest.approx(shifted, rel=1e-14)
    best = min(MEDIAN.evaluate(**values, s=s) for s in range(80))
    assert MEDIAN.evaluate(**values) == pytest.approx(best, rel=1e-14)


def test_small_alpha():
    a = 1e-4
    lag = (MEDIAN.evaluate(**POINT | dict(alpha=a, Delta0=0)) - 0.005) / 0.01
    assert lag * a == pytest.approx(1 + math.log(2), rel=1e-3)


def test_arrays_choose_each_their_own():
    alphas = np.array([0.05, 0.5, 1.0])
    together = MEDIAN.evaluate(**FULL | dict(alpha=alphas, tau=np.array([1, 2, 3])))
    alone = [MEDIAN.evaluate(**FULL | dict(alpha=a, tau=t)) for a, t in zip(alphas, (1, 2, 3), strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-15)


def test_refusals():
    with pytest.raises(InputError, match="s=1.5 is not allowed: s must be an integer >= 0"):
        MEDIAN.evaluate(**POINT, s=1.5)
    with pytest.raises(InputError, match="missing alpha"):
        MEDIAN.evaluate(**{k: v for k, v in POINT.items() if k != "alpha"})
