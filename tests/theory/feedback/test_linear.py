"""Linear EMA updates: the drift as an identity, and the bounds on noisy runs of nonquadratic functions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory.errors import InputError
from theory.feedback import linear
from theory.lmo.parts import E0, K, L, alpha, eta, sigma
from theory.lmo.parts import tau as TAU


@pytest.mark.parametrize("form", linear.FORMS)
@pytest.mark.parametrize("tau", [1, 2, 3])
def test_drift_identity(form, tau):
    """y_k - x_{k-tau} for symbolic momenta, from the method's definition: from k = tau on, and what is more before."""
    steps = 3 * tau + 3
    m = sp.symbols(f"m0:{steps + 1}")
    x = [sp.Symbol("x0")]
    c, lag = (tau, 1) if form == "extrapolate" else (1, tau)

    def update(j):
        return -eta * m[max(j, 0) + 1]

    def change(j):
        return m[j + 1] - m[j] if j >= 1 else 0

    for k in range(steps):
        if 1 <= k < tau:
            y = x[k] - c * sum(update(k - j) for j in range(1, lag + 1))
            stated = -eta * sum(w * change(k - 1 - j) for j, w in enumerate(linear.weights(form, tau)))
            assert sp.expand(y - x[0] - stated - (tau - k) * eta * m[1]) == 0
        if k >= tau:
            y = x[k] - c * sum(update(k - j) for j in range(1, lag + 1))
            stated = -eta * sum(w * change(k - 1 - j) for j, w in enumerate(linear.weights(form, tau)))
            assert sp.expand(y - x[k - tau] - stated) == 0
            if k > 2 * tau:
                off = -eta * sum(w * change(k - j) for j, w in enumerate(linear.weights(form, tau)))
                assert sp.expand(y - x[k - tau] - off) != 0
        x.append(sp.expand(x[k] + update(k) + c * (update(k) - update(k - lag))))
    assert sum(linear.weights(form, tau)) == linear.KAPPA[form].subs(TAU, tau)


def run(form, tau, a, step, level, steps, rng, dimension=6):
    """EMA SGD with delay on sum of (log cosh and cosine), L = 1; form None: no correction. Literal."""
    slant = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]

    def gradient(v):
        z = slant @ v
        return slant.T @ np.where(np.arange(dimension) % 2, np.tanh(z), np.sin(z))

    c, lag = {"extrapolate": (tau, 1), "telescoped": (1, tau), None: (0, 1)}[form]
    x, m, U = [2 * rng.standard_normal(dimension)], [rng.standard_normal(dimension)], []
    n = level / np.sqrt(dimension) * rng.choice([-1.0, 1.0], (steps, dimension))  # |n| = level exactly
    for k in range(steps):
        m.append((1 - a) * m[k] + a * (gradient(x[max(k - tau, 0)]) + n[k]))
        U.append(-step * m[k + 1])
        x.append(x[k] + U[k] + c * (U[k] - U[max(k - lag, 0)]))
    y = [x[k] - c * sum(U[max(k - j, 0)] for j in range(1, lag + 1)) for k in range(1, steps + 1)]
    bias = [gradient(x[max(k - tau, 0)]) - gradient(y[k - 1]) for k in range(1, steps + 1)]
    drift = [y[k - 1] - x[max(k - tau, 0)] for k in range(1, steps + 1)]
    return np.array(m), np.array(drift), np.array(bias), np.linalg.norm(m[0] - gradient(x[0]))


@pytest.mark.parametrize("form", linear.FORMS)
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_bounds_on_runs(form, tau):
    """Without noise pathwise; with noise the mean square over 40 runs. Right sides from drift_rms."""
    used = 0.0
    for a, h, level in ((1.0, 0.1, 0.0), (0.3, 0.15, 0.0), (0.1, 0.05, 0.0), (0.2, 0.1, 1.0), (1.0, 0.05, 0.5)):
        squares, momenta, starts, biases, firsts, all_steps = [], [], [], [], [], []
        for seed in range(1 if level == 0 else 40):
            m, drift, bias, start = run(form, tau, a, h, level, 60, np.random.default_rng(seed))
            squares.append((drift[tau - 1 :] ** 2).sum() / 60)
            biases.append((bias[tau - 1 :] ** 2).sum() / 60)
            all_steps.append((drift**2).sum() / 60)
            firsts.append((m[1] ** 2).sum())
            momenta.append((m[1:] ** 2).sum() / 60)
            starts.append(start**2)
        M2 = sp.Float(np.mean(momenta))
        values = {L: 1, eta: h, alpha: a, sigma: level, E0: np.sqrt(np.mean(starts)), K: 60}
        right = linear.drift_rms(form, tau, M2).subs(values)
        more = linear.early(tau, sp.Float(np.mean(firsts))).subs(values)
        assert np.sqrt(np.mean(all_steps)) <= float(right + more)
        left = np.sqrt(np.mean(squares))
        assert left <= float(right) and np.sqrt(np.mean(biases)) <= left * (1 + 1e-12)
        used = max(used, left / float(right))
    assert used > 0.25  # not vacuous


