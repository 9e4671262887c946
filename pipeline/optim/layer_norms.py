"""Norms of one parameter with their duals, the weighted maximum over a model, and how exact a direction is.

name         norm                          dual                          rho: dual(v) <= rho ||v||_F
spectral     largest singular value        sum of singular values        sqrt(min(rows, columns))
sign         largest entry                 sum of entries                sqrt(entries)
row-l2       longest row                   sum of the rows' lengths      sqrt(rows)
frobenius    Frobenius                     Frobenius                     1
Of a tensor with more than two dimensions all after the first are columns. Everything is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from pipeline.errors import InputError

NORMS = ("spectral", "sign", "row-l2", "frobenius")


def check_norm(norm: str) -> str:
    """The name; InputError unless it is one of NORMS."""
    if norm not in NORMS:
        raise InputError(f"norm: {norm!r}; allowed are {', '.join(NORMS)}")
    return norm


def layer_norm(x: Tensor, norm: str) -> float:
    """The named norm of one parameter."""
    return _scaled(x, check_norm(norm), dual=False)


def layer_dual(g: Tensor, norm: str) -> float:
    """The dual of the named norm."""
    return _scaled(g, check_norm(norm), dual=True)


def layer_rho(shape: torch.Size, norm: str) -> float:
    """Smallest rho with dual(v) <= rho ||v||_F for the shape."""
    rows, entries = shape[0] if shape else 1, math.prod(shape)
    squares = {"spectral": min(rows, entries // rows), "row-l2": rows, "sign": entries, "frobenius": 1}
    return math.sqrt(squares[check_norm(norm)])


def weighted_norm(layers: Iterable[tuple[Tensor, str, float]]) -> float:
    """max_l norm_l(x_l)/w_l over layers (x, norm, w); 0 for none."""
    return max((layer_norm(x, norm) / w for x, norm, w in layers), default=0.0)


def weighted_dual(layers: Iterable[tuple[Tensor, str, float]]) -> float:
    """sum_l w_l dual_l(g_l) over layers (g, norm, w): the dual of :func:`weighted_norm`."""
    return sum((w * layer_dual(g, norm) for g, norm, w in layers), start=0.0)


def inexactness(m: Tensor, d: Tensor, norm: str) -> tuple[float, float]:
    """(r_lo, r_hi) of a direction d for m: r_hi = norm(d), r_lo = <m, d>/dual(m). The exact oracle has (1, 1).

    The bounds for an inexact oracle ask for norm(d) <= r_hi and <m, d> >= r_lo dual(m). m = 0 asks nothing of
    r_lo and gives 1; then d = 0 gives (1, 0). The scale of m does not matter. NaN where m or d is not finite.
    Costs the singular values of m and of d where the norm is spectral.
    """
    r_hi = layer_norm(d, norm)
    size = float(m.abs().max()) if m.numel() else 0.0
    if size == 0.0 and not math.isnan(r_hi):
        return 1.0, r_hi
    if not math.isfinite(size) or not math.isfinite(r_hi):
        return math.nan, math.nan
    unit = m.double() / size
    return float((unit * d.double()).sum()) / layer_dual(unit, norm), r_hi


def _scaled(x: Tensor, norm: str, dual: bool) -> float:
    """A norm of x/size times size, with size the largest entry: no square overflows or vanishes."""
    x = x.detach().double()
    size = float(x.abs().max()) if x.numel() else 0.0
    if norm == "sign" and not dual or size == 0.0 or not math.isfinite(size):
        return size
    x = x / size
    return float(stacked(x.reshape(1, x.shape[0] if x.ndim else 1, -1), norm, dual)[0]) * size


def stacked(matrices: Tensor, norm: str, dual: bool) -> Tensor:
    """The named norm, or its dual, of each of n matrices [n, rows, columns], finite -> [n]; nothing is scaled."""
    if norm == "sign":
        return matrices.abs().sum((1, 2)) if dual else matrices.abs().amax((1, 2))
    if norm == "frobenius":
        return torch.linalg.vector_norm(matrices, dim=(1, 2))
    if norm == "row-l2":
        lengths = torch.linalg.vector_norm(matrices, dim=2)
        return lengths.sum(1) if dual else lengths.amax(1)
    s = torch.linalg.svdvals(matrices)
    return s.sum(1) if dual else s[:, 0]
