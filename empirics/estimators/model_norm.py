"""The norm of a whole model under the LMO optimizer: a weighted maximum over layers, with its exact dual.

norm(x) = max_l norm_l(x_l) / w_l, dual(g) = sum_l w_l dual_l(g_l), with w_l the layer's share of the step length, so
that one step of the optimizer has norm at most eta. Layer norms: spectral (dual nuclear), row-l2 (longest row; dual
the sum of the rows' lengths), sign (largest entry; dual l_1), frobenius.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from empirics.errors import InputError


def _rows(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x.reshape(x.shape[0], -1), dim=1)


def layer_norm(x: Tensor, norm: str) -> float:
    """The named norm of one parameter, computed in float64."""
    x = x.double()
    if norm == "spectral":
        return float(torch.linalg.matrix_norm(x.reshape(x.shape[0], -1), ord=2))
    if norm == "row-l2":
        return float(_rows(x).max())
    if norm == "sign":
        return float(x.abs().max())
    if norm == "frobenius":
        return float(torch.linalg.vector_norm(x))
    raise InputError(f"norm: {norm!r}; allowed are spectral, row-l2, sign, frobenius")


def layer_dual(g: Tensor, norm: str) -> float:
    """The dual of the named norm, computed in float64."""
    g = g.double()
    if norm == "spectral":
        return float(torch.linalg.svdvals(g.reshape(g.shape[0], -1)).sum())
    if norm == "row-l2":
        return float(_rows(g).sum())
    if norm == "sign":
        return float(g.abs().sum())
    if norm == "frobenius":
        return float(torch.linalg.vector_norm(g))
    raise InputError(f"norm: {norm!r}; allowed are spectral, row-l2, sign, frobenius")


def layer_rho(shape: torch.Size, norm: str) -> float:
    """Smallest rho with dual(v) <= rho ||v||_F for the shape."""
    rows, entries = shape[0], math.prod(shape)
    squares = {"spectral": min(rows, entries // rows), "row-l2": rows, "sign": entries, "frobenius": 1}
    return math.sqrt(squares[norm])


@dataclass(frozen=True)
class ModelNorm:
    """layers: parameter name -> (norm, weight)."""

    layers: Mapping[str, tuple[str, float]]

    @classmethod
    def of_optimizer(cls, groups: Iterable[Mapping[str, object]], names: Mapping[int, str]) -> ModelNorm:
        """From the parameter groups of an LMO optimizer; ``names``: id of a parameter -> its name."""
        layers: dict[str, tuple[str, float]] = {}
        for group in groups:
            for p in group["params"]:  # type: ignore[attr-defined]
                layers[names[id(p)]] = (str(group["norm"]), float(group["weight"]))  # type: ignore[arg-type]
        return cls(layers)

    def norm(self, x: Mapping[str, Tensor]) -> float:
        return max(layer_norm(x[name], norm) / w for name, (norm, w) in self.layers.items())

    def dual(self, g: Mapping[str, Tensor]) -> float:
        return sum(w * layer_dual(g[name], norm) for name, (norm, w) in self.layers.items())

    def rho(self, x: Mapping[str, Tensor]) -> float:
        """dual(v) <= rho ||v||_F over the whole model, by Cauchy-Schwarz over the layers; attained."""
        return math.sqrt(sum((w * layer_rho(x[name].shape, norm)) ** 2 for name, (norm, w) in self.layers.items()))
