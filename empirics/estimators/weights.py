"""Arithmetic on weights by name, and weights as one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from empirics.errors import InputError

Weights = Mapping[str, Tensor]


def combine(terms: Sequence[tuple[float, Weights]]) -> dict[str, Tensor]:
    """sum of factor times weights, by the names of the first."""
    if not terms:
        raise InputError("terms: none; allowed is at least one")
    first = terms[0][1]
    return {name: sum((a * x[name] for a, x in terms[1:]), terms[0][0] * first[name]) for name in first}


def minus(a: Weights, b: Weights) -> dict[str, Tensor]:
    """a - b by name."""
    return {name: a[name] - b[name] for name in a}


def inner(a: Weights, b: Weights) -> float:
    """sum of the products of all entries, in float64."""
    return sum(float((a[name].double() * b[name].double()).sum()) for name in a)


def flatten(x: Weights) -> Tensor:
    """All entries in float64 on the CPU, shape [d], in the order of the names."""
    return torch.cat([v.detach().double().cpu().reshape(-1) for v in x.values()]) if x else torch.zeros(0).double()


def unflatten(vector: Tensor, like: Weights) -> dict[str, Tensor]:
    """The inverse of :func:`flatten`, in shapes and dtypes of `like`, and where that is."""
    sizes = [v.numel() for v in like.values()]
    if vector.shape != (sum(sizes),):
        raise InputError(f"vector: shape {tuple(vector.shape)}; allowed is ({sum(sizes)},)")
    pieces = zip(like.items(), torch.split(vector, sizes), strict=True)
    return {name: part.reshape(v.shape).to(v.device, v.dtype) for (name, v), part in pieces}


def check_finite(x: Weights, what: str) -> None:
    """Raises InputError naming the parameter that is not finite."""
    bad = next((name for name, v in x.items() if not bool(torch.isfinite(v).all())), None)
    if bad is not None:
        raise InputError(f"{what}: not finite in {bad!r}; allowed are finite numbers")
