"""Normalised SGD and Muon far from a minimum: the drift against the bound, from literal runs."""

from __future__ import annotations

import numpy as np
import pytest

from theory.errors import InputError
from theory.feedback import far
from theory.feedback.linear import weights
from theory.feedback.polar import polar_factor


def run(shape, tau, form, a, eta, level, seed):
    """LMO method with error feedback on |X - B|_F^2/2, far away: (largest turn, drifts k = 1..80, G, noise, E0, L).

    l_2 for one column (L = 1); operator norm else (L = min(m, n): nuclear norm of D is at most that times |D|).
    """
    rng = np.random.default_rng(seed)
    muon = shape[1] > 1
    offset = 40 * np.eye(*shape) + rng.standard_normal(shape)
    c, lag = (tau, 1) if form == "extrapolate" else (1, tau)
    x, U, noises = [np.zeros(shape)], [], []
    m = [x[0] - offset + 0.1 * rng.standard_normal(shape)]
    for k in range(80):
        noise = rng.standard_normal(shape)
        noises.append(level * noise / np.linalg.norm(noise, 2))
        m.append((1 - a) * m[k] + a * (x[max(k - tau, 0)] - offset + noises[k]))
        direction = polar_factor(m[-1]) if muon else m[-1] / np.linalg.norm(m[-1])
        U.append(-eta * direction)
        x.append(x[k] + U[k] + c * (U[k] - U[max(k - lag, 0)]))
    turn = max(np.linalg.norm(U[k] - U[k - 1], 2) for k in range(1, 80)) / eta
    y = [x[k] - c * sum(U[max(k - j, 0)] for j in range(1, lag + 1)) for k in range(1, 81)]
    drift = np.array([np.linalg.norm(y[k - 1] - x[max(k - tau, 0)], 2) for k in range(1, 81)]) / eta
    shortest = min(np.linalg.svd(v, compute_uv=False)[-1] for v in m[1:])
    start = np.linalg.norm(m[0] - (x[0] - offset), 2)
    return turn, drift, shortest, level, start, float(min(shape)) if muon else 1.0


@pytest.mark.parametrize("shape", [(5, 1), (4, 4), (6, 3)])
@pytest.mark.parametrize("tau, form", [(1, "extrapolate"), (2, "extrapolate"), (2, "telescoped")])
def test_bound_on_runs(shape, tau, form):
    helped = False
    for seed in range(3):
        for a, eta, level in ((0.1, 0.02, 5.0), (0.5, 0.1, 1.0), (1.0, 0.05, 0.0)):
            turn, drift, shortest, noise, start, L = run(shape, tau, form, a, eta, level, seed)
            square = shape[0] == shape[1] or shape[1] == 1
            bound = far.turn_bound(L, eta, a, tau, shortest, noise, start, square)
            assert turn <= bound * (1 + 1e-9) + 1e-12
            late = far.drift_bound(form, bound, tau)
            assert (drift[tau - 1 :] <= late * (1 + 1e-9) + 1e-12).all()
            for k in range(1, tau + 1):
                assert drift[k - 1] <= far.drift_bound(form, bound, tau, k) * (1 + 1e-9) + 1e-12
            kappa_s = sum(weights(form, tau)) * bound
            assert drift.mean() <= kappa_s + tau * (tau - 1) / (2 * len(drift)) + 1e-12
            helped |= late < 0.5
    assert helped


@pytest.mark.parametrize("tau", [2, 3])
@pytest.mark.parametrize("form", ["extrapolate", "telescoped"])
def test_before_step_tau_the_first_updates_count(tau, form):
    """k = 1: y_1 - x_0 = -(tau-1) U_0 is a drift of tau - 1 at any turn, above kappa s; kappa s holds from tau on."""
    turn, drift, shortest, noise, start, L = run((5, 1), tau, form, 1.0, 0.05, 0.0, 0)
    bound = far.turn_bound(L, 0.05, 1.0, tau, shortest, noise, start)
    late = far.drift_bound(form, bound, tau)
    assert drift[0] == pytest.approx(tau - 1) and drift[0] > 10 * late
    assert drift[tau - 1 :].max() <= late == far.drift_bound(form, bound, tau, tau)
    assert far.drift_bound(form, bound, tau, 1) == pytest.approx(min(2 * tau, late + tau - 1))
    with pytest.raises(InputError, match="k=0"):
        far.drift_bound(form, bound, tau, 0)


def test_the_threshold():
    """At G = gamma (3 L eta + 4 a nu + 2 a (1-a) E0) the bound is 1/2; a little below it is not."""
    for square, gamma in ((True, 1.0), (False, 2**0.5)):
        L, eta, a, nu, E0 = 2.0, 0.1, 0.3, 0.7, 1.1
        shortest = gamma * (3 * L * eta + 4 * a * nu + 2 * a * (1 - a) * E0)
        assert far.turn_bound(L, eta, a, 1, shortest, nu, E0, square) == pytest.approx(0.5, rel=1e-12)
        assert far.turn_bound(L, eta, a, 1, 0.99 * shortest, nu, E0, square) > 0.5
    assert far.turn_bound(1, 1, 1, 1, 0.5, 0) == 2.0


@pytest.mark.parametrize("change", [{"eta": 0}, {"alpha": 2}, {"tau": 1.5}, {"shortest": -1}, {"noise": float("nan")}])
def test_bad_input(change):
    values = {"L": 1, "eta": 1, "alpha": 1, "tau": 1, "shortest": 1, "noise": 0} | change
    with pytest.raises(InputError, match=next(iter(change))):
        far.turn_bound(**values)
