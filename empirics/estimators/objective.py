"""A finite-sum objective of a layer-list model: exact value, full gradient and sampling noise, by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from empirics.errors import InputError
from empirics.estimators.gradient_noise import exact_variance
from empirics.estimators.hessian import hessian_product, second_derivatives
from empirics.estimators.weights import check_finite

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class FiniteObjective:
    """f(x) = mean over N sequences of the loss of a model with weights x.

    layers: the model (its weights are overwritten, and it is put into eval mode: f has no dropout, and batch norm its
    running statistics); inputs, targets: N sequences, or N samples of any shape; loss: mean over a batch of them, all
    equally long; chunk: sequences per pass; ridge: ridge/2 times the squared Frobenius norm of all weights is added.
    """

    layers: Sequence[nn.Module]
    inputs: Tensor
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    chunk: int = 32
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.inputs) or len(self.inputs) != len(self.targets):
            raise InputError(
                f"inputs, targets: {len(self.inputs)} and {len(self.targets)}; allowed are as many of each, at least 1"
            )
        if self.chunk < 1 or not 0 <= self.ridge < float("inf"):
            raise InputError(f"chunk, ridge: {self.chunk!r}, {self.ridge!r}; allowed are chunk >= 1 and ridge >= 0")

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
        value = self.loss(h, self.targets[rows])
        if not self.ridge:
            return value
        return value + self.ridge / 2 * sum((p**2).sum() for p in self.parameters().values())

    def _chunks(self) -> Iterator[tuple[slice, float]]:
        """Rows of each pass, with their share of the mean."""
        N = len(self.inputs)
        for start in range(0, N, self.chunk):
            rows = slice(start, min(start + self.chunk, N))
            yield rows, (rows.stop - rows.start) / N

    def value(self, weights: Weights) -> float:
        """f at ``weights``."""
        self._load(weights)
        with torch.no_grad():
            return sum(self._loss_of(rows).item() * share for rows, share in self._chunks())

    def value_and_gradient(self, weights: Weights) -> tuple[float, Weights]:
        """f and its full gradient at ``weights``."""
        parameters = self._load(weights)
        total = 0.0
        for rows, share in self._chunks():
            part = self._loss_of(rows) * share
            if part.requires_grad:
                part.backward()  # type: ignore[no-untyped-call]
            total += part.item()
        return total, _gradients(parameters)

    def batch_gradient(self, weights: Weights, rows: Sequence[int] | slice) -> Weights:
        """Gradient of the mean over some of the sequences."""
        parameters = self._load(weights)
        loss = self._loss_of(rows)  # type: ignore[arg-type]
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return _gradients(parameters)

    def hessian_product(self, weights: Weights, v: Weights) -> Weights:
        """Hessian of f at ``weights`` times ``v``. Raises InputError where it is not finite."""
        parameters = self._load(weights)
        total = {name: torch.zeros_like(p) for name, p in parameters.items()}
        for rows, share in self._chunks():
            with second_derivatives():
                loss = self._loss_of(rows)
            for name, h in hessian_product(loss, parameters, v).items():
                total[name] += share * h
        check_finite(total, "Hessian-vector product")
        return total

    def sequence_variance(self, weights: Weights) -> float:
        """(1/N) sum_i ||grad f_i - grad f||_F^2: variance of one sequence's gradient, drawn uniformly.

        A batch of B sequences drawn with replacement has sigma^2 = this / B.
        """
        return exact_variance(self.batch_gradient(weights, slice(i, i + 1)) for i in range(len(self.inputs)))


def _gradients(parameters: Mapping[str, nn.Parameter]) -> Weights:
    """By name; zero where the loss does not depend on the parameter."""
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone() for name, p in parameters.items()
    }
