"""The norms of the LMO methods with their duals, in float64, for stacks of matrices, by numpy: a second
way beside `pipeline.optim.layer_norms`, which the optimizer and the recorders have.

name         norm                      dual               rho: dual(v) <= rho ||v||_F
spectral     largest singular value    nuclear            sqrt(min(rows, cols))
sign         largest entry             sum of entries     sqrt(rows cols)
frobenius    Frobenius                 Frobenius          1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from empirics.errors import InputError
from pipeline.optim.layer_norms import layer_rho

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Norm:
    """A norm on matrices and its dual: arrays of shape [..., rows, cols] -> [...]."""

    name: str
    norm: Function
    dual: Function

    def rho(self, rows: int, cols: int) -> float:
        """Smallest with dual(v) <= rho ||v||_F."""
        return layer_rho(torch.Size((rows, cols)), self.name)


def _singular(x: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.asarray(x, dtype=float), compute_uv=False)


def _frobenius(x: np.ndarray) -> np.ndarray:
    return np.sqrt((np.asarray(x, dtype=float) ** 2).sum(axis=(-2, -1)))


NORMS: dict[str, Norm] = {
    "spectral": Norm(
        "spectral",
        lambda x: _singular(x)[..., 0],
        lambda x: _singular(x).sum(axis=-1),
    ),
    "sign": Norm(
        "sign",
        lambda x: np.abs(x).max(axis=(-2, -1)),
        lambda x: np.abs(x).sum(axis=(-2, -1)),
    ),
    "frobenius": Norm("frobenius", _frobenius, _frobenius),
}


def get_norm(name: str) -> Norm:
    """The norm of that name. Raises InputError listing the names."""
    if name not in NORMS:
        raise InputError(f"norm: {name!r}; allowed are {', '.join(NORMS)}")
    return NORMS[name]
