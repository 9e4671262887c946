"""Drift of the updates: delta_k = norm(y_k - x_{(k-tau)+})/eta, how far from y_k the gradient was taken, in steps.

y_k as in theory/lmo/error_feedback.py; without correction the same with y = x is the displacement of a stale gradient,
at most tau. dbar is its average over the run, `weighted` the average inside the momentum,
alpha sum_{i=1..k} (1-alpha)^(k-i) delta_i. For the sign norm one flipped coordinate makes delta = 2: dbar says little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from empirics.constants import Constant
from empirics.errors import InputError
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.trajectory import over_runs
from empirics.estimators.weights import Weights, minus


@dataclass
class UpdateDrift:
    """Streams (y_k, the point where the gradient of step k was taken), k = 1, 2, ..."""

    norm: AnyNorm
    eta: float
    alpha: float
    delta: list[float] = field(default_factory=list)
    weighted: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 < self.eta < math.inf or not 0 < self.alpha <= 1:
            raise InputError(f"eta, alpha: {self.eta!r}, {self.alpha!r}; allowed are eta > 0 and 0 < alpha <= 1")

    def add(self, y: Weights, taken: Weights) -> None:
        """The next step."""
        delta = self.norm.norm(minus(y, taken)) / self.eta
        before = self.weighted[-1] if self.weighted else 0.0
        self.delta.append(delta)
        self.weighted.append((1 - self.alpha) * before + self.alpha * delta)

    @property
    def dbar(self) -> float:
        """Average over the steps added. Raises InputError before the first."""
        if not self.delta:
            raise InputError("dbar: no step was added; allowed is at least one")
        return math.fsum(self.delta) / len(self.delta)


def dbar(per_run: Sequence[float], level: float = 0.95) -> Constant:
    """Over independent runs, with Student's interval."""
    return over_runs("dbar", per_run, level=level)
