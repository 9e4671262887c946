"""Smoothness along the trajectory in the run's own norm: dual(grad f(y) - grad f(x)) / norm(y - x), over pairs.

Every such number is at most L, so the largest is a lower bound for it that is exact where gradients are: no interval,
but [largest seen, infinity). `Window` takes all pairs up to `window` steps apart: with tau = window the pairs that the
delay lemma speaks of are among them.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch

from empirics.constants import Constant, not_applicable
from empirics.errors import InputError
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import Weights, check_finite, minus

#: Steps shorter than so many units of round-off of the weights say nothing.
SHORTEST = 256


def directional(norm: AnyNorm, x: Weights, y: Weights, gradient_x: Weights, gradient_y: Weights) -> float | None:
    """The ratio for one pair of points; None where they are the same up to round-off."""
    step = step_length(norm, x, y)
    return None if step is None else norm.dual(minus(gradient_y, gradient_x)) / step


def step_length(norm: AnyNorm, x: Weights, y: Weights) -> float | None:
    """norm(y - x); None where x and y are the same up to round-off in their dtype."""
    step = norm.norm(minus(y, x))
    round_off = max((torch.finfo(v.dtype).eps for v in x.values()), default=0.0)
    return step if step > SHORTEST * round_off * max(norm.norm(x), norm.norm(y)) else None


@dataclass
class Window:
    """Streams (point, gradient); keeps the last `window` of them, and the ratios of each new one.

    consecutive: of z_{k-1}, z_k; worst: the largest of z_k with the `window` points before it (None: no step).
    """

    norm: AnyNorm
    window: int = 1
    consecutive: list[float | None] = field(default_factory=list)
    worst: list[float | None] = field(default_factory=list)
    _last: deque[tuple[Weights, Weights]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise InputError(f"window: {self.window!r}; allowed is an integer >= 1")

    def add(self, x: Weights, gradient: Weights) -> None:
        """The next point of the run; x and gradient are kept, not copied."""
        check_finite(gradient, f"gradient at point {len(self.worst)}")
        ratios = [directional(self.norm, before, x, g, gradient) for before, g in self._last]
        self.consecutive.append(ratios[-1] if ratios else None)
        self.worst.append(max((r for r in ratios if r is not None), default=None))
        self._last.append((x, gradient))
        if len(self._last) > self.window:
            self._last.popleft()

    def constant(self, where: str = "along the run") -> Constant:
        """The largest ratio as what it is: a lower bound of L."""
        seen = [r for r in self.worst if r is not None]
        if not seen:
            return not_applicable("L", f"no two different points among {len(self.worst)}", where, n=0)
        note = f"lower bound: largest of all pairs up to {self.window} apart; median {float(np.median(seen)):.4g}"
        L = max(seen)
        return Constant("L", L, "estimated", where, L, math.inf, None, "gradient ratio", len(seen), note)
