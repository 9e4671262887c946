"""What only a run's own steps show: the run made again by the oracle, from its settings, with the recorder looking.

As `staleproof budget` does (`empirics.run_budget`), at its cost: a full gradient over at most `windows` training
windows at each step. The losses have to be those that the run has left, or nothing is said. In the run's norm:
    dbar              mean over k >= 1 of norm(z_k - where the gradient of step k was taken)/eta   exact, whatever f is
    r_lo, r_hi        least <m, d>/dual(m) and largest norm(d) over all steps                      exact, whatever f is
    mean_error_norm   mean of dual(m_{k+1} - grad f(z_k)), what the momentum lags behind by        of f over the windows
    L_trajectory      the largest smoothness that a step of the proofs needs: at most L            of f over the windows
z_k is x_k, or under error feedback the virtual iterate. The last two are those of the run's own f where the windows are
all that it draws from; else of the mean over a part of them, and said to be.
Checked by tests/empirics/test_run_steps.py, against the estimators fed by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from empirics.applicability import reasons
from empirics.budget import OWN
from empirics.constants import Constant, not_applicable
from empirics.lmo_recorder import LMORecorder
from empirics.run_budget import Objective, facts_of_run, recorder_of_run
from pipeline.record import REORDERED
from pipeline.training import TrainConfig, train_oracle
from theory.registry import get_bound

NAMES = ("dbar", "r_lo", "r_hi", "mean_error_norm", "L_trajectory")


@dataclass(frozen=True)
class RunSteps:
    """losses: those that the run has left, to be met again; windows: most training windows that f is the mean of."""

    config: TrainConfig
    text: bytes
    losses: Sequence[float]
    windows: int = 256

    @cached_property
    def objective(self) -> Objective:
        """f of the run; InputError where it is no finite mean."""
        return Objective.make(self.config, self.text, self.windows)

    @property
    def of_f(self) -> str:
        """On which windows."""
        o = self.objective
        return f"all {o.of} training windows" if o.whole else f"{o.windows} of {o.of} training windows, evenly spaced"

    def measure(self, name: str) -> Constant:
        """One of NAMES; not applicable with the reason where no recorder is for this run, or it is not met again."""
        where = f"{self.config.steps} steps, run again by the oracle"
        if isinstance(found := self._recorded, str):
            return not_applicable(name, found, where)
        totals, n = found.rows.totals, found.rows.seen
        if name == "r_hi":
            first = found.once.get("first_direction_norm", 0.0)  # of error feedback, whose step 0 has no row
            return _measured(name, max(totals["direction_norm"].high, first), where, n)
        if name == "r_lo":
            low = totals["oracle_quality"].low
            why = "<m, d> <= 0 at some step: no oracle at all"
            return _measured(name, low, where, n) if low > 0 else not_applicable(name, why, where, n=n)
        if name == "dbar":
            steps = n if found.feedback is not None else n - 1  # step 0 has no delay, and with feedback no row
            if steps < 1:
                return not_applicable(name, "the run has one step; a drift needs two", where, n=n)
            return _measured(name, totals["delta"].sum / steps, where, steps)
        how, at = "exact" if self.objective.whole else "estimated", f"{where}; f over {self.of_f}"
        if name == "mean_error_norm":
            mean = totals["error_norm"].mean
            end = mean if how == "exact" else None
            return Constant(name, mean, how, at, end, end, method="mean over the steps", n=n)
        once = found.once  # of error feedback, from x_0 to y_1
        first = once["start_change"] / once["start_gap_norm"] if once.get("start_gap_norm", 0.0) > 0 else 0.0
        largest, note = max(totals["smoothness_used"].high, first), "a lower bound of L: the largest on this path"
        return Constant(name, largest, "estimated", at, largest, math.inf, None, "gradient ratio", n, note)

    @cached_property
    def _recorded(self) -> LMORecorder | str:
        """The recorder after the run, or why there is none."""
        facts = facts_of_run(self.config)
        against = [reasons(get_bound(theorem), facts) for theorem in OWN]
        if all(against):
            return f"no theorem's recorder is for this run: {min(against, key=len)[0]}"
        recorder = recorder_of_run(self.config, facts, self.objective.finite)
        result = train_oracle(self.config, self.text, recorder)
        recorder.flush()
        if result.skipped:
            return f"{len(result.skipped)} steps were left out: the recorder speaks of every step"
        then, now = np.asarray(self.losses, dtype=float), np.asarray(result.losses, dtype=float)
        allowed = REORDERED * float(np.abs(now).max()) if self.config.sums_reordered else 0.0
        if then.shape != now.shape or not (np.abs(then - now) <= allowed).all():
            return "the oracle's losses are not those of the run"
        return recorder


def _measured(name: str, value: float, where: str, n: int) -> Constant:
    return Constant(name, value, "exact", where, value, value, method="every step", n=n)
