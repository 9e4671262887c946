"""What is read off a run at a point: objective, dual norm of the gradient, and their averages over the run.

Exact where f and grad f are: nothing is sampled. Within a run values are correlated, so an average over one run has no
interval; one over independent runs has Student's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from empirics.constants import Constant, mean_of, not_applicable
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import Weights, check_finite


@dataclass
class Trajectory:
    """Streams (f, grad f) at z_0, z_1, ...; keeps one number of each a step."""

    norm: AnyNorm
    f: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)

    def add(self, f: float, gradient: Weights) -> None:
        """Raises InputError for a gradient that is not finite: a diverged run has no average."""
        check_finite(gradient, f"gradient at step {len(self.f)}")
        self.f.append(f)
        self.grad_norm.append(self.norm.dual(gradient))

    @property
    def mean_grad_norm(self) -> float:
        """Average over the points added."""
        return float(np.mean(self.grad_norm))


def over_runs(name: str, per_run: Sequence[float], where: str = "", level: float = 0.95) -> Constant:
    """A quantity of whole runs over independent seeds: mean with Student's interval.

    Not applicable where a run diverged: it is named, never averaged in.
    """
    bad = [i for i, value in enumerate(per_run) if not np.isfinite(value)]
    if bad:
        why = f"run {bad[0]} of {len(per_run)} diverged: {per_run[bad[0]]}"
        return not_applicable(name, why, where, n=len(per_run))
    return mean_of(name, list(per_run), where or f"{len(per_run)} runs", level)


def paired_over_runs(name: str, a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Constant:
    """Mean of a - b over seeds that both share, with Student's interval of the differences."""
    if len(a) != len(b):
        return not_applicable(name, f"{len(a)} and {len(b)} runs; differences need one of each a seed", n=len(a))
    return over_runs(name, [x - y for x, y in zip(a, b, strict=True)], f"{len(a)} pairs of runs", level)
