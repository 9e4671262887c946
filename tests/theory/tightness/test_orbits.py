"""The stored and closed-form orbits: exact checks, their starts, and what a mutated instance does."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from theory import get_bound
from theory.errors import InputError
from theory.tightness import circle, sign_search
from theory.tightness.coordinate_orbit import coordinate_orbit, cut_off, cut_off_smoothness
from theory.tightness.sign_orbit import sign_orbit, stored_rows, triangle_orbit

SIGN = {1: Fraction(3, 2), 2: Fraction(13, 6), 3: Fraction(3), 4: Fraction(15, 4)}


@pytest.mark.parametrize("tau", range(5))
def test_l1_attains_theorem_1s(tau):
    orbit = coordinate_orbit(tau)
    terms = get_bound("delayed-lmo-shifted").evaluate_terms(
        L=1, eta=1, alpha=1, tau=tau, sigma=0, rho=1, Delta0=0, K=1, E0=0
    )
    assert orbit.smoothness == 1 and len(orbit.points) == 4 * tau + 2
    assert set(orbit.gradient_norms()) == {Fraction(2 * tau + 1, 2)} == {Fraction(terms["step"] + terms["delay"])}
    if tau:
        assert replace(orbit, tau=tau - 1).wrong_steps() or tau == 1
        assert replace(orbit, tau=tau + 1).wrong_steps()


def test_cut_off_keeps_the_orbit_and_its_smoothness():
    """f is unchanged on the orbit, vanishes far away, and its Hessian (finite differences) obeys the stated bound."""
    rng = np.random.default_rng(0)
    for tau, eps in ((1, 0.1), (2, 0.3)):
        orbit = coordinate_orbit(tau)
        H = np.array(orbit.H, dtype=float)
        for point in orbit.points:
            w = np.array(point, dtype=float)
            assert cut_off(tau, eps, w) == pytest.approx(w @ H @ w / 2, rel=1e-14)
        assert cut_off(tau, eps, np.full(len(H), np.exp(1 / eps))) == 0
        worst = 0.0
        for _ in range(200):
            w = rng.standard_normal(len(H))
            w *= np.exp(rng.uniform(0, 1 / eps)) / np.linalg.norm(w)
            h = 1e-4 * np.linalg.norm(w)
            i, j = rng.integers(0, len(H), 2)
            a, b = np.eye(len(H))[[i, j]] * h
            mixed = cut_off(tau, eps, w + a + b) - cut_off(tau, eps, w + a - b)
            mixed += cut_off(tau, eps, w - a - b) - cut_off(tau, eps, w - a + b)
            worst = max(worst, abs(mixed) / (4 * h * h))
        assert 1 - 1e-6 < worst <= cut_off_smoothness(tau, eps)
    assert cut_off_smoothness(3, 1e-9) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("tau", SIGN)
def test_sign_orbits(tau):
    orbit = sign_orbit(tau)
    assert orbit.smoothness == 1 and len(orbit.H) == 2 * tau + 2
    assert set(orbit.gradient_norms()) == {SIGN[tau]}
    assert replace(orbit, tau=tau + 1).wrong_steps() or replace(orbit, tau=tau - 1).wrong_steps()
    heavier = tuple(tuple(v + (i > j) for j, v in enumerate(row)) for i, row in enumerate(orbit.H))
    with pytest.raises(InputError, match="not symmetric"):
        replace(orbit, H=heavier)


def test_sign_descent_attains_theorem_1s_at_delay_1():
    """Dimension 4: two Hadamard forms; L by all sign vectors in plain Python."""
    orbit = sign_orbit(1)
    signs = list(itertools.product((1, -1), repeat=4))
    L = max(sum(s[i] * orbit.H[i][j] * t[j] for i in range(4) for j in range(4)) for s in signs for t in signs)
    assert L == 1 and set(orbit.gradient_norms()) == {Fraction(3, 2)}
    three = triangle_orbit(1, (Fraction(1, 6), Fraction(1, 4), Fraction(-1, 4)))
    assert set(three.gradient_norms()) == {Fraction(7, 6)}  # 7/9 of Theorem 1s in dimension 3
    assert replace(three, tau=2).wrong_steps()


def test_the_search_finds_the_stored_orbits():
    assert sign_search.best_row(1, 3) == (Fraction(1, 6), Fraction(1, 4), Fraction(-1, 4))
    for tau in (1, 2):
        found = triangle_orbit(tau, sign_search.best_row(tau, 2 * tau + 2))
        assert found.gradient_norms()[0] == SIGN[tau] == sign_orbit(tau).gradient_norms()[0]
    assert sorted(stored_rows()) == [1, 2, 3, 4]


def test_operator_norm_inherits_sign_descent():
    """f(diag X): nuclear norm and polar factor of a diagonal gradient are l_1 norm and signs."""
    g = np.array([0.3, -1.2, 0.7, -0.1])
    u, s, vt = np.linalg.svd(np.diag(g))
    assert s.sum() == pytest.approx(np.abs(g).sum(), rel=1e-14)
    np.testing.assert_allclose(u @ vt, np.diag(np.sign(g)), atol=1e-14)


def test_circle_for_symbolic_k():
    """The proof's angle identity for every tau, and the step with k symbolic for tau = 0..3."""
    k, t = sp.symbols("k t", positive=True)
    theta = sp.pi / (2 * t + 1)
    assert sp.simplify((k + sp.Rational(1, 2)) * theta - sp.pi / 2 - (k - t) * theta) == 0
    assert sp.simplify((k + sp.Rational(1, 2)) * theta - sp.pi / 2 - (k - t + 1) * theta) != 0
    for tau in range(4):
        n = sp.Symbol("n", integer=True)
        step = circle.circle(tau, n + 1) - circle.circle(tau, n)
        wanted = -circle.circle(tau, n - tau) / circle.RADIUS.subs(circle.tau, tau)
        for value in (0, 1, 5):
            difference = (step - wanted).subs(n, value)
            assert all(abs(sp.N(entry, 40)) < 1e-35 for entry in difference)
        assert abs(sp.N(step.subs(n, 2).norm() - 1, 40)) < 1e-35
    assert sp.limit(circle.RADIUS / (circle.tau + sp.Rational(1, 2)), circle.tau, sp.oo) == 2 / sp.pi


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_the_circle_is_reached_on_an_ellipse(tau):
    """Own start, curvatures 1 and 0.99: within 1 percent of the circle's gradient norm, never above it for long."""
    norms = circle.elliptic_run(tau, 0.99, (3.3, 0.7), 2000)[1000:]
    radius = float(circle.RADIUS.subs(circle.tau, tau))
    assert 0.99 * radius < norms.mean() <= radius
    assert norms.min() > 0.97 * radius


@pytest.mark.parametrize("call", [
    lambda: coordinate_orbit(-1),
    lambda: cut_off_smoothness(1, 0),
    lambda: sign_orbit(9),
    lambda: replace(sign_orbit(1), norm="l_3"),
    lambda: replace(sign_orbit(1), H=sign_orbit(2).H),
    lambda: replace(sign_orbit(1), tau=3).gradient_norms(),
    lambda: circle.elliptic_run(1, 2.0, (1, 1), 5),
    lambda: sign_search.best_row(1, 1),
])
def test_bad_input(call):
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
