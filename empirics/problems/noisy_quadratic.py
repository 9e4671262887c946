"""A diagonal quadratic with Gaussian gradient noise: f(x) = sum_j lam_j x_j^2 / 2, g = lam x + s xi."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from empirics.errors import InputError


@dataclass(frozen=True)
class NoisyQuadratic:
    """curvatures lam_j > 0, noise_std s >= 0 (per coordinate and step), x0: start of every mode."""

    curvatures: tuple[float, ...]
    noise_std: float
    x0: float = 1.0

    def __post_init__(self) -> None:
        lam = tuple(float(value) for value in self.curvatures)
        if not lam or any(not 0 < value < math.inf for value in lam):
            raise InputError(f"curvatures: {self.curvatures!r}; allowed is a non-empty list of numbers > 0")
        if not 0 <= self.noise_std < math.inf:
            raise InputError(f"noise_std: {self.noise_std!r}; allowed is a finite number >= 0")
        if not math.isfinite(self.x0):
            raise InputError(f"x0: {self.x0!r}; allowed is a finite number")
        object.__setattr__(self, "curvatures", lam)

    def start(self, replicas: int) -> Tensor:
        """Shape [replicas, modes], float64, every entry x0."""
        return torch.full((replicas, len(self.curvatures)), self.x0, dtype=torch.float64)

    def gradient(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """One noisy gradient at x [replicas, modes]; a fresh draw each call."""
        lam = torch.tensor(self.curvatures, dtype=torch.float64)
        g = x * lam
        if self.noise_std:
            g = g + self.noise_std * torch.randn(x.shape, dtype=torch.float64, generator=generator)
        return g
