"""Every inequality about SGD with old blocks on runs of it: left, right, and how much of the right side is used.

`examine` takes the paths of a run. A check (`checks`) is certified where all paths are run, or where the statement
holds on each: given the past, the mean over the draw and the noise of one step is enumerated, so a descent step is
certified on long runs too. The others are statistical.
G and B are the largest second moments at the points of the run, over its paths: exact where the paths are all.
Checked by tests/empirics/test_block_inequalities.py; the runs by tests/empirics/test_block_runs.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from empirics.block_runs import Paths
from empirics.checks import Check, Examined, check_of, check_step
from empirics.errors import InputError
from theory.bound import Bound
from theory.errors import InputError as TheoryInputError
from theory.pipedream.steps import STEPS
from theory.registry import get_bound

RANDOMIZED = (
    "rpd-paper",
    "rpd-a",
    "rpd-a-independent",
    "rpd-a-drift",
    "rpd-b",
    "rpd-c",
    "rpd-d",
    "rpd-d-split",
    "rpd-pl",
    "rpd-pl-b",
)
WHOLE = ("pipedream-exact", "pipedream-exact-age", "pipedream-exact-split")
NO_NOISE = ("delayed-gd", "delayed-gd-finite", "delayed-gd-two-sided")


def constants_of(run: Paths) -> dict[str, float]:
    """What the bounds need; G and B over all points where a gradient was taken."""
    p = run.problem
    at_z = p.by_block(p.grad(run.z)) + p.block_variances
    constants = {
        "S": float(p.stages),
        "K": float(run.K),
        "L": p.L,
        "mu": p.mu,
        "gamma": run.gamma,
        "delta_max": float(run.delta_max),
        "sigma": p.sigma,
        "G": math.sqrt(float(at_z.max())),
        "B": math.sqrt(float(at_z.sum(axis=-1).max())),
        "Delta0": float(p.f(run.x[0, 0])) - p.f_star,
    }
    if run.method == "all":
        ages = run.delays.max(axis=(0, 1))
        aged = float(ages @ p.block_variances)
        constants |= {"M": float(run.K), "tau": float(ages.max()), "aged_variance": aged}
        constants["block_age"] = aged / p.sigma**2 if p.sigma else 0.0
    return constants


def moments(run: Paths) -> dict[str, np.ndarray]:
    """Per step and path [K, R]; "next" and "update" are means given the past, over the draw and the sign."""
    p = run.problem
    g = p.grad(run.z)
    share = 1 / p.stages if run.method == "drawn" else 1.0
    masks = [p.only(s) for s in range(p.stages)] if run.method == "drawn" else [np.ones(p.n)]
    outcomes = [p.f(run.x[:-1] - run.gamma * mask * (g + sign * p.noise)) for mask in masks for sign in (-1.0, 1.0)]
    return {
        "f": p.f(run.x),
        "next": np.mean(outcomes, axis=0),
        "grad": (p.grad(run.x) ** 2).sum(axis=-1),
        "taken": (g**2).sum(axis=-1),
        "apart": ((run.x[:-1] - run.z) ** 2).sum(axis=-1),
        "update": share * ((g**2).sum(axis=-1) + p.sigma**2),
    }


def _windows(run: Paths) -> dict[str, np.ndarray | float]:
    """The window of each block at each step and path, [K, R, S]: its updates together, and their squares."""
    p = run.problem
    squares = np.concatenate([np.zeros((1, run.paths, p.stages)), np.cumsum(p.by_block(run.G), axis=0)])
    k, r, s = np.indices(run.delays.shape)
    return {
        "block_window_norm": np.sqrt(p.by_block(run.z - run.x[:-1])) / run.gamma,
        "block_window_squares": np.maximum(squares[k, r, s] - squares[k - run.delays, r, s], 0.0),
        "j": run.delays.astype(float),
        "scale": float(squares.max()) * max(1, int(run.delays.max())),
    }


def _steps(run: Paths, constants: dict[str, float], theta: float, level: float) -> dict[str, Check]:
    """The steps of the proofs."""
    m = moments(run)
    prefix = "block" if run.method == "drawn" else "full" if run.problem.sigma else "exact"
    given: dict[str, Any] = {**constants, "theta": theta}
    now = {"E_f_now": m["f"][:-1], "E_f_next": m["next"]}
    now |= {f"E_{name}_square": m[name] for name in ("taken", "apart", "update")} | {"E_grad_square": m["grad"][:-1]}
    out = [
        check_step(STEPS[f"{prefix}-descent"], {**given, **now}, "certified", level),
        check_step(STEPS["window"], {**given, **_windows(run)}, "certified", level),
    ]
    kind = "certified" if run.exact else "statistical"
    by_path = {f"mean_{name}_square": m[name].mean(axis=0) for name in ("taken", "apart", "update")}
    by_path["mean_grad_square"] = m["grad"][:-1].mean(axis=0)
    means = {**given, **({n: v.mean() for n, v in by_path.items()} if run.exact else by_path)}
    out.append(check_step(STEPS[f"{prefix}-average"], means, kind, level))
    if run.method == "drawn":
        out.append(check_step(STEPS["windows-any"], means, kind, level))
        if run.independent:
            apart = m["apart"].mean(axis=1) if run.exact else m["apart"]
            out.append(check_step(STEPS["windows-counted"], {**given, "E_apart_square": apart}, kind, level))
            out.append(check_step(STEPS["windows-split"], means, kind, level))
    elif _within_ages(run):
        out.append(check_step(STEPS["windows-fixed"], means, kind, level))
    return {check.name: check for check in out}


def _within_ages(run: Paths) -> bool:
    """Whether no block is older than S - 1 microbatches, as in PipeDream."""
    return bool(run.delays.max() <= run.problem.stages - 1)


def why_not(run: Paths, bound: Bound) -> str | None:
    """Why a bound does not apply to the method, or None. Its condition on the step is another matter."""
    p = run.problem
    if "independent-delay" in bound.assumptions and not run.independent:
        return "assumption independent-delay: these delays depend on the draws"
    if "pipedream" in bound.assumptions and not _within_ages(run):
        return f"assumption pipedream: a block is older than S - 1 = {p.stages - 1} microbatches"
    if "equal-noise" in bound.assumptions:
        textbook = np.arange(p.stages - 1, -1, -1)
        if (run.delays.max(axis=(0, 1)) > textbook).any():
            return "assumption equal-noise: ages are not S - 1 - s"
        if np.ptp(p.block_variances) > 1e-12 * p.sigma**2:
            return "assumption equal-noise: sigma_s differ"
    if "delayed-gd" in bound.assumptions and (run.delays != run.delays[..., :1]).any():
        return "assumption delayed-gd: the blocks have different delays"
    if (
        "delayed-gd" in bound.assumptions
        and (run.delays[:, 0, 0] != np.minimum(np.arange(run.K), run.delays.max())).any()
    ):
        return "assumption delayed-gd: the delay is not constant"
    return None


def bounds_of(run: Paths) -> tuple[str, ...]:
    """The theorems about the method."""
    if run.method == "drawn":
        return RANDOMIZED
    return WHOLE if run.problem.sigma else (*WHOLE, *NO_NOISE)


def left_of(run: Paths, bound: Bound) -> np.ndarray:
    """The bound's left side on each path, [R]."""
    p = run.problem
    if bound.unit == "f":
        return np.asarray(p.f(run.x[-1])) - p.f_star
    squares = (p.grad(run.x[:-1]) ** 2).sum(axis=-1)
    return np.asarray(squares.min(axis=0) if "delayed-gd" in bound.assumptions else squares.mean(axis=0))


