"""Norms of many tensors of one layer at once: what `pipeline.optim.layer_norms` says of one, for a stack [n, ...].

One call of the singular values serves all of them. Everything in float64; NaN for a tensor that is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pipeline.optim.layer_norms import check_norm, stacked

Layers = Mapping[str, tuple[str, float]]


def stack_norms(x: Tensor, norm: str, dual: bool) -> Tensor:
    """The named norm, or its dual, of each of x [n, ...] -> [n]."""
    check_norm(norm)
    flat = x.detach().double().reshape(x.shape[0], x.shape[1] if x.ndim > 1 else 1, -1)  # [n, rows, columns]
    if not flat.numel():
        return flat.new_zeros(x.shape[0])
    finite = torch.isfinite(flat).all(dim=2).all(dim=1)
    values = stacked(torch.where(finite[:, None, None], flat, torch.zeros((), dtype=flat.dtype)), norm, dual)
    return torch.where(finite, values, torch.full_like(values, torch.nan))


def model_norms(stacks: Mapping[str, Tensor], layers: Layers, dual: bool) -> Tensor:
    """Over a model, x_l [n, ...] by name: max_l norm_l(x_l)/w_l, or its dual sum_l w_l dual_l(x_l) -> [n]."""
    parts = [
        stack_norms(stacks[name], norm, dual) * (weight if dual else 1 / weight)
        for name, (norm, weight) in layers.items()
    ]
    together = torch.stack(parts)  # [layers, n]
    return together.sum(0) if dual else together.amax(0)
