"""Randomized PipeDream against runs whose expectations are exact: every draw of stages and every sign of the noise of a
short run on a quadratic is a path of its own, and all paths are averaged.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from theory import InputError, get_bound
from theory.pipedream.blocks import window_moment

ROUND_OFF = 1e-12  # relative; sums of some thousand numbers


@dataclass
class Moments:
    """Exact expectations of a run, averages over its steps, and the constants of its gradients on all paths."""

    grad_x: float  # E||grad f(x)||^2
    grad_z: float
    apart: list[float]  # E||x_k - z_k||^2, by step
    update: float  # E||G||^2
    gap: float  # E f(x_K)
    Delta0: float
    G: float
    B: float
    sigma: float


def block_sgd(H, x0, delays, gamma, noise, K, slope=0.0) -> Moments:
    """Randomized PipeDream on f = x'Hx/2 + slope'x, one coordinate per stage, noise +-noise with one sign a step."""
    S = len(x0)
    signs = list(itertools.product((-1, 1), repeat=K)) if np.any(noise) else [(0,) * K]
    draws = np.array([d for d in itertools.product(range(S), repeat=K) for _ in signs])
    flips = np.array(signs * S**K, float)
    paths, x = np.arange(len(draws)), [np.tile(np.array(x0, float), (len(draws), 1))]
    grad_x, grad_z, apart, update, G, B = [], [], [], [], 0.0, 0.0
    for k in range(K):
        z = np.stack([x[max(k - delay, 0)][:, s] for s, delay in enumerate(delays)], axis=1)
        g = z @ H + slope
        sample = g + flips[:, k : k + 1] * noise
        G = max(G, np.sqrt((g**2 + noise**2).max()))
        B = max(B, np.sqrt((g**2 + noise**2).sum(1).max()))
        step = np.zeros_like(z)
        step[paths, draws[:, k]] = sample[paths, draws[:, k]]
        grad_x.append(((x[k] @ H + slope) ** 2).sum(1).mean())
        grad_z.append((g**2).sum(1).mean())
        apart.append(((x[k] - z) ** 2).sum(1).mean())
        update.append((step**2).sum(1).mean())
        x.append(x[k] - gamma * step)
    f = [float(((v @ H) * v).sum(1).mean() / 2) for v in (x[0], x[-1])]
    means = [float(np.mean(column)) for column in (grad_x, grad_z, update)]
    return Moments(
        means[0], means[1], apart, means[2], f[1], f[0], float(G), float(B), float(np.sqrt((noise**2).sum()))
    )


def instances(count: int):
    """Random small runs, L = 1: curvatures full, diagonal, of rank one; starts near and far; small and large steps."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        S = int(rng.integers(1, 4))
        K = int(rng.integers(1, 6 if S < 3 else 5))
        d = int(rng.integers(0, 4))
        delays = [d] * S if rng.random() < 0.5 else [d, *rng.integers(0, d + 1, S - 1)]
        A = rng.standard_normal((S, S))
        H = [A @ A.T, np.diag(rng.random(S)), np.outer(A[0], A[0])][int(rng.integers(3))]
        H = H / np.linalg.norm(H, 2)
        x0 = rng.standard_normal(S) * 10 ** rng.uniform(-1, 1)
        noise = rng.standard_normal(S) * (rng.random() < 0.7)
        gamma = 10 ** rng.uniform(-1.5, 0.4)
        yield block_sgd(H, x0, delays, gamma, noise, K), dict(S=S, K=K, L=1.0, gamma=gamma, delta_max=d), delays


def right(name: str, moments: Moments, given: dict) -> float | None:
    """The bound at the exact constants of the run, None where its condition on the step does not hold."""
    bound = get_bound(name)
    values = {**vars(moments), **given}
    try:
        return bound.evaluate(**{key: values[key] for key in bound.symbols})
    except InputError as refused:
        assert "holds only for" in str(refused)
        return None


RPD = ("rpd-paper", "rpd-a", "rpd-a-independent", "rpd-a-drift", "rpd-b", "rpd-c", "rpd-d", "rpd-d-split")


def test_every_bound_holds_on_every_run():
    tightest = dict.fromkeys(RPD, 0.0)
    for moments, given, _ in instances(150):
        for name in RPD:
            for theta in (0.3, 4.0) if name == "rpd-d-split" else (1.0,):
                value = right(name, moments, {**given, "theta": theta})
                if value is not None:
                    assert moments.grad_x <= value * (1 + ROUND_OFF), (name, given)
                    tightest[name] = max(tightest[name], moments.grad_x / value)
    assert min(tightest.values()) > 0.3  # every bound was reached within a factor of 3 on some run


ONE = np.eye(1)
MUTANTS = {  # name, what is changed -> a run with L = 1 that refutes it: curvature, start, delays, gamma, noise, K
    ("rpd-paper", "initial", 0): (ONE, [1.0], [0], 0.03, [0.0], 1),
    ("rpd-paper", "step", 0): (ONE, [0.0], [0], 0.5, [1.0], 7),
    ("rpd-paper", "delay", 0): (ONE, [1.0], [3], 0.95, [0.0], 6),
    **{(name, "initial", 0): (ONE, [1.0], [0], 0.03, [0.0], 1) for name in RPD[1:5]},
    **{(name, "step", 0): (ONE, [0.0], [0], 0.5, [1.0], 7) for name in RPD[1:5]},
    **{(name, "delay", 0): (ONE, [1.0], [3], 2.07, [0.0], 5) for name in RPD[1:5]},
    **{(name, "delay_max", -1): (ONE, [1.0], [1], 1.99, [0.0], 3) for name in RPD[1:5]},
    **{(name, "initial", 0.9): (ONE, [1.0], [0], 0.99, [0.0], 5) for name in RPD[5:]},
    **{(name, "noise", 0.5): (ONE, [0.03], [0], 0.96, [0.4], 4) for name in RPD[5:]},
}