def test_the_steps_before_tau_are_not_in_the_mean():
    """tau = 2, K = 50: the rms bias over k = 1..K is above the bound on k = 2..K, and below it with `early`."""
    m, _, bias, start = run("extrapolate", 2, 1.0, 0.002, 0.0, 50, np.random.default_rng(0))
    values = {L: 1, eta: 0.002, alpha: 1, sigma: 0, E0: start, K: 50}
    bound = float(linear.drift_rms("extrapolate", 2, sp.Float((m[1:] ** 2).sum() / 50)).subs(values))
    more = float(linear.early(2, sp.Float((m[1] ** 2).sum())).subs(values))
    late, everything = (np.sqrt((part**2).sum() / 50) for part in (bias[1:], bias))
    assert late <= bound < 0.5 * everything
    assert everything <= bound + more
    assert linear.early(1, sp.Integer(1)) == 0


def test_second_order():
    """Without noise, halving eta quarters the bias of error feedback relative to the momentum, and halves the plain."""
    ratios = {}
    for form in (None, "extrapolate"):
        values = []
        for h in (0.02, 0.01):
            m, drift, _, _ = run(form, 1, 1.0, h, 0.0, int(8 / h), np.random.default_rng(0))
            values.append(np.sqrt((drift[3:] ** 2).sum() / (m[4:] ** 2).sum()))
        ratios[form] = values[0] / values[1]
    assert ratios[None] == pytest.approx(2, rel=0.05)
    assert ratios["extrapolate"] == pytest.approx(4, rel=0.05)


def test_where_the_bound_is_better():
    """The stated limits solve kappa h^2/(1 - tau h) = tau h, and a mutated kappa does not."""
    h = sp.Symbol("h", positive=True)
    for form, kappa in linear.KAPPA.items():
        for tau in (1, 2, 3, 5):
            gap = (kappa * h / (1 - TAU * h) - TAU).subs(TAU, tau)
            limit = linear.BETTER_BELOW[form].subs(TAU, tau)
            assert gap.subs(h, limit) == 0 and gap.subs(h, limit * 1.1) > 0 > gap.subs(h, limit / 2)
    assert [linear.BETTER_BELOW[form].subs(TAU, 1) for form in linear.FORMS] == [sp.Rational(1, 2)] * 2
    extrapolate, telescoped = (linear.BETTER_BELOW[form] for form in linear.FORMS)
    assert sp.simplify(extrapolate - 2 / (3 * TAU + 1)) == 0 == sp.simplify(telescoped - 1 / (2 * TAU))


def test_the_start_and_noise_terms():
    """sum_{j>=1} a^2 (1-a)^{2j} and 1 + a^2 sum (1-a)^{2q} in closed form, symbolic a."""
    j = sp.Symbol("j", integer=True)
    b = sp.Symbol("b", positive=True)
    geometric = sp.summation(b ** (2 * j), (j, 1, sp.oo)).args[0][0].subs(b, 1 - alpha)
    assert sp.simplify(alpha**2 * geometric - (linear.START / E0) ** 2 * K) == 0
    variance = alpha**2 * (1 + alpha**2 * (1 + geometric))
    assert sp.simplify(variance - (linear.NOISE / sigma) ** 2) == 0


def test_unrolled_change_of_the_momentum():
    """r_j = start + gradients + a n_j - a^2 sum, for symbolic gradients and noises: the identity of the proof."""
    steps = 5
    G, n = sp.symbols(f"G0:{steps}"), sp.symbols(f"n0:{steps}")
    m = [sp.Symbol("m")]
    for k in range(steps):
        m.append((1 - alpha) * m[k] + alpha * (G[k] + n[k]))
    for j in range(1, steps):
        stated = alpha * (1 - alpha) ** j * (G[0] - m[0])
        stated += alpha * sum((1 - alpha) ** (j - i) * (G[i] - G[i - 1]) for i in range(1, j + 1))
        noise = alpha * n[j] - alpha**2 * sum((1 - alpha) ** (j - 1 - i) * n[i] for i in range(j))
        assert sp.expand(m[j + 1] - m[j] - stated - noise) == 0


def test_bad_input():
    with pytest.raises(InputError, match="form='x'"):
        linear.weights("x", 1)
    with pytest.raises(InputError, match="tau=0"):
        linear.weights("extrapolate", 0)
