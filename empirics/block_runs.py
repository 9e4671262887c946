"""Runs of SGD with old blocks, many paths at once: all paths of a short run, or as many draws of a long one.

    x_{k+1} = x_k - gamma G_k,   block s of z_k is block s of x_{k - d_{k,s}},
    "drawn"   G_k is block s_k of the sample at z_k, s_k uniform: Randomized PipeDream (arXiv 2606.03498)
    "all"     G_k is the whole sample: PipeDream itself, and delayed gradient descent
Delays are a table [K, S], the same for all paths, so they do not depend on the draws:
    uniform     each of 0 .. delta_max alike
    maximal     delta_max
    pipedream   step k has the delays of the k-th block update of PipeDream on the clock, its start included
    ages        S - 1 - s, those of PipeDream itself counted in microbatches
and `DEPENDENT` delays are chosen on each path: the block, of its last delta_max + 1, that is furthest from the present.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from empirics.errors import InputError
from empirics.problems.block_least_squares import BlockLeastSquares
from pipeline.block_delays import block_delays
from pipeline.clock import simulate as simulate_clock
from pipeline.schedules import make_schedule

DEPENDENT = "dependent"
METHODS = ("drawn", "all")
MOST_PATHS = 20_000


def _uniform(stages: int, steps: int, delta_max: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 2]).integers(0, delta_max + 1, (steps, stages))


def _maximal(stages: int, steps: int, delta_max: int, seed: int) -> np.ndarray:
    return np.full((steps, stages), delta_max)


def _ages(stages: int, steps: int, delta_max: int, seed: int) -> np.ndarray:
    return np.tile(np.arange(stages - 1, -1, -1), (steps, 1))


def _pipedream(stages: int, steps: int, delta_max: int, seed: int) -> np.ndarray:
    microbatches = -(-steps // stages) + 1
    events = simulate_clock(make_schedule("pipedream", stages), microbatches)
    delays = block_delays(events, stages)
    updates = sorted((e.start, e.stage, e.microbatch) for e in events if e.kind == "backward")
    return np.array([delays[microbatch, stage] for _, stage, microbatch in updates[:steps]])


DELAYS: dict[str, Callable[[int, int, int, int], np.ndarray]] = {
    "uniform": _uniform,
    "maximal": _maximal,
    "pipedream": _pipedream,
    "ages": _ages,
}


def delay_table(kind: str, stages: int, steps: int, delta_max: int = 0, seed: int = 0) -> np.ndarray:
    """Delays [steps, stages], none beyond the start. Raises InputError for an unknown kind or numbers that are none."""
    if kind not in DELAYS:
        raise InputError(f"delays: {kind!r}; allowed are {', '.join(DELAYS)}")
    if min(stages, steps) < 1 or delta_max < 0:
        raise InputError(f"stages, steps, delta_max: {stages}, {steps}, {delta_max}; allowed are >= 1, >= 1, >= 0")
    return np.minimum(DELAYS[kind](stages, steps, delta_max, seed), np.arange(steps)[:, None])


@dataclass(frozen=True)
class Paths:
    """R equally likely paths of K steps. exact: they are all there are, so a mean over them is an expectation.

    x [K+1, R, n]; z, G [K, R, n]; delays [K, R, S]; delta_max: what is promised of them; independent: of the draws.
    """

    problem: BlockLeastSquares
    method: str
    gamma: float
    delta_max: int
    independent: bool
    exact: bool
    x: np.ndarray
    z: np.ndarray
    G: np.ndarray
    delays: np.ndarray

    @property
    def K(self) -> int:
        return len(self.G)

    @property
    def paths(self) -> int:
        return int(self.G.shape[1])


def all_draws(problem: BlockLeastSquares, method: str, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Every sequence of draws and signs, each [R, steps]. Raises InputError for more than MOST_PATHS."""
    stages = range(problem.stages if method == "drawn" else 1)
    signs = (-1.0, 1.0) if problem.sigma else (0.0,)
    count = (len(stages) * len(signs)) ** steps
    if count > MOST_PATHS:
        raise InputError(f"steps: {steps} give {count} paths; allowed are at most {MOST_PATHS}")
    both = list(itertools.product(itertools.product(stages, signs), repeat=steps))
    draws = np.array([[s for s, _ in path] for path in both], dtype=int).reshape(len(both), steps)
    return draws, np.array([[sign for _, sign in path] for path in both]).reshape(len(both), steps)


