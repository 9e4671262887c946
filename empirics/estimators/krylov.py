"""Lanczos' recursion with full reorthogonalisation, of many vectors at once: the one loop of both spectral estimators.

For symmetric H and a start q_1 of length 1, after k products H Q = Q T + rest q_{k+1} e_k', with Q [n, k] orthonormal
and T tridiagonal. One product serves all starts. Directions are made orthogonal to all before them, twice, which is
enough to round-off (Parlett 1980, ch. 6). A space that has ended goes on as zeros, in its basis and in T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

#: [R, n] -> [R, n] in float64: H times each row.
RowProduct = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Krylov:
    """k products from each of R starts. basis [R, k, n]; T [R, k, k]; overlaps [R, k]: of the last product with the
    basis, before it was made orthogonal; rest [R]: what is new in it; size [R]: the longest product; ended [R]: nothing
    is new but round-off, so that the space is invariant."""

    basis: Tensor
    T: Tensor
    overlaps: Tensor
    rest: Tensor
    size: Tensor
    ended: Tensor


def unit(v: Tensor) -> Tensor:
    """Each row over its length; 0 stays."""
    return v / torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp_min(torch.finfo(v.dtype).tiny)


def krylov_spaces(product: RowProduct, starts: Tensor, most: int) -> Iterator[Krylov]:
    """After 1, 2, ... products, from starts [R, n] in float64; at most `most` and n, and none after all have ended.

    Each is a view of growing arrays: good until the next one is asked for. The product checks its result.
    """
    R, n = starts.shape
    m = min(most, n)
    basis, T = starts.new_zeros(R, m, n), starts.new_zeros(R, m, m)
    q, size = unit(starts), starts.new_zeros(R)
    for k in range(m):
        basis[:, k] = q
        w = product(q)
        size = torch.maximum(size, torch.linalg.vector_norm(w, dim=1))
        Q = basis[:, : k + 1]
        overlaps = _components(Q, w)
        T[:, k, k] = overlaps[:, k]
        w = w - _combination(Q, overlaps)
        w = w - _combination(Q, _components(Q, w))
        rest = torch.linalg.vector_norm(w, dim=1)
        ended = rest <= 8 * math.sqrt(n) * torch.finfo(w.dtype).eps * size
        yield Krylov(Q, T[:, : k + 1, : k + 1], overlaps, rest, size, ended)
        if k + 1 == m or bool(ended.all()):
            return
        T[:, k, k + 1] = T[:, k + 1, k] = rest * ~ended
        q = unit(w) * ~ended[:, None]


def _components(Q: Tensor, w: Tensor) -> Tensor:
    return torch.bmm(Q, w[:, :, None])[:, :, 0]


def _combination(Q: Tensor, c: Tensor) -> Tensor:
    return torch.bmm(c[:, None], Q)[:, 0]
