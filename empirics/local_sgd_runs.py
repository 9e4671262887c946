"""LocalSGD on least squares, S replicas that are averaged after every H steps, against its theorems.

All signs of all replicas' noises (the expectation is exact) or independent seeds; see `empirics.block_inequalities`.
Every replica sees the whole problem: its number of stages is not used. K = S^2 T block updates for T steps.
Checked by tests/empirics/test_local_sgd_runs.py.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from empirics.block_runs import MOST_PATHS
from empirics.checks import Check, Examined, check_of
from empirics.errors import InputError
from empirics.problems.block_least_squares import BlockLeastSquares
from theory.errors import InputError as TheoryInputError
from theory.registry import get_bound

LOCAL = ("local-sgd", "local-sgd-counted", "local-sgd-variance")


def run_local(
    problem: BlockLeastSquares,
    x0: np.ndarray,
    gamma: float,
    replicas: int,
    steps: int,
    period: int,
    seeds: int | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Weights before each step, [T, R, S, n]: of R paths, S replicas. Raises InputError for bad values."""
    start = np.asarray(x0, dtype=float)
    if start.shape != (problem.n,) or not 0 < gamma < np.inf or min(replicas, steps, period) < 1:
        raise InputError(
            f"x0, gamma, replicas, steps, period: shape {start.shape}, {gamma!r}, {replicas}, {steps}, {period}; "
            f"allowed are shape ({problem.n},), > 0 and integers >= 1"
        )
    if seeds is None:
        if 2 ** (replicas * steps) > MOST_PATHS and problem.sigma:
            raise InputError(
                f"replicas, steps: {replicas}, {steps} give more than {MOST_PATHS} paths; allowed are fewer"
            )
        choices = (-1.0, 1.0) if problem.sigma else (0.0,)
        signs = np.array(list(itertools.product(choices, repeat=replicas * steps)))
    else:
        if seeds < 2:
            raise InputError(f"seeds: {seeds!r}; allowed are None and integers >= 2")
        signs = np.random.default_rng([seed, 4]).integers(0, 2, (seeds, replicas * steps)) * 2.0 - 1.0
    signs = signs.reshape(-1, steps, replicas, 1)
    x = np.tile(start, (len(signs), replicas, 1))
    out = np.empty((steps, *x.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            if t % period == 0:
                x = np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)
            out[t] = x
            x = x - gamma * (problem.grad(x) + signs[:, t] * problem.noise)
    if not np.isfinite(out).all():
        raise InputError(f"gamma: {gamma!r}; the run diverges and leaves float64")
    return out


def examine_local(
    problem: BlockLeastSquares,
    x0: np.ndarray,
    gamma: float,
    replicas: int,
    steps: int,
    period: int,
    seeds: int | None = None,
    seed: int = 0,
    level: float = 0.999,
) -> Examined:
    """The theorems on a run. B: the largest second moment at the points of the run."""
    x = run_local(problem, x0, gamma, replicas, steps, period, seeds, seed)
    squares = (problem.grad(x) ** 2).sum(axis=-1) + problem.sigma**2
    constants = {
        "S": float(replicas),
        "K": float(replicas**2 * steps),
        "H": float(period),
        "L": problem.L,
        "gamma": float(gamma),
        "sigma": problem.sigma,
        "B": math.sqrt(float(squares.max())),
        "Delta0": float(problem.f(np.asarray(x0, dtype=float))) - problem.f_star,
    }
    left = (problem.grad(x.mean(axis=2)) ** 2).sum(axis=-1).mean(axis=0)
    checks: dict[str, Check] = {}
    refused: dict[str, str] = {}
    for name in LOCAL:
        bound = get_bound(name)
        try:
            right = float(bound.evaluate(**{symbol: constants[symbol] for symbol in bound.symbols}))
        except TheoryInputError as error:
            refused[name] = str(error).removeprefix(f"bound {name}: ")
            continue
        if seeds is None:
            checks[name] = check_of(name, np.array([left.mean()]), np.array([right]), right, "certified", level)
        else:
            checks[name] = check_of(name, left[None], np.array([[right]]), right, "statistical", level)
    return Examined("local", int(x.shape[1]), constants, checks, refused)
