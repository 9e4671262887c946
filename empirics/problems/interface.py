"""What every problem offers, whatever its file: the estimators ask for this and nothing else.

Weights are tensors by name. f is the mean of what `draw` averages, so draws are unbiased; `samples` is the number N of
equally likely single-sample gradients, or None where they come from a continuum. Everything is a pure function of its
arguments.

    problem = least_squares(rows=4, cols=6, sigma=0.5)
    x = problem.start()
    f, g = problem.value_and_gradient(x)
    problem.known("spectral")["L"].value          # with how it is known: exact, or a proved bound
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from empirics.constants import Constant
from empirics.errors import InputError
from empirics.estimators.weights import Weights, combine


class Problem(Protocol):
    """An objective with its noise."""

    @property
    def name(self) -> str:
        """For messages and tables."""

    @property
    def samples(self) -> int | None:
        """Number of single-sample gradients, all equally likely; None: not finite."""

    @property
    def convexity(self) -> float:
        """mu >= 0 with f - mu/2 ||x||_F^2 convex; 0 where nothing is known."""

    @property
    def floor(self) -> tuple[float, str] | None:
        """A proved lower bound of f and why, or None."""

    def start(self) -> dict[str, Tensor]:
        """x_0."""

    def value(self, x: Weights) -> float:
        """f(x)."""

    def value_and_gradient(self, x: Weights) -> tuple[float, dict[str, Tensor]]:
        """f(x) and grad f(x)."""

    def hessian_product(self, x: Weights, v: Weights) -> dict[str, Tensor]:
        """Hessian of f at x times v."""

    def sample_gradient(self, x: Weights, i: int) -> dict[str, Tensor]:
        """Gradient of sample i in 0..samples-1. Raises InputError where there are none to count."""

    def draw(self, x: Weights, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Mean gradient of `batch` samples, drawn independently."""

    def known(self, norm: str) -> dict[str, Constant]:
        """Constants known at no cost, in that norm: some of L, sigma (of one sample), f_star, hessian_lipschitz."""


def draw_of_finite(problem: Problem, x: Weights, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
    """`draw` by indices with replacement, for a problem with finitely many samples: at most so many gradients."""
    assert problem.samples is not None
    check_batch(batch)
    rows = torch.randint(problem.samples, (batch,), generator=generator)
    if batch <= problem.samples:
        return combine([(1 / batch, problem.sample_gradient(x, i)) for i in rows.tolist()])
    counts = torch.bincount(rows, minlength=problem.samples).tolist()
    return combine([(n / batch, problem.sample_gradient(x, i)) for i, n in enumerate(counts) if n])


def check_batch(batch: int) -> int:
    """Raises InputError unless batch is an integer of at least 1."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InputError(f"batch: {batch!r}; allowed is an integer >= 1")
    return batch


def check_index(i: int, samples: int) -> int:
    """Raises InputError unless 0 <= i < samples."""
    if not 0 <= i < samples:
        raise InputError(f"sample: {i!r}; allowed is an integer from 0 to {samples - 1}")
    return i
