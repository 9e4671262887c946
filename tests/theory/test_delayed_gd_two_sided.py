"""The sharper bound of delayed gradient descent: its steps on exact runs, its value against every certificate."""

from __future__ import annotations

import random
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from theory import InputError, get_bound
from theory.certificates.check import Checked, certified_value, check_all
from theory.certificates.table import bound_value
from theory.euclidean.delayed_gd import FINITE
from theory.euclidean.delayed_gd_two_sided import BOUND


@pytest.fixture(scope="module")
def checked() -> list[Checked]:
    return check_all()


def literal(
    tau: int, N: int, h: Fraction, square: Fraction = Fraction(1, 4), bend: Fraction = Fraction(1, 4)
) -> Fraction:
    """The statement, windows counted one by one. square, bend: the two constants 1/4."""
    s = max(Fraction(1), h * (1 + tau))
    W = sum(min(k, tau) ** 2 for k in range(N - 1))
    windows = h**3 * bend * (2 * s - h) / (s - h) * W if W else Fraction(0)
    return 1 / (Fraction(1, 2) + (N - 1) * (h - s * h * h * square) - windows)


def inside(tau: int, h: Fraction) -> bool:
    return h * h * (tau**2 + (tau + 1) ** 2) <= 2


@pytest.mark.parametrize("tau", range(5))
def test_the_formula_is_the_statement(tau: int) -> None:
    for N in range(1, 10):
        for h in (Fraction(1, 5), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(5, 4)):
            value = bound_value(BOUND, tau, N, h)
            assert value == (literal(tau, N, h) if inside(tau, h) else None)
            if value is not None:  # in floats and in other units
                given = BOUND.evaluate(gamma=float(h) / 3, L=3.0, tau=tau, K=N, Delta0=7.0)
                assert given == pytest.approx(float(21 * value), rel=1e-12)


def test_no_certified_worst_case_is_above_it(checked: list[Checked]) -> None:
    count = 0
    for result in checked:
        problem = result.certificate.problem
        if inside(problem.tau, problem.h):
            assert result.certificate.lower.value <= literal(problem.tau, problem.N, problem.h), result.name
            count += 1
    assert count > 80


@pytest.mark.parametrize(("tau", "N", "h"), [(0, 12, Fraction(1, 2)), (0, 5, Fraction(3, 4)), (1, 2, Fraction(1, 2))])
def test_exact_without_delay_and_for_two_gradients(tau: int, N: int, h: Fraction) -> None:
    lower, upper = certified_value(tau, N, h)
    assert lower <= literal(tau, N, h) <= upper


def test_sharper_constants_are_refuted_by_instances() -> None:
    """tau = 0 admits no smaller factor of h^2, and tau = 1, N = 3 not half the factor of the windows."""
    h = Fraction(1, 2)
    assert certified_value(0, 12, h)[0] > literal(0, 12, h, square=Fraction(249, 1000))
    assert certified_value(1, 3, h)[0] > literal(1, 3, h, bend=Fraction(1, 8))


def test_never_above_the_bound_of_the_descent_lemma() -> None:
    """On a grid of its condition; and its own condition is wider there."""
    count = 0
    for tau in range(7):
        for N in range(1, 30):
            for q in range(1, 60):
                h = Fraction(q, 60)
                if h + (tau * h) ** 2 <= 1:
                    assert inside(tau, h)
                    old = bound_value(FINITE, tau, N, h) if N in (1, 2, 3, 7, 29) else None
                    if old is not None:
                        count += 1
                        assert literal(tau, N, h) <= old
    assert count > 500


@pytest.mark.parametrize("tau", [0, 1, 3])
def test_every_step_of_the_proof_on_exact_runs(tau: int) -> None:
    """Diagonal quadratics with curvatures in [-1, 1]: the step, the polarised step and the window, in fractions."""
    rng = random.Random(tau)
    h, N = Fraction(1, 3), 8
    s = max(Fraction(1), h * (1 + tau))
    for _ in range(20):
        curvature = np.array([Fraction(rng.randint(-9, 9), 9) for _ in range(3)])
        x = [np.array([Fraction(rng.randint(-9, 9)) for _ in range(3)])]
        for k in range(N):
            x.append(x[k] - h * curvature * x[max(k - tau, 0)])
        g = [curvature * point for point in x]
        f = [(curvature * point * point).sum() / 2 for point in x]
        for k in range(N):
            z, d = g[max(k - tau, 0)], g[k + 1] - g[k]
            drop = f[k] - f[k + 1]
            step = h / 2 * ((g[k] + g[k + 1]) @ z) + s / 4 * (d @ d - h * h * (z @ z))
            p = (g[k] - z) @ (g[k] - z)
            factor = (2 * s - h) / (s - h)
            polarised = h / 4 * (g[k] @ g[k] + g[k + 1] @ g[k + 1] + 2 * (z @ z)) - s * h * h / 4 * (z @ z)
            window = [g[max(j - tau, 0)] for j in range(max(k - tau, 0), k)]
            assert drop >= step >= polarised - h / 4 * factor * p
            assert p <= h * h * min(k, tau) * sum((v @ v for v in window), Fraction(0))


def test_s_is_the_best_for_full_windows() -> None:
    """h - s h^2/4 - (h^3/4) tau^2 (2 s - h)/(s - h) over s >= 1, against a grid."""
    for tau in (1, 2, 5):
        for h in (Fraction(1, 10), Fraction(1, 4), Fraction(isqrt(2 * 10**6 // (tau**2 + (tau + 1) ** 2)), 1000)):

            def growth(s: Fraction, h: Fraction = h, tau: int = tau) -> Fraction:
                return h - s * h * h / 4 - h**3 / 4 * tau**2 * (2 * s - h) / (s - h)

            best = growth(max(Fraction(1), h * (1 + tau)))
            assert all(growth(1 + Fraction(i, 50)) <= best for i in range(200))


def test_a_step_outside_is_refused() -> None:
    with pytest.raises(InputError, match="delayed-gd-two-sided: holds only for"):
        get_bound("delayed-gd-two-sided").evaluate(gamma=0.64, L=1, tau=1, K=5, Delta0=1)
