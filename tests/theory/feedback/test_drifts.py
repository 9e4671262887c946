"""Drifts of normalised SGD, Muon and sign descent: identities of the proofs, random and extreme cases."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory.errors import InputError
from theory.feedback import normalised, polar, sign_flips
from theory.lmo.parts import alpha


def test_normalised_identity_and_solver():
    """The identity by sympy; that it implies the bound, for all lengths, by z3 where it is installed."""
    p, q, D, delta = sp.symbols("p q D delta", positive=True)
    left = 4 * D**2 * p * q - (D**2 - (p - q) ** 2) * (p + q) ** 2
    assert sp.expand(left - (p - q) ** 2 * ((p + q) ** 2 - D**2)) == 0
    z3 = pytest.importorskip("z3")
    P, Q, E, d = z3.Reals("p q D delta")
    facts = [P > 0, Q > 0, E >= 0, d >= 0, E <= P + Q, E * E == (P - Q) * (P - Q) + P * Q * d * d]
    for tenths, expected in ((20, z3.unsat), (19, z3.sat)):
        solver = z3.Solver()
        solver.set("timeout", 20000)
        solver.add(*facts, d * (P + Q) > z3.Q(tenths, 10) * E)
        assert solver.check() == expected


def test_normalised_vectors():
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, 3000, 3)) * 10 ** rng.uniform(-3, 3, (2, 3000, 1))
    unit = [w / np.linalg.norm(w, axis=1, keepdims=True) for w in (u, v)]
    delta, bound = np.linalg.norm(unit[0] - unit[1], axis=1), normalised.drift_bound(u, v)
    assert (delta <= bound * (1 + 1e-12)).all()
    equal = unit[0] - unit[1]
    np.testing.assert_allclose(normalised.drift_bound(*unit), np.linalg.norm(equal, axis=1), rtol=1e-9)  # sharp
    assert normalised.drift_bound(u[0], -3 * u[0]) == pytest.approx(2)
    assert normalised.drift_bound(np.zeros(2), np.zeros(2)) == 2


def test_ema_change_is_a_times_the_gradient_minus_the_momentum():
    a, g, m = sp.symbols("a g m")
    assert sp.expand((1 - a) * m + a * g - m - a * (g - m)) == 0


def test_polar_sylvester_identity():
    rng = np.random.default_rng(1)
    for shape in ((4, 4), (6, 3)):
        M, N = rng.standard_normal((2, *shape))
        Q, P = polar.polar_factor(M), polar.polar_factor(N)
        H, G, X, E = Q.T @ M, P.T @ N, np.eye(shape[1]) - Q.T @ P, M - N
        np.testing.assert_allclose(H @ X + X @ G, Q.T @ E - E.T @ P, atol=1e-12)
        outside = (np.eye(shape[0]) - Q @ Q.T) @ P
        np.testing.assert_allclose(outside, -(np.eye(shape[0]) - Q @ Q.T) @ E @ np.linalg.inv(G), atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 2), (5, 5), (6, 3), (3, 6), (4, 1)])
def test_polar_drift(shape):
    rng = np.random.default_rng(2)
    closest = 0.0
    for _ in range(500):
        M = rng.standard_normal(shape)
        N = M + 10 ** rng.uniform(-6, 0.5) * rng.standard_normal(shape)
        delta = np.linalg.norm(polar.polar_factor(M) - polar.polar_factor(N), 2)
        bound = polar.drift_bound(M, N)
        assert delta <= bound * (1 + 1e-9) + 1e-12
        closest = max(closest, delta / bound)
    assert closest > 0.4


def test_polar_bound_is_sharp_and_honest():
    """A small rotation attains the square bound; a sign flip of the smallest singular value has drift 2."""
    t = 1e-3
    turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    delta = np.linalg.norm(turn - np.eye(2), 2)
    assert polar.drift_bound(turn, np.eye(2)) == pytest.approx(delta, rel=1e-6)
    small = np.diag([1.0, 1e-9])
    flipped = np.diag([1.0, -1e-9])
    assert np.linalg.norm(polar.polar_factor(small) - polar.polar_factor(flipped), 2) == pytest.approx(2)
    assert polar.drift_bound(small, flipped) == pytest.approx(2)
    assert polar.drift_bound(np.zeros((2, 2)), np.zeros((2, 2))) == 2
    with pytest.raises(InputError, match="shapes"):
        polar.drift_bound(np.eye(2), np.eye(3))


@pytest.mark.parametrize("seed", range(5))
def test_sign_flips_on_runs(lmo_run, seed):
    """Noisy sign descent with error feedback: the bias at y against 2 eta Lam phi, and which coordinates can flip."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, 3))
    H = (A + A.T) / 2
    run = lmo_run(H, rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(3),
                  0.5 * rng.standard_normal((60, 3)), 0.05, 0.2, 1, "extrapolate")  # fmt: skip
    columns = np.abs(H).sum(axis=0)
    directions = -np.array(run.U) / run.eta
    phi = sign_flips.flip_share(directions, columns)
    assert run.L <= columns.sum() + 1e-12
    for k in range(2, 60):
        bias = np.abs(run.gradient(run.x[k - 1]) - run.gradient(run.virtual(k))).sum()
        assert bias <= 2 * run.eta * columns.sum() * phi[k - 2] + 1e-12
        change = (run.m[k] - run.m[k - 1]) / run.alpha  # g_{k-1} - m_{k-1}
        flipped = directions[k - 1] != directions[k - 2]
        assert (run.alpha * np.abs(change) >= np.abs(run.m[k - 1]))[flipped].all()
    assert 0 < phi.mean() < 1


def test_flip_probability_on_white_noise():
    rng = np.random.default_rng(5)
    for a in (0.05, 0.5, 1.0):
        m, flips, steps = np.zeros(400), 0, 600
        for k in range(steps + 200):
            new = (1 - a) * m + a * rng.standard_normal(400)
            flips += (np.sign(new) != np.sign(m)).sum() if k >= 200 else 0
            m = new
        expected = float(sign_flips.FLIP_PROBABILITY.subs(alpha, a))
        assert flips / (400 * steps) == pytest.approx(expected, abs=0.01)  # 6 standard errors, correlated samples
    assert sign_flips.FLIP_PROBABILITY.subs(alpha, 1) == sp.Rational(1, 2)
    with pytest.raises(InputError, match="coordinate_smoothness"):
        sign_flips.flip_share(np.ones((3, 2)), np.array([1.0, -1.0]))
