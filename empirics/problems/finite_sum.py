"""A model on a finite data set as a problem: full gradient and covariance by enumeration, Hessian by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from empirics.constants import Constant
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.weights import Weights
from empirics.problems.interface import check_batch, check_index, draw_of_finite


@dataclass(frozen=True)
class FiniteSum:
    """objective: f; first: x_0; convexity, floor: as in the interface; constants: norm -> what else is known."""

    name: str
    objective: FiniteObjective
    first: Weights
    convexity: float = 0.0
    floor: tuple[float, str] | None = None
    constants: Callable[[str], dict[str, Constant]] = field(default=lambda norm: {})

    @property
    def samples(self) -> int:
        return len(self.objective.inputs)

    def start(self) -> dict[str, Tensor]:
        return {name: v.detach().clone() for name, v in self.first.items()}

    def value(self, x: Weights) -> float:
        return self.objective.value(dict(x))

    def value_and_gradient(self, x: Weights) -> tuple[float, dict[str, Tensor]]:
        return self.objective.value_and_gradient(dict(x))

    def hessian_product(self, x: Weights, v: Weights) -> dict[str, Tensor]:
        return self.objective.hessian_product(dict(x), dict(v))

    def sample_gradient(self, x: Weights, i: int) -> dict[str, Tensor]:
        check_index(i, self.samples)
        return self.objective.batch_gradient(dict(x), slice(i, i + 1))

    def draw(self, x: Weights, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        if check_batch(batch) > self.samples:
            return draw_of_finite(self, x, batch, generator)
        rows = torch.randint(self.samples, (batch,), generator=generator).tolist()
        return self.objective.batch_gradient(dict(x), rows)

    def known(self, norm: str) -> dict[str, Constant]:
        return self.constants(norm)


def weights_of(objective: FiniteObjective) -> dict[str, Tensor]:
    """The model's present weights, copied."""
    return {name: p.detach().clone() for name, p in objective.parameters().items()}
