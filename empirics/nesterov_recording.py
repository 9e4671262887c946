"""What the recorder adds of a run whose oracle is called at c_k = (1-alpha) m_{k+1} + alpha g_k (Nesterov's)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from empirics.estimators.weights import minus

Weights = Mapping[str, Tensor]


def mixed(old: Weights, new: Weights, alpha: float) -> dict[str, Tensor]:
    """(1-alpha) old + alpha new: c_k of momentum and gradient, its noise q_k of nu_k and n_k."""
    return {name: torch.lerp(old[name], value, alpha) for name, value in new.items()}


def called_quantities(
    v: Mapping[str, dict[str, Tensor]], step: Weights, eta: float, inner: Callable[[Weights, Weights], list[float]]
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Vectors whose dual norms are wanted, and numbers; `inner` of two stacks of vectors."""
    c, q = v["called"], v["called_noise"]
    error, shifted = minus(c, v["grad"]), minus(c, v["taken"])
    duals = {
        "called_norm": c,
        "called_error_norm": error,
        "called_shifted_error_norm": shifted,
        "called_noise_norm": q,
        "called_lag_norm": minus(error, q),
        "called_shifted_lag_norm": minus(shifted, q),
    }
    square = inner(q, q)
    return duals, {
        "inner_called": [-value / eta for value in inner(c, step)],
        "inner_called_error": [-value / eta for value in inner(error, step)],
        "called_noise_square": square,
        "called_noise_frobenius": [value**0.5 for value in square],
    }
