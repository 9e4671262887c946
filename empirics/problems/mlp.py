"""A small perceptron with one hidden layer of tanh on fixed data from another one: half the mean squared error."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from empirics.errors import InputError
from empirics.estimators.objective import FiniteObjective
from empirics.problems.finite_sum import FiniteSum, weights_of


def half_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean over samples of half the squared distance."""
    return ((outputs - targets) ** 2).sum() / (2 * len(outputs))


def _layers(features: int, hidden: int, outputs: int, seed: int) -> list[nn.Module]:
    generator = torch.Generator().manual_seed(seed)
    layers = [nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, outputs)]
    for layer in layers:
        layer.double()
        with torch.no_grad():
            for p in layer.parameters():
                scale = p.shape[1] ** -0.5 if p.ndim > 1 else 0.1
                p.copy_(scale * torch.randn(p.shape, dtype=torch.float64, generator=generator))
    return list(layers)


def mlp(samples: int = 64, features: int = 6, hidden: int = 16, outputs: int = 3, seed: int = 0) -> FiniteSum:
    """Targets from a perceptron of the same shape and another seed, with noise, so that f_* > 0 is likely."""
    if min(samples, features, hidden, outputs) < 1:
        raise InputError(
            f"samples, features, hidden, outputs: {samples!r}, {features!r}, {hidden!r}, {outputs!r}; "
            f"allowed are integers >= 1"
        )
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, features, dtype=torch.float64, generator=generator)
    with torch.no_grad():
        targets = nn.Sequential(*_layers(features, hidden, outputs, seed + 1_000_003))(inputs)
        targets = targets + 0.3 * torch.randn(targets.shape, dtype=torch.float64, generator=generator)
    objective = FiniteObjective(_layers(features, hidden, outputs, seed), inputs, targets, half_squared_error, 4096)
    return FiniteSum("mlp", objective, weights_of(objective), floor=(0.0, "a squared error is not negative"))
