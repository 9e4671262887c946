"""Characteristic polynomials, slow roots, stability limits and the stationary variance against the method's
matrix.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory.errors import InputError
from theory.quadratic import QuadraticMethod, characteristic, closed_form, slow_root
from theory.quadratic import variance as theorem_v
from theory.quadratic.polynomial import z
from theory.symbols import symbols

h, beta, c, tau = symbols("h beta c tau")
METHODS = [
    QuadraticMethod(delay, momentum, damp, correction, form)
    for delay in range(6)
    for momentum, damp in ((0.0, 0.0), (0.5, 0.5), (0.9, 0.9), (0.9, 0.0), (0.98, 0.98))
    for correction, form in (
        ("none", "extrapolate"),
        ("error-feedback", "extrapolate"),
        ("error-feedback", "telescoped"),
    )
    if delay or correction == "none"
] + [
    QuadraticMethod(delay, momentum, damp, correction, form, nesterov=True)
    for delay in range(4)
    for momentum, damp in ((0.0, 0.0), (0.5, 0.5), (0.9, 0.9), (0.9, 0.0), (0.98, 0.98))
    for correction, form in (
        ("none", "extrapolate"),
        ("error-feedback", "extrapolate"),
        ("error-feedback", "telescoped"),
        ("gradient-extrapolation", "extrapolate"),
        ("weight-prediction", "extrapolate"),
    )
    if delay or correction == "none"
]


def test_stated_polynomials():
    plain = dict(momentum=sp.S.Zero)
    assert characteristic(0, **plain) == z - 1 + h
    assert characteristic(1, **plain) == z**2 - z + h
    assert sp.expand(characteristic(1, 1, c, **plain) - (z**3 - z**2 + (1 + c) * h * z - c * h)) == 0
    assert sp.expand(characteristic(0) - ((z - 1) * (z - beta) + (1 - beta) * h * z)) == 0
    nesterov = (z - 1) * (z - beta) + (1 - beta) * h * ((1 + beta) * z - beta)
    assert sp.expand(characteristic(0, nesterov=True) - nesterov) == 0


@pytest.mark.parametrize("method", METHODS[::3], ids=str)
def test_polynomial_is_the_determinant(method):
    """det(z I - A(h)) is the polynomial times a power of z, at points where it is far from 0."""
    polynomial = sp.lambdify((z, h), method.characteristic())
    matrix = method.transition(0.37)
    ratios = []
    power = method.size - int(sp.degree(method.characteristic(), z))
    assert power >= 0
    for point in (1.3, -1.7, 0.8 + 0.9j, 2.0j):
        ratios.append(
            np.linalg.det(point * np.eye(method.size) - matrix) / (polynomial(point, 0.37) * point**power)
        )
    np.testing.assert_allclose(ratios, 1.0, rtol=1e-9)


def test_slow_roots():
    plain = dict(momentum=sp.S.Zero)
    catalan = 1 - sum(sp.catalan(n - 1) * h**n for n in range(1, 6))
    assert sp.expand(slow_root(1, order=5, **plain) - catalan) == 0
    assert slow_root(0, order=4, **plain) == 1 - h
    stated = 1 - h + (c - 1) * h**2 + (4 * c - 2 - c**2) * h**3
    assert sp.expand(slow_root(1, 1, c, order=3, **plain) - stated) == 0
    for nesterov, lag in ((False, beta / (1 - beta)), (True, beta**2 / (1 - beta))):
        for delay in range(3 if nesterov else 5):
            assert sp.simplify(slow_root(delay, nesterov=nesterov) - (1 - h - (lag + delay) * h**2)) == 0
            if delay:  # both corrections remove exactly tau h^2, for every momentum
                for form in ((1, sp.Integer(delay)), (delay, sp.S.One)):
                    assert sp.simplify(slow_root(delay, *form, nesterov=nesterov) - (1 - h - lag * h**2)) == 0


@pytest.mark.parametrize("method", [m for m in METHODS if m.gain == 1 - m.beta], ids=str)
def test_slow_root_is_an_eigenvalue(method):
    small = 1e-4 * (1 - method.beta)
    eigenvalues = np.linalg.eigvals(method.transition(small))
    nearest = eigenvalues[np.argmin(np.abs(eigenvalues - 1))].real
    c, momentum, _ = method.exact
    predicted = slow_root(method.tau, method.lag, c, momentum, nesterov=method.nesterov)
    # the h^3 term, at most 1e3 h^3/(1-beta)^2 here
    assert abs(nearest - float(predicted.subs(h, small))) < 1e-9


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_stability_limit(method):
    """Stable on a grid below the limit, unstable just above; equal to the closed form where there is one."""
    limit = method.stability_limit()
    assert np.max(method.spectral_radius(np.linspace(1e-3, 1 - 1e-6, 200) * limit)) < 1
    assert method.spectral_radius(limit * (1 + 1e-6)) > 1
    formula = closed_form(method)
    if formula is not None:
        assert limit == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize(
    "momentum, value", [(0.0, 0.618), (0.8, 1.79), (0.9, 2.70), (0.95, 4.00), (0.98, 6.59), (0.99, 9.51)]
)
def test_published_limits(momentum, value):
    method = QuadraticMethod(1, momentum, momentum, "error-feedback")
    assert method.stability_limit() == pytest.approx(value, abs=5e-3)
    assert QuadraticMethod(1, momentum, momentum).stability_limit() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.mutation
def test_wrong_limits_are_seen():
    """The limit of tau is not that of tau + 1: 2 sin(pi/(4 tau + 2)) with an off-by-one is refuted."""
    for delay in range(1, 5):
        wrong = 2 * np.sin(np.pi / (4 * delay - 2))
        assert QuadraticMethod(delay).spectral_radius(wrong) > 1.01
        assert QuadraticMethod(delay).stability_limit() != pytest.approx(wrong, rel=0.1)


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.6, 0.9])
def test_stationary_variance_at_first_order(delay, momentum):
    """(Var / (eta s^2/(2 lam)) - 1)/h at two small h, extrapolated to 0: what is left is of order h^2."""
    cases = [(theorem_v.D_PLAIN, {})]
    if delay:
        cases += [
            (theorem_v.D_EXTRAPOLATE, dict(correction="error-feedback")),
            (theorem_v.D_TELESCOPED, dict(correction="error-feedback", form="telescoped")),
            (theorem_v.D_COEFFICIENT, dict(correction="error-feedback", coefficient=0.3)),
        ]
    for term, arguments in cases:
        method = QuadraticMethod(delay, momentum, momentum, **arguments)
        coarse, fine = ((method.stationary_variance(s, 1.0, 1.0) / (s / 2) - 1) / s for s in (4e-4, 2e-4))
        stated = theorem_v.first_order(term).subs({beta: momentum, tau: delay, c: 0.3})
        assert 2 * fine - coarse == pytest.approx(float(stated), abs=1e-3 * (1 + abs(float(stated))))


def test_best_coefficient():
    best = sp.solve(sp.diff(theorem_v.D_COEFFICIENT, c), c)
    q = theorem_v.q
    # c >= 0 is assumed of the symbol, so solve may drop the root; the derivative at it decides
    derivative = sp.diff(theorem_v.D_COEFFICIENT, c).subs(c, theorem_v.BEST_COEFFICIENT)
    assert sp.simplify(derivative) == 0 and len(best) <= 1
    at_best = theorem_v.D_COEFFICIENT.subs(c, theorem_v.BEST_COEFFICIENT)
    assert sp.simplify(at_best - (tau - 2 * q * theorem_v.BEST_COEFFICIENT**2)) == 0
    break_even = theorem_v.D_COEFFICIENT.subs({c: 1, tau: 1, beta: sp.Rational(3, 5)})
    assert sp.simplify(break_even - 1) == 0
    assert sp.simplify(theorem_v.D_EXTRAPOLATE - theorem_v.D_COEFFICIENT.subs(c, tau)) == 0
    one = {tau: 1}
    assert sp.simplify((theorem_v.D_EXTRAPOLATE - theorem_v.D_TELESCOPED).subs(one)) == 0


def test_bad_input():
    with pytest.raises(InputError, match="tau=-1"):
        characteristic(-1)
    with pytest.raises(InputError, match="lag=1.5"):
        characteristic(1, 1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="order=0"):
        slow_root(1, order=0)
    with pytest.raises(InputError, match="h=-1"):
        QuadraticMethod(1).transition(-1.0)
