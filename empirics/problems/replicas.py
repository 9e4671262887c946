"""Finite sums whose weights are a matrix, one row a replica of the model: many seeds of a run at once.

A problem is a loss of weights [R, n] and rows [R, b] (which samples each replica sees) to [R]. Replicas do not touch:
one backward gives all their gradients, and an elementwise optimizer on the parameter [R, n] is R independent runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from empirics.errors import InputError


@dataclass(frozen=True)
class ReplicaLoss:
    """n weights, N samples; loss: (weights [R, n], rows [R, b]) -> mean over the rows, [R]; start [n].

    shapes: the parameters that the n weights are, in their order, by name; none: one vector.
    """

    name: str
    n: int
    samples: int
    loss: Callable[[Tensor, Tensor], Tensor]
    start: Tensor
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sum(map(math.prod, self.layout.values())) != self.n:
            raise InputError(f"shapes: {dict(self.shapes)}; allowed are shapes with {self.n} entries together")

    @property
    def layout(self) -> Mapping[str, tuple[int, ...]]:
        """Name -> shape."""
        return self.shapes or {"weights": (self.n,)}

    def everything(self, replicas: int) -> Tensor:
        """All samples, for each replica."""
        return torch.arange(self.samples).expand(replicas, -1)

    def value(self, w: Tensor) -> Tensor:
        """f of each replica, [R]."""
        with torch.no_grad():
            return self.loss(w, self.everything(len(w)))

    def gradient(self, w: Tensor, rows: Tensor | None = None) -> Tensor:
        """Gradient of the mean over rows (None: all) of each replica, [R, n]."""
        free = w.detach().requires_grad_(True)
        total = self.loss(free, self.everything(len(w)) if rows is None else rows).sum()
        return torch.autograd.grad(total, free)[0]

    def hessian_product(self, w: Tensor, v: Tensor) -> Tensor:
        """Hessian of f at each row of w, times that row of v: [R, n]."""
        free = w.detach().requires_grad_(True)
        (g,) = torch.autograd.grad(self.loss(free, self.everything(len(w))).sum(), free, create_graph=True)
        return torch.autograd.grad((g * v).sum(), free)[0]

    def hessian_products(self, w: Tensor, vectors: Tensor) -> Tensor:
        """Hessian of f at one point w [n] times each of the vectors [R, n]: what it takes of f is computed once."""
        free = w.detach()[None].requires_grad_(True)
        (g,) = torch.autograd.grad(self.loss(free, self.everything(1)).sum(), free, create_graph=True)
        return torch.autograd.grad(g, free, vectors[:, None], is_grads_batched=True)[0][:, 0]


def _positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name}: {value!r}; allowed is an integer >= 1")


def perceptron(
    samples: int = 64, features: int = 6, hidden: int = 10, noise: float = 0.5, seed: int = 0
) -> ReplicaLoss:
    """One hidden layer of tanh, half squared error, targets of a random teacher with noise."""
    _positive(samples=samples, features=features, hidden=hidden)
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    x = normal(samples, features)
    y = torch.tanh(x @ normal(features, 3) / features**0.5).sum(dim=1) + noise * normal(samples)
    cuts = [features * hidden, features * hidden + hidden, features * hidden + 2 * hidden]
    n = cuts[-1] + 1
    start = torch.cat([normal(cuts[0]) / features**0.5, torch.zeros(hidden, dtype=torch.float64)])
    start = torch.cat([start, normal(hidden) / hidden**0.5, torch.zeros(1, dtype=torch.float64)])

    def loss(w: Tensor, rows: Tensor) -> Tensor:
        W = w[:, : cuts[0]].reshape(-1, features, hidden)
        h = torch.tanh(torch.bmm(x[rows], W) + w[:, None, cuts[0] : cuts[1]])  # [R, b, hidden]
        out = torch.bmm(h, w[:, cuts[1] : cuts[2], None])[..., 0] + w[:, cuts[2] :]
        return ((out - y[rows]) ** 2).mean(dim=1) / 2

    shapes = {"up.weight": (features, hidden), "up.bias": (hidden,), "head.weight": (hidden,), "head.bias": (1,)}
    return ReplicaLoss("perceptron", n, samples, loss, start, shapes)


def quadratic_sum(curvatures: Tensor, spread: float = 1.0, samples: int = 16, seed: int = 0) -> ReplicaLoss:
    """f_i(w) = w'Hw/2 + <c_i, w>, H with these eigenvalues, the c_i Gaussian with mean 0: noise that is the same
    everywhere, and the local quadratic model is the problem itself. Starts at a Gaussian point.
    """
    _positive(samples=samples)
    generator = torch.Generator().manual_seed(seed)
    n = len(curvatures)
    Q, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator))
    H = Q * curvatures.double() @ Q.T
    c = spread * torch.randn(samples, n, dtype=torch.float64, generator=generator)
    c = c - c.mean(dim=0)
    start = torch.randn(n, dtype=torch.float64, generator=generator)

    def loss(w: Tensor, rows: Tensor) -> Tensor:
        return ((w @ H) * w).sum(dim=1) / 2 + (c[rows].mean(dim=1) * w).sum(dim=1)

    return ReplicaLoss("quadratic", n, samples, loss, start)
