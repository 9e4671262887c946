"""Mean lag, energy and remainder of rational filters by sums and quadrature, and Theorem V for any of them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.signal import lfilter

from theory.errors import InputError
from theory.quadratic import QuadraticMethod
from theory.quadratic import variance as theorem_v
from theory.quadratic.filters import (
    corrected,
    energy,
    mean_lag,
    momentum_filter,
    remainder,
    window_energy,
)
from theory.quadratic.polynomial import z
from theory.symbols import symbols

beta, tau, c = symbols("beta tau c")
HALF, NINE = sp.Rational(1, 2), sp.Rational(9, 10)
FILTERS = {
    "none": sp.S.One,
    "EMA .5": momentum_filter(HALF),
    "EMA .9": momentum_filter(NINE),
    "Nesterov .5": momentum_filter(HALF, True),
    "Nesterov .9": momentum_filter(NINE, True),
    "two EMAs": momentum_filter(HALF) * momentum_filter(NINE),
    "window of three": (1 + 1 / z + 1 / z**2) / 3,
    "corrected EMA": corrected(momentum_filter(HALF), sp.Rational(3, 2), 2),
    "complex poles": (1 - sp.Rational(8, 5) * NINE + NINE**2) * z**2 / (z**2 - sp.Rational(8, 5) * NINE * z + NINE**2),
}


def impulse_response(G: sp.Expr, length: int = 2000) -> np.ndarray:
    top, bottom = (sp.Poly(part, z).all_coeffs() for part in sp.fraction(sp.cancel(G)))
    top = [0] * (len(bottom) - len(top)) + top
    impulse = np.zeros(length)
    impulse[0] = 1.0
    return lfilter([float(v) for v in top], [float(v) for v in bottom], impulse)


@pytest.mark.parametrize("name", FILTERS)
def test_numbers_of_a_filter_are_sums_and_integrals(name):
    G = FILTERS[name]
    g = impulse_response(G)  # has decayed below 1e-80 by its end
    tails = 1.0 - np.cumsum(g)[:-1]  # T_1, T_2, ...
    assert float(mean_lag(G)) == pytest.approx(np.sum(np.arange(len(g)) * g), rel=1e-9, abs=1e-12)
    assert float(energy(G)) == pytest.approx(np.sum(g**2), rel=1e-12)
    assert float(remainder(G)) == pytest.approx(np.sum(tails**2) - np.sum(tails), rel=1e-9, abs=1e-12)
    for lag in (1, 2, 3):
        windows = np.convolve(g, np.ones(lag))
        assert float(window_energy(G, lag)) == pytest.approx(np.sum(windows**2), rel=1e-12)
    value = sp.lambdify(z, G)

    def integrand(w: float) -> float:
        point = np.exp(1j * w)
        return (abs(value(point)) ** 2 - 1) / abs(point - 1) ** 2

    # even in w; next to 0 the quotient is of two small numbers, so a strip of 1e-4 is left out
    integral = quad(integrand, 1e-4, np.pi, limit=400, epsabs=1e-10, epsrel=1e-10)[0] / np.pi
    assert float(remainder(G)) == pytest.approx(integral, abs=1e-4 * (1 + abs(integrand(1e-3))))


def test_closed_forms_are_special_cases():
    """D and B of the module, for every beta, from the general function."""
    for nesterov, B, A, extrapolate, telescoped in (
        (False, theorem_v.q / 2, theorem_v.q, theorem_v.D_EXTRAPOLATE, theorem_v.D_TELESCOPED),
        (
            True,
            theorem_v.B_NESTEROV,
            theorem_v.Q_NESTEROV,
            theorem_v.D_EXTRAPOLATE_NESTEROV,
            theorem_v.D_TELESCOPED_NESTEROV,
        ),
    ):
        G = momentum_filter(beta, nesterov)
        assert sp.simplify(theorem_v.bracket(G) - B) == 0
        assert sp.simplify(window_energy(G, 1) - A) == 0
        assert theorem_v.delay_term(G, tau) == theorem_v.D_PLAIN
        if not nesterov:
            assert sp.simplify(theorem_v.delay_term(G, tau, c, 1) - theorem_v.D_COEFFICIENT) == 0
        for delay in (1, 2, 3):
            numbers = {tau: delay}
            assert sp.simplify(theorem_v.delay_term(G, delay, delay, 1) - extrapolate.subs(numbers)) == 0
            assert sp.simplify(theorem_v.delay_term(G, delay, 1, delay) - telescoped.subs(numbers)) == 0
            assert theorem_v.delay_term(G, delay, delay, 1, extrapolates_noise=False) == 0


@pytest.mark.parametrize("name", ["EMA .9", "Nesterov .5", "two EMAs", "complex poles"])
def test_a_corrected_filter_is_a_filter(name):
    """The bracket of G (1 + c (1 - z^-l)) is that of G plus D: two ways to the same rational number."""
    G = FILTERS[name]
    for coefficient, lag in ((sp.Rational(3, 10), 1), (sp.Integer(2), 1), (sp.S.One, 3)):
        direct = theorem_v.bracket(corrected(G, coefficient, lag), sp.Integer(2))
        assert direct == theorem_v.bracket(G) + theorem_v.delay_term(G, sp.Integer(2), coefficient, lag)
        assert mean_lag(corrected(G, coefficient, lag)) == mean_lag(G) - coefficient * lag


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum, damp", [(0.0, 0.0), (0.6, 0.6), (0.9, 0.9), (0.9, 0.0)])
def test_theorem_v_is_the_limit_of_the_lyapunov_equation(nesterov, momentum, damp):
    """(Var / (gamma eta s^2/(2 lam)) - 1)/(gamma h), at two small h, extrapolated to 0; a wrong lag or c is seen."""
    for delay in (0, 1, 2, 3):
        for arguments in (
            {},
            dict(correction="error-feedback"),
            dict(correction="error-feedback", form="telescoped"),
            dict(correction="error-feedback", coefficient=0.3),
            dict(correction="gradient-extrapolation", coefficient=0.3),
            dict(correction="weight-prediction"),
        ):
            if arguments and not delay:
                continue
            method = QuadraticMethod(delay, momentum, damp, **arguments, nesterov=nesterov)
            gamma = method.gain / (1 - momentum)
            coarse, fine = (
                (method.stationary_variance(s / gamma, 1.0, 1.0) / (s / 2) - 1) / s for s in (4e-4, 2e-4)
            )
            stated = float(theorem_v.first_order_of(method))
            assert 2 * fine - coarse == pytest.approx(stated, abs=1e-3 * (1 + abs(stated)))
            wrong = QuadraticMethod(delay + 1, momentum, damp, **arguments, nesterov=nesterov)
            if arguments != dict(correction="weight-prediction"):  # its D is 0 at every tau
                assert abs(float(theorem_v.first_order_of(wrong)) - stated) > 0.05


def test_break_even():
    """At tau = 1, c = 1: 3/5 for heavy ball and EMA momentum, 0.7396 for Nesterov."""
    assert sp.solve(sp.numer(sp.together(4 * theorem_v.q - 1)), beta) == [sp.Rational(3, 5)]
    root = sp.nsolve(4 * theorem_v.Q_NESTEROV - 1, beta, 0.7)
    assert float(root) == pytest.approx(0.7396, abs=5e-5)


def test_bad_filters():
    with pytest.raises(InputError, match="not stable"):
        energy(1 / (z - 2))
    with pytest.raises(InputError, match="not stable"):
        energy(1 / (z - 1))
    with pytest.raises(InputError, match="future"):
        energy(z)
    with pytest.raises(InputError, match=r"G\(1\) must be 1"):
        remainder(2 * momentum_filter(HALF))
    with pytest.raises(InputError, match="lag=0"):
        window_energy(sp.S.One, 0)