@pytest.mark.mutation
@pytest.mark.parametrize("name, what, change", list(MUTANTS))
def test_mutants_are_refuted(name, what, change):
    """A term times a factor, or a delay of one less: the run that keeps the bound breaks the mutant. For C and D nine
    tenths of the initial term are too little: their first term cannot be smaller at all.
    """
    H, x0, delays, gamma, noise, K = MUTANTS[name, what, change]
    moments = block_sgd(H, x0, delays, gamma, np.array(noise), K)
    given = dict(S=1, K=K, L=1.0, gamma=gamma, delta_max=max(delays), theta=1.0)
    assert moments.grad_x <= right(name, moments, given) * (1 + ROUND_OFF)
    if what == "delay_max":
        assert moments.grad_x > 1.5 * right(name, moments, {**given, "delta_max": max(delays) + change})
        return
    bound = get_bound(name)
    terms = bound.evaluate_terms(**{key: {**vars(moments), **given}[key] for key in bound.symbols})
    assert moments.grad_x > 1.02 * (sum(terms.values()) - (1 - change) * terms[what])


@pytest.mark.parametrize("S, d", [(1, 3), (2, 1), (2, 3), (3, 2)])
def test_windows_are_counted_exactly(S, d):
    """The same gradient everywhere attains B's window, and both parts of D's, drift and draws, side by side; noise
    alone attains D's at theta -> oo.
    """
    K, gamma, flat = d + 1, 0.7, np.zeros((S, S))
    for delays in ([d] * S, [d] + [d - 1] * (S - 1)):
        drift = block_sgd(flat, np.zeros(S), delays, gamma, np.zeros(S), K, slope=np.full(S, 1.3))
        exact = gamma**2 * drift.G**2 * float(window_moment(delays))
        assert drift.apart[-1] == pytest.approx(exact, rel=1e-12)
        square = drift.grad_z  # S G^2
        parts = [(t * t / S**2 + t * (S - 1) / S**2) / S for t in delays]
        assert drift.apart[-1] == pytest.approx(gamma**2 * square * sum(parts), rel=1e-12)
    assert float(window_moment([d] * S)) == pytest.approx(d * d / S + d * (1 - 1 / S))
    noise = block_sgd(flat, np.zeros(S), [d] * S, gamma, np.linspace(0.5, 1.0, S), K)
    assert noise.apart[-1] == pytest.approx(gamma**2 * d * noise.sigma**2 / S, rel=1e-12)


def test_windows_of_a_are_bounds_of_the_distance():
    """E||x - z||^2 itself, where its gradients are as correlated as a quadratic makes them, against all of A's windows;
    one stage attains them.
    """
    rng = np.random.default_rng(4)
    tightest = 0.0
    for _ in range(60):
        S, d = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        A = rng.standard_normal((S, S))
        gamma = 10 ** rng.uniform(-2, 0)
        run = block_sgd(A @ A.T / S, rng.standard_normal(S), [d] * S, gamma, np.zeros(S), d + 1, A[0])
        for name in ("rpd-a", "rpd-a-independent", "rpd-a-drift"):
            delay = get_bound(name).evaluate_terms(S=S, L=1.0, gamma=gamma, B=run.B, Delta0=0.0, K=1, delta_max=d)
            delay = delay["delay"]
            assert run.apart[-1] <= delay * (1 + ROUND_OFF), name
            tightest = max(tightest, run.apart[-1] / delay)
    assert tightest > 0.9


def test_descent_step_is_an_equality_on_the_isotropic_quadratic():
    """f = L|x|^2/2: the first inequality of every proof, summed, with what is dropped later."""
    gamma, S, K, L = 0.3, 2, 4, 1.7
    run = block_sgd(L * np.eye(S), [1.0, -0.4], [2, 1], gamma, np.array([0.5, 0.2]), K)
    fall = gamma / (2 * S) * (run.grad_x + run.grad_z - L**2 * np.mean(run.apart)) - gamma**2 * L / 2 * run.update
    assert run.Delta0 - run.gap == pytest.approx(K * fall, rel=1e-12)
    assert run.update == pytest.approx((run.grad_z + run.sigma**2) / S, rel=1e-12)


def test_polyak_lojasiewicz():
    rng = np.random.default_rng(3)
    tightest = 0.0
    for _ in range(60):
        S, K, d = int(rng.integers(1, 3)), int(rng.integers(1, 6)), int(rng.integers(0, 3))
        curvatures = rng.uniform(0.2, 1.0, S)
        gamma, noise = 10 ** rng.uniform(-1, 0.3), rng.standard_normal(S) * (rng.random() < 0.5)
        run = block_sgd(np.diag(curvatures), rng.standard_normal(S), [d] * S, gamma, noise, K)
        given = dict(S=S, K=K, L=curvatures.max(), mu=curvatures.min(), gamma=gamma, delta_max=d)
        values = {name: right(name, run, given) for name in ("rpd-pl", "rpd-pl-b")}
        if values["rpd-pl"] is not None:
            assert run.gap <= values["rpd-pl-b"] * (1 + ROUND_OFF)
            assert values["rpd-pl-b"] <= values["rpd-pl"] * (1 + ROUND_OFF)
            tightest = max(tightest, run.gap / values["rpd-pl-b"])
    assert tightest > 0.6
