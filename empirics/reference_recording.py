"""What the recorder adds of the reference x_{(k-s)+}, the gradient s steps back that the median theorems speak of.

The last s + 1 weights and gradients are kept, so s is at most MOST. measured_reference is what the proof's recursion
    |w^s_k| <= |w'_k| + |bias|, s <= tau,    |w^s_k| <= (1-a) |w^{s-1}_{k-1}| + a |bias|, s > tau,
comes to with the norms that the run had, less what is left of m_0: with n = s - tau > 0 and g_k taken at step k
    (1-a)^n measured_shifted_lag_{k-n} + a sum_{j<n} (1-a)^j |grad f at step k-j's place - grad f(x_{(k-s)+})|.
Checked by tests/empirics/test_budget_at_reference.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from empirics.applicability import RunFacts, reasons
from empirics.batched_norms import Layers, model_norms
from empirics.errors import InputError
from empirics.estimators.weights import minus
from theory.bound import Bound

Weights = Mapping[str, Tensor]
#: The most gradients that are kept.
MOST = 64


def median_age(bound: Bound, tau: int, alpha: float) -> int:
    """s of a theorem at a reference, where it is left out. Raises InputError for another theorem."""
    if "s" not in bound.optional:
        raise InputError(f"theorem: {bound.name!r}; allowed is one about the gradient s steps back")
    return int(np.asarray(bound.chosen({"tau": tau, "alpha": alpha})["s"]).item())


def too_old(bound: Bound, facts: RunFacts) -> list[str]:
    """Why the reference of the theorem is not recorded on a run that it is about, if so."""
    if "s" not in bound.optional:
        return []
    alpha = float(facts.groups[0]["alpha"])
    if (s := median_age(bound, facts.tau, alpha)) < MOST:
        return []
    return [f"reference: the median age of the gradients in the momentum is s = {s} steps at alpha = {alpha:g}, and of "
            f"the s + 1 gradients that this needs at most {MOST} are kept"]  # fmt: skip


def reference_of(bounds: Iterable[Bound], facts: RunFacts) -> int | None:
    """s of those of the theorems that are about the run, which all have the same; None where none needs one."""
    about = [b for b in bounds if "s" in b.optional and not reasons(b, facts) and not too_old(b, facts)]
    return median_age(about[0], facts.tau, float(facts.groups[0]["alpha"])) if about else None


def reference_quantities(v: Mapping[str, dict[str, Tensor]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Vectors whose dual norms, and those whose norms are wanted; v: stacks by name of vector and layer."""
    g, nu = v["reference"], v["noise"]
    error = minus(v["momentum"], g)
    duals: dict[str, Any] = {
        "reference_norm": g,
        "reference_error_norm": error,
        "reference_lag_norm": minus(error, nu),
        "reference_bias": minus(v["taken"], g),
    }
    if "momentum_less_noise_before" in v:
        duals["reference_lag_norm_before"] = minus(v["momentum_less_noise_before"], g)
    if "called" in v:
        called = minus(v["called"], g)
        duals |= {"called_reference_error_norm": called}
        duals |= {"called_reference_lag_norm": minus(called, v["called_noise"])}
    return duals, {"reference_gap_norm": minus(v["read"], v["reference_weights"])}


@dataclass
class Reference:
    """The last points of a run, newest last; s, tau, alpha and the layers' norms of the run."""

    s: int
    tau: int
    alpha: float
    layers: Layers
    _points: deque[tuple[Weights, Weights]] = field(init=False)  # x_{(k-s)+} ... x_k, each with its gradient
    _taken: deque[Weights] = field(init=False)
    _lags: deque[float] = field(init=False)
    _before: Weights | None = None

    def __post_init__(self) -> None:
        if isinstance(self.s, bool) or not isinstance(self.s, int) or not 0 <= self.s < MOST:
            raise InputError(f"reference: {self.s!r}; allowed is an integer from 0 to {MOST - 1}")
        n = max(self.s - self.tau, 0)
        self._points, self._taken, self._lags = deque(maxlen=self.s + 1), deque(maxlen=n), deque(maxlen=n + 1)

    def vectors(self, x: Weights, at_x: Weights, momentum: Weights, noise: Weights) -> dict[str, Weights]:
        """What `reference_quantities` asks for at step k, k = 0, 1, ...; momentum: a copy of m_{k+1}."""
        self._points.append((x, at_x))
        weights, gradient = self._points[0]
        found: dict[str, Weights] = {"reference": gradient, "reference_weights": weights}
        if self._before is not None:
            found["momentum_less_noise_before"] = self._before
        self._before = minus(momentum, noise)
        return found

    def walk(self, k: int, age: float, taken: Weights) -> dict[str, float]:
        """Numbers of step k, after `vectors`. age: how many steps ago the gradient was taken, as found."""
        self._taken.append(taken)
        row = {"reference_age": abs(age - min(k, self.s)), "reference_walk": 0.0}
        if self._taken:
            gradient = self._points[0][1]
            apart = {name: torch.stack([g[name] - gradient[name] for g in self._taken]) for name in self.layers}
            for norm in model_norms(apart, self.layers, dual=True).tolist():
                row["reference_walk"] = (1 - self.alpha) * row["reference_walk"] + self.alpha * norm
        return row

    def complete(self, row: dict[str, float], least: float) -> None:
        """What follows from the numbers of the steps so far; least: below it a distance is round-off."""
        self._lags.append(row["measured_shifted_lag"])
        n = self.s - self.tau
        lag = self._lags[0] if len(self._lags) == self._lags.maxlen else 0.0
        own = row["reference_walk"] if n > 0 else row["reference_bias"]
        row["measured_reference"] = (1 - self.alpha) ** max(n, 0) * lag + own
        gap = row["reference_gap_norm"]
        row["reference_smoothness"] = row["reference_bias"] / gap if gap > least else 0.0
