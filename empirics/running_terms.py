"""Lemma C's terms along a run, with the norms that the run had in place of L eta: sums of which one number is kept.

grad_norm_tau_back is grad_norm of tau steps before, from k = tau on: its mean is that of all iterates but the last tau,
the left side of Theorem 1s read on a run that ran on (`theory.lmo.at_iterate`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

#: (name of this step's row, name of the row before)
FROM_BEFORE = (
    ("lag_norm_before", "lag_norm"),
    ("shifted_lag_norm_before", "shifted_lag_norm"),
    ("grad_change", "segment_dual"),
    ("step_norm_before", "step_norm"),
    ("direction_norm_before", "direction_norm"),
)


@dataclass
class RunningTerms:
    """Rows of every step, in order; once: E0, and start_change of error feedback; shifted: also where gradients are
    taken."""

    alpha: float
    tau: int
    once: Mapping[str, float]
    shifted: bool
    _before: dict[str, float] = field(default_factory=dict)
    _sums: dict[str, float] = field(
        default_factory=lambda: {"lag": 0.0, "delay": 0.0, "shifted": 0.0, "weighted": 0.0}
    )
    _norms: list[float] = field(default_factory=list)  # of the gradients at the last tau + 1 iterates
    _steps: list[float] = field(default_factory=list)  # their norms, the oldest that the next step asks for first

    def add(self, row: dict[str, float]) -> None:
        """Complete the row by what the steps before it had."""
        row["noise_frobenius"] = math.sqrt(row["noise_square"])
        a, b, sums, first = self.alpha, 1 - self.alpha, self._sums, not self._before
        k = int(row["k"])
        row |= {new: self._before[old] for new, old in FROM_BEFORE if old in self._before}
        if not first:
            row["stale_step_norm"] = self._steps[0]
        self._steps = [*self._steps, row["step_norm"]][-(self.tau + 1) :]
        row["delta_mean_weighted_before"] = sums["weighted"]
        sums["weighted"] = b * sums["weighted"] + a * row["delta"] * (k > 0)
        sums["lag"] = 0.0 if first else b * (sums["lag"] + row["grad_change"])
        sums["delay"] = b * sums["delay"] + a * row["delay_bias"]
        row["measured_start"] = b ** (k + 1) * self.once["E0"] + b**k * self.once.get("start_change", 0.0)
        row |= {"measured_lag": sums["lag"], "measured_delay": sums["delay"], "delta_mean_weighted": sums["weighted"]}
        if self.shifted:
            sums["shifted"] = 0.0 if first else b * (sums["shifted"] + row["taken_change"])
            row["measured_shifted_lag"] = sums["shifted"]
            self._norms = [*self._norms, row["grad_norm"]][-(self.tau + 1) :]
            if k >= self.tau:
                row["grad_norm_tau_back"] = self._norms[0]
        self._before = row
