"""The local quadratic model of a problem at a point.

At w_0 take f(w_0 + d) = f_0 + <g, d> + <d, H d>/2 and the noise of the gradient as it is there, covariance C/b for a
batch of b. A linear method then moves the mode of curvature lam by m_k times its gradient and adds noise of variance
(C/b) V_k, both known (`theory.quadratic`, responses to a constant gradient and to noise of 1), so
    E f_k = f_0 + sum_i g_i^2 (m_k + lam_i m_k^2/2) + sum_i (C_ii/b) lam_i V_k/2:
sums over two measures of H, that of g and that of the noise, which Lanczos gives by products with H alone
(`empirics.estimators.spectral_measure`): exact for polynomials of degree 2m - 1, so to round-off for the first steps.
Noise by enumeration: every sample's is a start of its own. Beyond these steps the quadrature of v is off by at most
2 |v|^2 times the distance of the function from the polynomials of that degree on the spectrum. What is asked for is a
polynomial of degree below 2k itself, so the sum of its later Chebyshev coefficients is at least that distance, and
`truncation` is a proved bound as long as the spectrum lies within the nodes found and MARGIN of their spread beyond.
Checked by tests/empirics/test_prediction.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import fft
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.spectral_measure import spectral_measure
from empirics.problems.replicas import ReplicaLoss
from empirics.replica_runs import DIVERGED
from theory.quadratic import QuadraticMethod
from theory.quadratic.state_space import responses

#: Of the nodes' spread, by which the spectrum may go on beyond them: the ends of a Krylov space lie inside it.
MARGIN = 0.05


@dataclass(frozen=True)
class LocalQuadratic:
    """f_0, and the measures of g and of one sample's noise: nodes and weights of each. products: with the Hessian;
    exact: whether the Krylov spaces of g, and of all noises, have ended, so that their measure is no quadrature;
    lanczos: steps of it."""

    f0: float
    nodes: np.ndarray
    weights: np.ndarray
    noise_nodes: np.ndarray
    noise_weights: np.ndarray
    products: int
    exact: tuple[bool, bool] = (False, False)
    lanczos: int = 20

    @property
    def sharpness(self) -> float:
        """The largest node."""
        return float(max(self.nodes.max(), self.noise_nodes.max()))

    @property
    def negative_share(self) -> float:
        """How much of the squared gradient lies along negative curvature."""
        return float(self.weights[self.nodes < 0].sum() / self.weights.sum()) if self.weights.any() else 0.0

    @property
    def noise_trace(self) -> float:
        """tr C: variance of one sample's gradient."""
        return float(self.noise_weights.sum())

    def expected_loss(self, method: QuadraticMethod, eta: float, steps: int, batch: int) -> np.ndarray:
        """E f_k of the model, k = 0..steps; not finite where the method diverges out of float64."""
        if not 0 < eta < math.inf or steps < 0 or batch < 1:
            raise InputError(f"eta, steps, batch: {eta!r}, {steps!r}, {batch!r}; allowed are > 0, >= 0, >= 1")
        with np.errstate(over="ignore", invalid="ignore"):
            fall = (self.weights * _fall(method, eta, self.nodes, steps)).sum(axis=1)
            rise = (self.noise_weights * _rise(method, eta, self.noise_nodes, steps)).sum(axis=1) / batch
        return np.asarray(self.f0 + fall + rise)

    def truncation(
        self, a: QuadraticMethod, b: QuadraticMethod, eta: float, window: tuple[int, int], batch: int
    ) -> float:
        """By how much the model's mean of E f_k under a less that under b, over the window, may differ from the same
        with infinitely many steps of Lanczos; infinite where a method diverges out of float64."""
        first, last = window
        low, high = float(self._all.min()), float(self._all.max())
        many = 2 * last + 1
        cosines = np.cos(np.pi * (np.arange(many) + 0.5) / many)
        points = (low + high) / 2 + (high - low) * (0.5 + MARGIN) * cosines
        total = 0.0
        for of, exact, size in (
            (_fall, self.exact[0], self.weights.sum()),
            (_rise, self.exact[1], self.noise_weights.sum() / batch),
        ):
            if exact:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                value = (of(a, eta, points, last) - of(b, eta, points, last))[first:].mean(axis=0)
            total += 2 * float(size) * _later_coefficients(value, 2 * self.lanczos)
        return total

    @property
    def _all(self) -> np.ndarray:
        return np.concatenate([self.nodes[self.weights > 0], self.noise_nodes[self.noise_weights > 0], [0.0]])

    def unstable(self, method: QuadraticMethod, eta: float, losses: np.ndarray) -> str | None:
        """Why the model says nothing of that method, or None: a curvature above 0 that it has and the method does not
        bear, or an expected loss (of `losses`, E f_k) that leaves DIVERGED times f_0, as a run's that has diverged."""
        lam = float(self._all.max())
        if lam > 0 and float(method.spectral_radius(eta * lam)) > 1 + 1e-9:
            return f"unstable at the model's largest curvature, {lam:.4g}"
        far = ~(np.abs(losses - self.f0) <= DIVERGED * abs(self.f0))
        where = int(far.argmax())
        return f"its expected loss leaves {DIVERGED:g} times the first at step {where}" if far.any() else None


def _fall(method: QuadraticMethod, eta: float, lam: np.ndarray, steps: int) -> np.ndarray:
    """What a unit of squared gradient along curvature lam adds to E f_k, [steps + 1, len(lam)]."""
    _, first, later = responses(method, eta * lam, 0.0, steps)
    moved = eta * _sum_of_past(first, later)
    return np.asarray(moved + lam * moved**2 / 2)


def _rise(method: QuadraticMethod, eta: float, lam: np.ndarray, steps: int) -> np.ndarray:
    """What a unit of variance of the gradient there adds."""
    _, first, later = responses(method, eta * lam, 0.0, steps)
    return np.asarray(lam * _sum_of_past(first**2, later**2) * eta**2 / 2)


def _later_coefficients(values: np.ndarray, degree: int) -> float:
    """Sum of |c_j|, j >= degree, of the Chebyshev interpolation of values [n] at cos(pi (i + 1/2)/n)."""
    if not np.isfinite(values).all():
        return math.inf
    c = fft.dct(values, type=2) / len(values)
    return float(np.abs(c[degree:]).sum())


def _sum_of_past(first: np.ndarray, later: np.ndarray) -> np.ndarray:
    """first[k] + later[1] + ... + later[k-1]: all that has arrived at step k."""
    out = first.copy()
    out[2:] += np.cumsum(later[1:-1], axis=0)
    return out


def measure_local(problem: ReplicaLoss, w0: Tensor, lanczos: int = 20) -> LocalQuadratic:
    """The model at w0 [n]: `lanczos` steps from the gradient and from the noise of every sample, all at once."""
    w = w0.detach()
    g = problem.gradient(w[None])
    each = torch.arange(problem.samples)[:, None]
    noise = problem.gradient(w.expand(problem.samples, -1), each) - g
    nodes, weights = spectral_measure(lambda v: problem.hessian_products(w, v), g, lanczos)
    noise_nodes, noise_weights = spectral_measure(lambda v: problem.hessian_products(w, v), noise, lanczos)
    ended = [found.shape[1] < lanczos or found.shape[1] == problem.n for found in (nodes, noise_nodes)]
    return LocalQuadratic(
        float(problem.value(w[None])[0]),
        nodes[0],
        weights[0],
        noise_nodes.ravel(),
        noise_weights.ravel() / problem.samples,
        nodes.shape[1] + noise_nodes.shape[1] * problem.samples,
        (ended[0], ended[1]),
        lanczos,
    )
