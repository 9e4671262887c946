"""Predicted against measured loss over windows of steps: many settings, one joint test whose level is a theorem.

With Gaussian noise and a linear method the iterates of a window are jointly Gaussian: x = mu + sqrt(Sigma) z, both from
`theory.quadratic`. The average loss of a window of n steps is per mode, with D = lam/(2 n) and Sigma = U diag(s) U',
    D |mu|^2 + sum_i (w_i z_i^2 + 2 D sqrt(s_i) m_i z_i),   w_i = D s_i,   m = U' mu,
and K(t) = sum_i (2 D m_i^2 w_i t^2/(1 - 2 t w_i) - log(1 - 2 t w_i)/2) is its cumulant generating function. For the
average over R replicas Chernoff's inequality bounds both tails, P(average >= v) <= exp(R (K(t) - t v)) for every t. So
each two-sided p-value is an upper bound of the true one, whatever R, and the joint test by Bonferroni keeps its level.
Checked by tests/empirics/test_loss_windows.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize
from scipy.linalg import toeplitz

from empirics.errors import InputError
from empirics.monte_carlo import FALSE_ALARM, Setting, method_of, trajectory
from empirics.problems.noisy_quadratic import NoisyQuadratic
from theory.quadratic import QuadraticMethod
from theory.quadratic.state_space import responses

EARLY = 60  # steps of the first window
TAIL = 40  # steps of the last one
#: The last t that is tried, as a share of where K ends.
EDGE = 1 - 1e-9


@dataclass(frozen=True)
class WindowLaw:
    """Law of a window's average loss in one replica: offset + sum_i (w_i z_i^2 + 2 sqrt(w_i c_i) z_i), z_i standard.

    w, c >= 0: one number for each direction of each mode.
    """

    offset: float
    w: np.ndarray
    c: np.ndarray

    @property
    def mean(self) -> float:
        return self.offset + float(self.w.sum())

    @property
    def variance(self) -> float:
        return float((2 * self.w**2 + 4 * self.w * self.c).sum())

    def cumulants(self, t: float) -> float:
        """K(t) of the average without its offset, t < 1/(2 max w)."""
        free = 1 - 2 * t * self.w
        return float((2 * self.c * self.w * t**2 / free - np.log(free) / 2).sum())

    def p_value(self, average: float, replicas: int) -> float:
        """Upper bound of the two-sided p-value of an average over independent replicas; 0 for what is not finite."""
        largest = float(self.w.max(initial=0.0))
        if not (math.isfinite(average) and math.isfinite(self.mean) and math.isfinite(self.variance)):
            return 0.0
        if largest == 0:
            raise InputError("noise_std: 0; allowed is a number > 0 for a statistical test")
        value = average - self.offset
        end = EDGE / (2 * largest)
        # Beyond this t a Gaussian tail of the largest possible spread has long passed its best exponent.
        spread = math.sqrt(self.variance / replicas)
        far = min(end, 10 * abs(average - self.mean) / (replicas * spread**2) + 1e-12 / largest)
        bounds = (0.0, far) if average >= self.mean else (-far, 0.0)
        found = optimize.minimize_scalar(
            lambda t: self.cumulants(t) - t * value, bounds=bounds, method="bounded", options={"xatol": 1e-6 * far}
        )
        return min(1.0, 2 * math.exp(replicas * min(float(found.fun), 0.0)))


def window_law(setting: Setting, first: int, last: int, method: QuadraticMethod | None = None) -> WindowLaw:
    """Law of the average loss over the steps first..last of a setting's run, or of another method's."""
    problem, used = setting.problem, method_of(setting) if method is None else method
    lam = np.array(problem.curvatures)
    mean, once, later = responses(used, setting.eta * lam, problem.x0, last)
    n = last - first + 1
    offset, w, c = 0.0, [], []
    for mode, curvature in enumerate(lam):
        D, mu = curvature / (2 * n), mean[first:, mode]
        # Row k: what xi_0, xi_1, ... add to x_k.
        added = toeplitz(later[first:, mode], np.concatenate([later[first::-1, mode], np.zeros(n - 1)]))[:, : last + 1]
        added[:, 0] = once[first:, mode]
        added *= setting.eta * problem.noise_std
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = added @ added.T
            offset += D * float(mu @ mu)
        if not (np.isfinite(covariance).all() and math.isfinite(offset)):
            return WindowLaw(math.inf, np.ones(1), np.ones(1))
        s, U = np.linalg.eigh(covariance)
        w.append(D * np.maximum(s, 0.0))
        c.append(D * (U.T @ mu) ** 2)
    return WindowLaw(offset, np.concatenate(w), np.concatenate(c))


@dataclass(frozen=True)
class Pair:
    """Predicted and measured average loss over the steps first..last, with the exact standard error and the p-value's
    upper bound.
    """

    setting: Setting
    first: int
    last: int
    replicas: int
    measured: float
    predicted: float
    error: float
    p: float

    def against(self, method: QuadraticMethod) -> Pair:
        """The same measurement against another method's prediction."""
        law = window_law(self.setting, self.first, self.last, method)
        error = math.sqrt(law.variance / self.replicas)
        return replace(self, predicted=law.mean, error=error, p=law.p_value(self.measured, self.replicas))

    def as_dict(self) -> dict[str, Any]:
        """One row of a result file."""
        s = self.setting
        setting = {name: getattr(s, name) for name in ("name", "tau", "beta", "dampening", "eta", "correction", "form")}
        own = ("first", "last", "replicas", "measured", "predicted", "error", "p")
        return setting | {name: getattr(self, name) for name in own}