def run_blocks(
    problem: BlockLeastSquares,
    x0: np.ndarray,
    gamma: float,
    steps: int,
    delays: str | np.ndarray,
    delta_max: int | None = None,
    method: str = "drawn",
    seeds: int | None = None,
    seed: int = 0,
) -> Paths:
    """All paths (seeds None) or `seeds` independent ones.

    delays: a kind of DELAYS, DEPENDENT, or a table [steps, S]; delta_max: for those kinds that need one, or what is
    promised of a table (None: its largest entry). Raises InputError for bad values, and where a run leaves float64.
    """
    S, start = problem.stages, np.asarray(x0, dtype=float)
    if method not in METHODS:
        raise InputError(f"method: {method!r}; allowed are {', '.join(METHODS)}")
    if start.shape != (problem.n,) or not 0 < gamma < np.inf or steps < 1 or (seeds is not None and seeds < 2):
        raise InputError(
            f"x0, gamma, steps, seeds: shape {start.shape}, {gamma!r}, {steps!r}, {seeds!r}; "
            f"allowed are shape ({problem.n},), > 0, >= 1, and None or >= 2"
        )
    dependent = isinstance(delays, str) and delays == DEPENDENT
    if dependent:
        table = delay_table("maximal", S, steps, delta_max or 0)
    else:
        table = delay_table(delays, S, steps, delta_max or 0, seed) if isinstance(delays, str) else np.asarray(delays)
    if table.shape != (steps, S) or (table < 0).any() or (table > np.arange(steps)[:, None]).any():
        raise InputError(f"delays: shape {table.shape}; allowed is a table {(steps, S)} of delays from 0 to k")
    if seeds is None:
        draws, signs = all_draws(problem, method, steps)
    else:
        rng = np.random.default_rng([seed, 3])
        draws, signs = rng.integers(0, S, (seeds, steps)), rng.integers(0, 2, (seeds, steps)) * 2.0 - 1.0
    R, blocks = len(draws), problem.blocks
    masks = np.array([problem.only(s) for s in range(S)])
    x = np.empty((steps + 1, R, problem.n))
    z, G = np.empty_like(x[1:]), np.empty_like(x[1:])
    used = np.broadcast_to(table[:, None, :], (steps, R, S)).copy()
    x[0] = start
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(steps):
            for s, block in enumerate(blocks):
                if dependent:
                    recent = x[k - table[k, s] : k + 1, :, block]
                    far = ((recent - x[k, :, block]) ** 2).sum(axis=-1)[::-1].argmax(axis=0)  # 0: the present
                    used[k, :, s] = far
                    z[k, :, block] = x[k - far, np.arange(R), block]
                else:
                    z[k, :, block] = x[k - table[k, s], :, block]
            G[k] = problem.grad(z[k]) + signs[:, k, None] * problem.noise
            if method == "drawn":
                G[k] *= masks[draws[:, k]]
            x[k + 1] = x[k] - gamma * G[k]
    if not np.isfinite(x).all() or np.abs(x).max() > 1e100:
        raise InputError(f"gamma: {gamma!r}; the run diverges and leaves float64")
    promised = (
        int(table.max())
        if delta_max is None or (isinstance(delays, str) and delays in ("ages", "pipedream"))
        else delta_max
    )
    return Paths(problem, method, float(gamma), promised, not dependent, seeds is None, x, z, G, used)
