"""The norms of the LMO methods with their duals, in float64, for stacks of matrices.

name         norm                      dual               rho: dual(v) <= rho ||v||_F
spectral     largest singular value    nuclear            sqrt(min(rows, cols))
sign         largest entry             sum of entries     sqrt(rows cols)
frobenius    Frobenius                 Frobenius          1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from empirics.errors import InputError

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Norm:
    """A norm on matrices and its dual: arrays of shape [..., rows, cols] -> [...]; rho(rows, cols)."""

    name: str
    norm: Function
    dual: Function
    rho: Callable[[int, int], float]


def _singular(x: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.asarray(x, dtype=float), compute_uv=False)


def _frobenius(x: np.ndarray) -> np.ndarray:
    return np.sqrt((np.asarray(x, dtype=float) ** 2).sum(axis=(-2, -1)))


NORMS: dict[str, Norm] = {
    "spectral": Norm(
        "spectral",
        lambda x: _singular(x)[..., 0],
        lambda x: _singular(x).sum(axis=-1),
        lambda rows, cols: math.sqrt(min(rows, cols)),
    ),
    "sign": Norm(
        "sign",
        lambda x: np.abs(x).max(axis=(-2, -1)),
        lambda x: np.abs(x).sum(axis=(-2, -1)),
        lambda rows, cols: math.sqrt(rows * cols),
    ),
    "frobenius": Norm("frobenius", _frobenius, _frobenius, lambda rows, cols: 1.0),
}


def get_norm(name: str) -> Norm:
    """The norm of that name. Raises InputError listing the names."""
    if name not in NORMS:
        raise InputError(f"norm: {name!r}; allowed are {', '.join(NORMS)}")
    return NORMS[name]
