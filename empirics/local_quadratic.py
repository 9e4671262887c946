"""The local quadratic model of a problem at a point.

At w_0 take f(w_0 + d) = f_0 + <g, d> + <d, H d>/2 and the noise of the gradient as it is there, covariance C/b for a
batch of b. A linear method then moves the mode of curvature lam by m_k times its gradient and adds noise of variance
(C/b) V_k, both known (`theory.quadratic`, responses to a constant gradient and to noise of 1), so
    E f_k = f_0 + sum_i g_i^2 (m_k + lam_i m_k^2/2) + sum_i (C_ii/b) lam_i V_k/2:
sums over two measures of H, that of g and that of the noise, which Lanczos gives by products with H alone
(`empirics.estimators.spectral_measure`): exact for polynomials of degree 2m - 1, so to round-off for the first steps.
Noise by enumeration: every sample's is a start of its own.
Checked by tests/empirics/test_prediction.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.spectral_measure import spectral_measure
from empirics.problems.replicas import ReplicaLoss
from theory.quadratic import QuadraticMethod
from theory.quadratic.state_space import responses


@dataclass(frozen=True)
class LocalQuadratic:
    """f_0, and the measures of g and of one sample's noise: nodes and weights of each. products: with the Hessian."""

    f0: float
    nodes: np.ndarray
    weights: np.ndarray
    noise_nodes: np.ndarray
    noise_weights: np.ndarray
    products: int

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
        _, first, later = responses(method, eta * self.nodes, 0.0, steps)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = _sum_of_past(first, later)
            fall = (self.weights * (eta * moved + self.nodes * (eta * moved) ** 2 / 2)).sum(axis=1)
            _, first, later = responses(method, eta * self.noise_nodes, 0.0, steps)
            spread = _sum_of_past(first**2, later**2) * eta**2
            rise = (self.noise_weights * self.noise_nodes * spread).sum(axis=1) / (2 * batch)
        return np.asarray(self.f0 + fall + rise)


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
    return LocalQuadratic(
        float(problem.value(w[None])[0]),
        nodes[0],
        weights[0],
        noise_nodes.ravel(),
        noise_weights.ravel() / problem.samples,
        nodes.shape[1] + noise_nodes.shape[1] * problem.samples,
    )
