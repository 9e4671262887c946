"""Logistic regression with a ridge: f(w) = mean log(1 + exp(-t_i <a_i, w>)) + mu/2 ||w||^2.

The Hessian is at least mu I and at most H_0 = A^T A/(4N) + mu I, which is the Hessian at w = 0: so L is exactly that of
H_0. The weight is a 1 x d matrix, for which spectral, row-l2 and Frobenius are one norm, L = lam_max(H_0); sign:
L = max over signs s of s^T H_0 s, by enumeration for d <= 12, else at most the smaller of sum |H_0| and d lam_max(H_0).
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from empirics.constants import Constant, exact
from empirics.errors import InputError
from empirics.estimators.objective import FiniteObjective
from empirics.problems.finite_sum import FiniteSum, weights_of
from empirics.problems.matrix_least_squares import MOST_ENUMERATED


def logistic_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean of log(1 + exp(-t score)); targets -1 or 1."""
    return F.softplus(-targets * scores.squeeze(-1)).mean()


def logistic(samples: int = 64, features: int = 8, ridge: float = 0.01, seed: int = 0) -> FiniteSum:
    """Gaussian features, labels from a random direction, a tenth of them flipped; starts at 0."""
    if samples < 1 or features < 1 or not 0 < ridge < math.inf:
        raise InputError(
            f"samples, features, ridge: {samples!r}, {features!r}, {ridge!r}; "
            f"allowed are at least 1, at least 1 and a finite number > 0"
        )
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features))
    t = np.where(A @ rng.standard_normal(features) >= 0, 1.0, -1.0) * np.where(rng.random(samples) < 0.1, -1.0, 1.0)
    layer = nn.Linear(features, 1, bias=False, dtype=torch.float64)
    nn.init.zeros_(layer.weight)
    objective = FiniteObjective([layer], torch.from_numpy(A), torch.from_numpy(t), logistic_loss, 4096, ridge)
    H = A.T @ A / (4 * samples)

    def constants(norm: str) -> dict[str, Constant]:
        note = "attained at w = 0, where the logistic function is steepest"
        top = float(np.linalg.eigvalsh(H)[-1])
        if norm in ("spectral", "frobenius", "row-l2", "layers"):
            return {"L": exact("L", top + ridge, "everywhere", note)}
        if norm != "sign":
            raise InputError(f"norm: {norm!r}; allowed are spectral, sign, row-l2, frobenius, layers")
        if features <= MOST_ENUMERATED:
            signs = 2.0 * ((np.arange(2 ** (features - 1))[:, None] >> np.arange(features)) & 1) - 1.0
            largest = float(np.einsum("si,ij,sj->s", signs, H, signs).max())
            return {"L": exact("L", largest + ridge * features, "everywhere", note)}
        L = min(float(np.abs(H).sum()), features * top) + ridge * features
        return {"L": Constant("L", L, "bound", "everywhere", 0.0, L, method="closed form", note="upper bound")}

    floor = (0.0, "a logistic loss is positive")
    return FiniteSum("logistic", objective, weights_of(objective), ridge, floor, constants)
