"""A literal transcription of the delayed LMO method, in numpy, that knows nothing of theory/ beyond names of
values.

Norm l_inf, dual norm l_1: sign descent. f(x) = x'Hx/2 + v'x, L = max over sign vectors s, t of s'Ht.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass
class Run:
    """A finished run and what it realised. Lists are indexed by step."""

    H: np.ndarray
    v: np.ndarray
    eta: float
    alpha: float
    tau: int
    x: list[np.ndarray]
    m: list[np.ndarray]  # m[k] = m_k
    U: list[np.ndarray]
    noise: np.ndarray
    form: str | None
    nesterov: bool = False
    b: float = 0.0  # decoupled weight decay per step

    def f(self, x: np.ndarray) -> float:
        return float(x @ self.H @ x / 2 + self.v @ x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.H @ x + self.v

    @property
    def L(self) -> float:
        n = len(self.v)
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
        return float(np.abs(signs @ self.H).sum(axis=1).max())

    def update(self, j: int) -> np.ndarray:
        return self.U[max(j, 0)]

    def virtual(self, k: int) -> np.ndarray:
        """y_k, from the definition."""
        if self.form == "extrapolate":
            return self.x[k] - self.tau * self.update(k - 1)
        return self.x[k] - sum(self.update(k - i) for i in range(1, self.tau + 1))

    def point(self, k: int) -> np.ndarray:
        return self.x[k] if self.form is None else self.virtual(k)

    def record(self) -> dict[str, np.ndarray | float]:
        """Every realised quantity, at k = 0.. without and k = 1.. with error feedback."""
        first = 0 if self.form is None else 1
        steps = range(first, len(self.U))
        a, dual = self.alpha, lambda vector: float(np.abs(vector).sum())
        out: dict[str, list[float]] = {
            name: []
            for name in (
                "k",
                "f_now",
                "f_next",
                "grad_norm",
                "error_norm",
                "delay_bias",
                "noise_norm",
                "delta",
                "delta_mean_weighted",
            )
        }
        drift = [
            float(np.abs(self.point(i) - self.x[max(i - self.tau, 0)]).max()) / self.eta
            for i in range(len(self.U))
        ]
        for k in steps:
            here, g = self.point(k), self.gradient(self.point(k))
            stale = self.x[max(k - self.tau, 0)]
            out["k"].append(k)
            out["f_now"].append(self.f(here))
            out["f_next"].append(self.f(here + self.U[k]))
            out["grad_norm"].append(dual(g))
            out["error_norm"].append(dual(self.m[k + 1] - g))
            out["delay_bias"].append(dual(self.gradient(stale) - g))
            nu = a * sum((1 - a) ** (k - i) * self.noise[i] for i in range(k + 1))
            out["noise_norm"].append(dual(nu))
            out["delta"].append(drift[k])
            out["delta_mean_weighted"].append(a * sum((1 - a) ** (k - i) * drift[i] for i in range(1, k + 1)))
        values: dict[str, np.ndarray | float] = {name: np.array(column) for name, column in out.items()}
        values |= {"eta": self.eta, "alpha": self.alpha, "tau": self.tau, "L": self.L, "K": len(steps)}
        values["E0"] = dual(self.m[0] - self.gradient(self.x[0]))
        values["f_first"] = out["f_now"][0]
        values["f_last"] = out["f_next"][-1]
        values["mean_grad_norm"] = float(np.mean(out["grad_norm"]))
        values["mean_error_norm"] = float(np.mean(out["error_norm"]))
        return values


def run_method(
    H: np.ndarray,
    v: np.ndarray,
    x0: np.ndarray,
    m0: np.ndarray,
    noise: np.ndarray,
    eta: float,
    alpha: float,
    tau: int,
    form: str | None = None,
    nesterov: bool = False,
    b: float = 0.0,
) -> Run:
    """len(noise) steps of sign descent with delay tau; form None, "extrapolate" or "telescoped"; decay b per step;
    nesterov: the sign is that of (1-alpha) m_{k+1} + alpha g_k."""
    start, momentum = [np.array(x0, float)], [np.array(m0, float)]
    run = Run(H, v, eta, alpha, tau, start, momentum, [], np.array(noise, float), form, nesterov, b)
    for k in range(len(noise)):
        g = run.gradient(run.x[max(k - tau, 0)]) + run.noise[k]
        run.m.append((1 - alpha) * run.m[k] + alpha * g)
        called = (1 - alpha) * run.m[k + 1] + alpha * g if nesterov else run.m[k + 1]
        run.U.append(-eta * np.sign(called))
        step = run.U[k]
        if form == "extrapolate":
            step = step + tau * (run.U[k] - run.update(k - 1))
        elif form == "telescoped":
            step = step + (run.U[k] - run.update(k - tau))
        run.x.append((1 - b) * run.x[k] + step)
    return run


@pytest.fixture
def lmo_run() -> Callable[..., Run]:
    return run_method


@pytest.fixture
def decayed_run() -> Callable[..., Run]:
    """A random convex quadratic in 3 dimensions, noisy, with weight decay; start and minimiser in the ball eta/b."""

    def make(seed: int, tau: int, steps: int, noise: float = 1.0) -> Run:
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 3))
        b, eta, H = float(rng.choice([0.1, 0.5, 1.0])), 0.2, A @ A.T
        star, x0 = rng.uniform(-eta / b, eta / b, (2, 3))
        samples = noise * rng.standard_normal((steps, 3))
        alpha = float(rng.choice([0.05, 0.3, 0.7, 1.0]))
        return run_method(H, -H @ star, x0, rng.standard_normal(3), samples, eta, alpha, tau, b=b)

    return make


@pytest.fixture
def random_run() -> Callable[..., Run]:
    """A random (possibly indefinite) quadratic in 3 dimensions, noisy, started with any momentum."""

    def make(
        seed: int,
        tau: int,
        form: str | None = None,
        sigma: float = 1.0,
        convex: bool = False,
        steps: int = 40,
        nesterov: bool = False,
    ) -> Run:
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 3))
        H = A @ A.T if convex else (A + A.T) / 2
        return run_method(
            H,
            rng.standard_normal(3),
            rng.standard_normal(3),
            rng.standard_normal(3),
            sigma * rng.standard_normal((steps, 3)),
            eta=float(rng.choice([0.02, 0.1, 0.5])),
            alpha=float(rng.choice([0.05, 0.3, 0.7, 1.0])),
            tau=tau,
            form=form,
            nesterov=nesterov,
        )

    return make
