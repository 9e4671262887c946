"""The smallest value of a bound over one symbol, numerically: a grid, its best minima polished, and a check."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from scipy.optimize import minimize_scalar

from theory.admissible import Interval
from theory.errors import InputError
from theory.evaluation import compiled, free_names
from theory.symbols import number_text

if TYPE_CHECKING:
    from theory.bound import Bound

GRID = 601
FARTHEST = 1e12  # the grid of an unbounded symbol goes from 1/FARTHEST to FARTHEST
NEAREST = 1e-6  # that of one in (0, 1] starts here
DEEPER = 1e-12  # where the least point is the first of the grid and 0 is beyond it, the grid goes on by this factor
DEEPEST = 1e-60  # ... down to here
HUGE = 1e300  # stands for infinity where it must be compared and subtracted
FLAT = 1e-6  # largest |d ln value / d ln x| that counts as stationary: central differences of step 1e-4


def function_of(
    bound: Bound, expression: sp.Expr, name: str, fixed: Mapping[str, float]
) -> Callable[[np.ndarray], np.ndarray]:
    """The expression as a function of one symbol; what is not finite is HUGE."""
    names = free_names(expression)
    function = compiled(expression, names)

    def evaluate(points: np.ndarray) -> np.ndarray:
        arguments = [points if n == name else np.full(points.shape, fixed[n]) for n in names]
        with np.errstate(all="ignore"):
            out = np.broadcast_to(np.asarray(function(*arguments), dtype=float), points.shape)
        return np.where(np.isfinite(out), out, HUGE)

    return evaluate


def search(
    bound: Bound, name: str, value: Callable[[np.ndarray], np.ndarray], intervals: tuple[Interval, ...]
) -> tuple[float, str, str | None]:
    """(minimiser, what was checked, the end that stops it) of a function of one symbol over intervals."""
    pieces = [np.linspace(0, 1, GRID) for _ in intervals]
    grids = [_scale(interval, piece) for interval, piece in zip(intervals, pieces, strict=True)]
    grids = [_reaching(value, interval, grid) for interval, grid in zip(intervals, grids, strict=True)]
    best, low, end = math.nan, math.inf, None
    for interval, grid in zip(intervals, grids, strict=True):
        heights = value(grid)
        if np.ptp(heights) == 0:
            raise InputError(f"bound {bound.name}: does not depend on {name} at these values")
        inner = [i for i in range(1, len(grid) - 1) if heights[i] <= min(heights[i - 1], heights[i + 1])]
        candidates = [(float(heights[i]), float(grid[i]), i) for i in (0, len(grid) - 1)]
        for i in sorted(inner, key=lambda i: heights[i])[:5]:
            found = minimize_scalar(
                lambda u: float(value(np.array([math.exp(u)]))[0]),
                bounds=(math.log(grid[i - 1]), math.log(grid[i + 1])),
                method="bounded",
                options={"xatol": 1e-12},
            )
            candidates.append(min((float(found.fun), math.exp(found.x), i), (float(heights[i]), float(grid[i]), i)))
        height, point, i = min(candidates)
        if height < low:
            low, best = height, point
            end = (interval, "high") if i == len(grid) - 1 else (interval, "low") if i == 0 else None
    if low >= HUGE:
        raise InputError(f"bound {bound.name}: not a finite number for any {name}")
    if end is not None:
        interval, side = end
        reached = math.isfinite(interval.high) and not interval.open_high if side == "high" else not interval.open_low
        if not reached or best == 0:
            where = f"{name} = {best:.3g}, the {'last' if side == 'high' else 'first'} point of the grid"
            raise InputError(f"bound {bound.name}: no smallest value in {name} was found: it still falls at {where}")
        checked = sum(len(grid) for grid in grids)
        return best, f"no lower point among {checked} of the grid", f"{name} {'<=' if side == 'high' else '>='} " + (
            number_text(best)
        )
    up, down = value(np.array([best * math.exp(1e-4)]))[0], value(np.array([best * math.exp(-1e-4)]))[0]
    slope = abs(up - down) / 2e-4 / low
    kink = up >= low and down >= low  # a choice of whole numbers may leave a corner at the minimum
    if any(np.any(value(grid) < low * (1 - 1e-12)) for grid in grids) or (slope > FLAT and not kink):
        raise InputError(f"bound {bound.name}: no minimum was found for {name}: slope {slope:.1e} at {best!r}")
    return best, f"no lower point among {sum(map(len, grids))} of the grid; slope {slope:.0e} there", None


def _scale(interval: Interval, unit: np.ndarray) -> np.ndarray:
    """Points of an interval, evenly spaced in the logarithm."""
    high = min(interval.high, FARTHEST)
    low = max(interval.low, NEAREST if high == 1 else min(1.0, high) / FARTHEST)
    grid = np.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
    grid[-1] = math.nextafter(high, 0) if interval.open_high else high
    return grid


def _reaching(value: Callable[[np.ndarray], np.ndarray], interval: Interval, grid: np.ndarray) -> np.ndarray:
    """The grid, continued towards 0 until the function rises there."""
    while interval.low == 0 and interval.open_low and grid[0] > DEEPEST and np.argmin(value(grid)) == 0:
        ratio = grid[1] / grid[0]
        count = math.ceil(math.log(1 / DEEPER) / math.log(ratio))
        grid = np.concatenate([grid[0] * ratio ** -np.arange(count, 0, -1.0), grid])
    return grid


def falls(bound: Bound, name: str, upwards: bool) -> str:
    way = "grows" if upwards else "shrinks"
    return f"bound {bound.name}: has no smallest value in {name} at these values: it keeps falling as {name} {way}"
