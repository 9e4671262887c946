"""A diagonal quadratic with Gaussian gradient noise: f(x) = sum_j lam_j x_j^2 / 2, g = lam x + s xi."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from empirics.constants import Constant, exact
from empirics.errors import InputError
from empirics.estimators.weights import Weights
from empirics.problems.interface import check_batch


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


@dataclass(frozen=True)
class QuadraticProblem:
    """The same as a problem with one vector "x". L = max lam (frobenius), sum lam (sign, attained); f_* = 0 at 0."""

    quadratic: NoisyQuadratic
    name: str = "quadratic"
    samples: None = None

    @property
    def convexity(self) -> float:
        return min(self.quadratic.curvatures)

    @property
    def floor(self) -> tuple[float, str]:
        return 0.0, "all curvatures are positive"

    @property
    def _lam(self) -> Tensor:
        return torch.tensor(self.quadratic.curvatures, dtype=torch.float64)

    def start(self) -> dict[str, Tensor]:
        return {"x": self.quadratic.start(1)[0]}

    def value(self, x: Weights) -> float:
        return float((self._lam * x["x"].double() ** 2).sum()) / 2

    def value_and_gradient(self, x: Weights) -> tuple[float, dict[str, Tensor]]:
        return self.value(x), {"x": self._lam * x["x"]}

    def hessian_product(self, x: Weights, v: Weights) -> dict[str, Tensor]:
        return {"x": self._lam * v["x"]}

    def sample_gradient(self, x: Weights, i: int) -> dict[str, Tensor]:
        raise InputError(f"sample: {i!r}; the noise is Gaussian, so samples cannot be counted; draw them")

    def draw(self, x: Weights, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        mean = self._lam * x["x"]
        scale = self.quadratic.noise_std / math.sqrt(check_batch(batch))
        return {"x": mean + scale * torch.randn(mean.shape, dtype=torch.float64, generator=generator)}

    def known(self, norm: str) -> dict[str, Constant]:
        lam = self.quadratic.curvatures
        if norm not in ("sign", "frobenius", "layers"):
            raise InputError(f"norm: {norm!r}; allowed are sign, frobenius, layers: x is a vector")
        L = max(lam) if norm == "frobenius" else math.fsum(lam)
        sigma = self.quadratic.noise_std * math.sqrt(len(lam))
        return {
            "L": exact("L", L, "everywhere", "the Hessian is constant"),
            "sigma": exact("sigma", sigma, "everywhere", "of one sample"),
            "f_star": exact("f_star", 0.0, self.name, "f(0) = 0"),
            "hessian_lipschitz": exact("hessian_lipschitz", 0.0, "everywhere", "the Hessian is constant"),
        }


def quadratic(
    modes: int = 10,
    condition: float = 100.0,
    noise_std: float = 0.1,
    x0: float = 1.0,
    spectrum: Sequence[float] | None = None,
) -> QuadraticProblem:
    """Curvatures in a geometric row from 1/condition to 1, or any `spectrum`."""
    if modes < 1 or not 1 <= condition < math.inf:
        raise InputError(f"modes, condition: {modes!r}, {condition!r}; allowed are modes >= 1 and condition >= 1")
    if spectrum is None:
        spectrum = [condition ** (-j / max(modes - 1, 1)) for j in range(modes)]
    return QuadraticProblem(NoisyQuadratic(tuple(spectrum), noise_std, x0))
