"""A finite-sum objective of a layer-list model: exact value, full gradient and sampling noise, by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class FiniteObjective:
    """f(x) = mean over N sequences of the loss of a model with weights x.

    layers: the model (its weights are overwritten, and it is put into eval mode: f has no dropout); inputs, targets:
    (N, context) integers; loss: mean over a batch of equally long sequences; chunk: sequences per pass.
    """

    layers: Sequence[nn.Module]
    inputs: Tensor
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    chunk: int = 32

    def parameters(self) -> dict[str, nn.Parameter]:
        """The model's parameters by full name, ``layers.<index>.<name>``; a tied one once, under its first name."""
        names: dict[nn.Parameter, str] = {}
        for index, layer in enumerate(self.layers):
            for name, p in layer.named_parameters():
                names.setdefault(p, f"layers.{index}.{name}")
        return {name: p for p, name in names.items()}

    def _load(self, weights: Weights) -> dict[str, nn.Parameter]:
        parameters = self.parameters()
        for layer in self.layers:
            layer.eval()
        with torch.no_grad():
            for name, p in parameters.items():
                p.copy_(weights[name])
                p.grad = None
        return parameters

    def _loss_of(self, rows: slice) -> Tensor:
        h = self.inputs[rows]
        for layer in self.layers:
            h = layer(h)
        return self.loss(h, self.targets[rows])

    def value(self, weights: Weights) -> float:
        """f at ``weights``."""
        self._load(weights)
        N, total = len(self.inputs), 0.0
        with torch.no_grad():
            for start in range(0, N, self.chunk):
                rows = slice(start, min(start + self.chunk, N))
                total += self._loss_of(rows).item() * (rows.stop - rows.start) / N
        return total

    def value_and_gradient(self, weights: Weights) -> tuple[float, Weights]:
        """f and its full gradient at ``weights``."""
        parameters = self._load(weights)
        N, total = len(self.inputs), 0.0
        for start in range(0, N, self.chunk):
            rows = slice(start, min(start + self.chunk, N))
            share = self._loss_of(rows) * ((rows.stop - rows.start) / N)
            share.backward()  # type: ignore[no-untyped-call]
            total += share.item()
        return total, {name: p.grad.detach().clone() for name, p in parameters.items() if p.grad is not None}

    def sequence_variance(self, weights: Weights) -> float:
        """(1/N) sum_i ||grad f_i - grad f||_F^2: variance of one sequence's gradient, drawn uniformly.

        A batch of B sequences drawn with replacement has sigma^2 = this / B.
        """
        parameters = self._load(weights)
        N, squares = len(self.inputs), 0.0
        sums = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in parameters.items()}
        for i in range(N):
            for p in parameters.values():
                p.grad = None
            self._loss_of(slice(i, i + 1)).backward()  # type: ignore[no-untyped-call]
            for name, p in parameters.items():
                if p.grad is not None:
                    gradient = p.grad.double()
                    sums[name] += gradient
                    squares += float((gradient**2).sum())
        mean_square = sum(float(((total / N) ** 2).sum()) for total in sums.values())
        return max(squares / N - mean_square, 0.0)
