"""E0 = E dual(m_0 - grad f(x_0)): exact for m_0 = 0, by enumeration or from draws where m_0 is the first gradient."""

from __future__ import annotations

import math

import torch

from empirics.constants import Constant, exact, mean_of
from empirics.errors import InputError
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import minus
from empirics.problems.interface import Problem

STARTS = ("zero", "gradient")
#: Largest population that is enumerated.
MOST = 4096


def start_error(
    problem: Problem,
    norm: AnyNorm,
    momentum_start: str = "zero",
    batch: int = 1,
    draws: int = 64,
    seed: int = 0,
    level: float = 0.95,
) -> Constant:
    """E0 at x_0; momentum_start as in the LMO optimizer: "zero", or "gradient" with the batch of the first step."""
    if momentum_start not in STARTS:
        raise InputError(f"momentum_start: {momentum_start!r}; allowed are {', '.join(STARTS)}")
    x = problem.start()
    _, g = problem.value_and_gradient(x)
    if momentum_start == "zero":
        return exact("E0", norm.dual(g), "start", "m_0 = 0: dual norm of the full gradient")
    N = problem.samples
    if batch == 1 and N is not None and N <= MOST:
        total = math.fsum(norm.dual(minus(problem.sample_gradient(x, i), g)) for i in range(N))
        return exact("E0", total / N, "start", f"m_0 = the first gradient: mean over all {N} samples")
    generator = torch.Generator().manual_seed(seed)
    norms = [norm.dual(minus(problem.draw(x, batch, generator), g)) for _ in range(draws)]
    return mean_of("E0", norms, "start", level, f"m_0 = the first gradient, batches of {batch}")
