"""How exact the directions of a run were: norm(d_k) <= r_hi and <m_{k+1}, d_k> >= r_lo dual(m_{k+1}).

The theorem for an inexact oracle takes the smallest r_lo and the largest r_hi over steps and layers: extremes, exact
for the steps that were measured. Over a whole model the weighted norm gives each layer its share, so r_lo and r_hi of
the model are at least and at most those of the worst layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from empirics.constants import Constant, not_applicable
from empirics.errors import InputError
from empirics.estimators.model_norm import ModelNorm
from empirics.estimators.weights import Weights
from pipeline.optim.layer_norms import inexactness


@dataclass
class LmoInexactness:
    """Streams (m_{k+1}, d_k) by name, d_k without step length and weight. worst: layer -> (r_lo, r_hi) so far."""

    norm: ModelNorm
    worst: dict[str, tuple[float, float]] = field(default_factory=dict)
    steps: int = 0

    def add(self, momentum: Weights, direction: Weights) -> None:
        """The next step. Raises InputError where a momentum or direction is not finite."""
        for name, (norm, _) in self.norm.layers.items():
            low, high = inexactness(momentum[name], direction[name], norm)
            if not math.isfinite(low) or not math.isfinite(high):
                raise InputError(f"step {self.steps}: momentum or direction of {name!r} is not finite")
            before = self.worst.get(name, (math.inf, 0.0))
            self.worst[name] = (min(low, before[0]), max(high, before[1]))
        self.steps += 1

    def constants(self) -> dict[str, Constant]:
        """r_lo and r_hi of the run; r_lo not applicable where a direction did not point along its momentum."""
        if not self.worst:
            why = "no step was measured"
            return {name: not_applicable(name, why, how="exact", n=0) for name in ("r_lo", "r_hi")}
        low_layer = min(self.worst, key=lambda name: self.worst[name][0])
        high_layer = max(self.worst, key=lambda name: self.worst[name][1])
        low, high = self.worst[low_layer][0], self.worst[high_layer][1]
        found = {"r_hi": _extreme("r_hi", high, high_layer, self.steps)}
        if low <= 0:
            found["r_lo"] = not_applicable("r_lo", f"<m, d> <= 0 in {low_layer!r}: no oracle at all", n=self.steps)
        else:
            found["r_lo"] = _extreme("r_lo", low, low_layer, self.steps)
        return found


def _extreme(name: str, value: float, layer: str, steps: int) -> Constant:
    return Constant(name, value, "exact", f"{steps} steps, worst in {layer!r}", value, value, method="extreme", n=steps)