@dataclass(frozen=True)
class JointTest:
    """All pairs together: fails if the smallest p is at most level/(number of pairs)."""

    pairs: tuple[Pair, ...]
    level: float = FALSE_ALARM

    def __post_init__(self) -> None:
        if not self.pairs or not 0 < self.level < 1:
            raise InputError(f"pairs, level: {len(self.pairs)}, {self.level!r}; allowed are >= 1 and 0 < level < 1")

    @property
    def worst(self) -> Pair:
        """The pair with the smallest p."""
        return min(self.pairs, key=lambda pair: pair.p)

    @property
    def passes(self) -> bool:
        return self.worst.p > self.level / len(self.pairs)

    @property
    def refuted(self) -> int:
        """How many pairs refute the prediction by themselves, at the joint level."""
        return sum(pair.p <= self.level / len(self.pairs) for pair in self.pairs)

    def against(self, shift: int) -> JointTest:
        """The measurements against the same methods with tau + shift; settings where that is no delay are left out."""
        pairs = []
        for pair in self.pairs:
            own = method_of(pair.setting)
            tau = own.tau + shift
            if tau >= 0:
                correction = own.correction if tau else "none"
                pairs.append(pair.against(replace(own, tau=tau, correction=correction)))
        return JointTest(tuple(pairs), self.level)

    def as_dict(self) -> dict[str, Any]:
        """The summary and all rows."""
        summary = {"level": self.level, "pairs": len(self.pairs), "smallest_p": self.worst.p, "passes": self.passes}
        return summary | {"rows": [pair.as_dict() for pair in self.pairs]}


def grid(
    taus: Sequence[int] = (1, 2, 4),
    betas: Sequence[float] = (0.0, 0.9, 0.95),
    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.45, 0.6, 0.75),
    problem: NoisyQuadratic | None = None,
) -> list[Setting]:
    """Heavy ball, plain and corrected, with eta at shares of its own stability limit."""
    used = NoisyQuadratic((0.3, 1.0), 0.3, 3.0) if problem is None else problem
    out = []
    for tau in taus:
        for beta in betas:
            for correction in ("none", "error-feedback"):
                limit = QuadraticMethod(tau, beta, correction=correction).stability_limit() / max(used.curvatures)
                out += [Setting(f"{s:g} of the limit", tau, beta, 0.0, s * limit, used, correction) for s in shares]
    return out


def measure_pairs(settings: Iterable[Setting], replicas: int, steps: int, seed: int = 0) -> list[Pair]:
    """Two pairs a setting, from the real optimizer code: the first EARLY steps and the last TAIL ones.

    Raises InputError for fewer than 2 replicas, or where the windows would overlap.
    """
    if replicas < 2 or steps < EARLY + TAIL:
        raise InputError(f"replicas, steps: {replicas!r}, {steps!r}; allowed are >= 2 and >= {EARLY + TAIL}")
    out = []
    for number, setting in enumerate(settings):
        lam = np.array(setting.problem.curvatures)
        losses = np.empty(steps + 1)
        for k, x in enumerate(trajectory(setting, replicas, steps, seed + number)):
            losses[k] = float(np.einsum("rm,rm,m", x.numpy(), x.numpy(), lam)) / (2 * replicas)
        for first, last in ((1, EARLY), (steps - TAIL + 1, steps)):
            measured = float(losses[first : last + 1].mean())
            own = method_of(setting)
            out.append(Pair(setting, first, last, replicas, measured, math.nan, math.nan, math.nan).against(own))
    return out