def check_bound(run: Paths, bound: Bound, constants: Mapping[str, float], level: float = 0.999) -> Check:
    """The bound at these constants. Raises theory's InputError where its conditions do not hold."""
    right = float(bound.evaluate(**{name: constants[name] for name in bound.symbols}))
    left = left_of(run, bound)
    if run.exact:
        return check_of(bound.name, np.array([left.mean()]), np.array([right]), right, "certified", level)
    return check_of(bound.name, left[None], np.full((1, len(left)), right), right, "statistical", level)


def examine(
    run: Paths, theta: float = 1.0, level: float = 0.999, constants: Mapping[str, float] | None = None
) -> Examined:
    """All steps and all bounds that apply. theta: the split of drift and noise; level: of the intervals, for each
    inequality together; constants: in place of the run's own, for instance a wrong delta_max.
    """
    used = constants_of(run) | dict(constants or {}) | {"theta": float(theta)}
    unknown = set(constants or {}) - set(constants_of(run))
    if unknown:
        raise InputError(f"constants: {sorted(unknown)[0]!r}; allowed are {', '.join(constants_of(run))}")
    checks, refused = _steps(run, used, theta, level), {}
    for name in bounds_of(run):
        bound = get_bound(name)
        reason = why_not(run, bound)
        try:
            if reason is None:
                checks[name] = check_bound(run, bound, used, level)
        except TheoryInputError as error:
            reason = str(error).removeprefix(f"bound {name}: ")
        if reason is not None:
            refused[name] = reason
    return Examined(run.method, run.paths, used, checks, refused)
