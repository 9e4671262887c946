"""Tuned rates of theorems about SGD with old blocks, on runs at the tuned step.

A theorem's rate (`theory.pipedream.rates`) is at least its bound at the step that is best for its first two terms. So
at that step measured <= bound <= rate, and utilisation is measured over rate: what tuning in advance costs.
Checked by tests/empirics/test_block_inequalities.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from empirics.block_inequalities import check_bound, constants_of, why_not
from empirics.block_runs import run_blocks
from empirics.checks import ROUND_OFF, Check
from empirics.errors import InputError
from empirics.problems.block_least_squares import BlockLeastSquares
from theory.pipedream.rates import rate, tuned_step
from theory.registry import get_bound


@dataclass(frozen=True)
class Tuned:
    """A theorem at its tuned step: measured <= at_step <= rate, the sum of its leading, limit and delay parts."""

    name: str
    gamma: float
    measured: Check
    at_step: float
    rate: dict[str, float]

    @property
    def utilisation(self) -> float:
        """Measured over the rate."""
        return self.measured.left / sum(self.rate.values())

    @property
    def holds(self) -> bool:
        """Both inequalities."""
        return self.measured.holds and self.at_step <= sum(self.rate.values()) * (1 + ROUND_OFF)

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        own = {"name": self.name, "gamma": self.gamma, "at_step": self.at_step, "rate": self.rate}
        return own | {"measured": self.measured.as_dict(), "utilisation": self.utilisation, "holds": self.holds}


def run_tuned(
    name: str,
    problem: BlockLeastSquares,
    x0: np.ndarray,
    steps: int,
    delays: str,
    level: float = 0.999,
    **arguments: Any,
) -> Tuned:
    """A run at the step that the theorem's rate is for. G and B depend on the run: they are raised until the run keeps
    them. arguments: of `run_blocks`. Raises InputError where the theorem has no rate, does not apply, or its constants
    do not settle.
    """
    bound = get_bound(name)
    whole = name.startswith("pipedream")
    if whole != (arguments.get("method") == "all"):
        raise InputError(f"method: {arguments.get('method')!r}; allowed for {name} is {'all' if whole else 'drawn'}")
    gamma_of, parts = tuned_step(bound), rate(bound)
    probe = run_blocks(problem, x0, 1e-12, steps, delays, **arguments)
    kept = constants_of(probe)
    for _ in range(20):
        given = {str(symbol): kept[str(symbol)] for symbol in gamma_of.free_symbols}
        gamma = float(gamma_of.subs({symbol: given[str(symbol)] for symbol in gamma_of.free_symbols}))
        run = run_blocks(problem, x0, gamma, steps, delays, **arguments)
        reason = why_not(run, bound)
        if reason is not None:
            raise InputError(f"{name}: {reason}; allowed is a run that the theorem is about")
        own = constants_of(run)
        if all(own[c] <= kept[c] * (1 + ROUND_OFF) for c in ("G", "B")):
            used = {**own, "G": kept["G"], "B": kept["B"]}
            numbers = {
                part: float(e.subs({symbol: used[str(symbol)] for symbol in e.free_symbols}))
                for part, e in parts.items()
            }
            measured = check_bound(run, bound, used, level)
            return Tuned(name, gamma, measured, measured.right, numbers)
        kept |= {c: max(own[c], kept[c]) * 1.01 for c in ("G", "B")}
    raise InputError(f"{name}: G and B do not settle at its tuned step; allowed is a run whose gradients stay bounded")
