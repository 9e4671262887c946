"""Predicted against measured delay gap: what the local quadratic model (`empirics.local_quadratic`) says of a run.

Kinds: on a quadratic whose noise is the same everywhere it is an equality. On a network it is a report: how far the
model is right is what is measured, with intervals over seeds; nothing gates on it. A prediction has a bracket: what
more steps of Lanczos could make of it. It is not applicable where the model is unstable.
Checked by tests/empirics/test_prediction.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from empirics.constants import Constant, not_applicable
from empirics.errors import InputError
from empirics.local_quadratic import LocalQuadratic
from empirics.monte_carlo import optimizer_of
from empirics.problems.replicas import ReplicaLoss
from empirics.replica_runs import draw_rows, run_replicas
from empirics.statistics import Interval, Ratio, fieller_ratio, paired_interval
from theory.quadratic import QuadraticMethod

#: Sums over a window, against the largest loss in it: differences of means below this share of it are round-off.
ROUND_OFF = 1e-12


def three_arms(tau: int, beta: float = 0.0, dampening: float = 0.0) -> dict[str, QuadraticMethod]:
    """Without delay, with it, and with error feedback. Raises InputError for tau < 1."""
    if tau < 1:
        raise InputError(f"tau: {tau!r}; allowed is an integer >= 1, there is no gap without a delay")
    plain = QuadraticMethod(tau=tau, beta=beta, dampening=dampening)
    return {"sync": replace(plain, tau=0), "delayed": plain, "corrected": replace(plain, correction="error-feedback")}


@dataclass(frozen=True)
class GapPrediction:
    """Average over the window first..last: the gap, f delayed - f without delay; what error feedback takes away,
    f delayed - f corrected; and its share of the gap. Predicted, and measured over paired seeds.

    status: "finite"; "diverged" with nothing measured; "no spread" where the gap is the same in every seed up to
    `round_off`, so that it is a number, mean_gap, without an interval.
    """

    problem: str
    tau: int
    beta: float
    eta: float
    first: int
    last: int
    seeds: int
    status: str
    predicted_gap: Constant
    predicted_recovered: Constant
    predicted_share: Constant
    measured_gap: Interval | None = None
    measured_recovered: Interval | None = None
    measured_share: Ratio | None = None
    mean_gap: float = math.nan
    round_off: float = 0.0
    kind: str = "report"

    @property
    def gap_ratio(self) -> float:
        """Predicted over measured; NaN where one of them is missing, or 0 was measured."""
        if self.predicted_gap.value is None or not self.mean_gap:
            return math.nan
        return self.predicted_gap.value / self.mean_gap

    @property
    def covered(self) -> bool:
        """Whether the measured interval, or number, has the predicted gap in it, up to round-off."""
        value, measured = self.predicted_gap.value, self.measured_gap
        if value is None or self.status == "diverged":
            return False
        low, high = (self.mean_gap, self.mean_gap) if measured is None else (measured.low, measured.high)
        return low - self.round_off <= value <= high + self.round_off

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self) | {"gap_ratio": self.gap_ratio, "covered": self.covered}


def predict_gap(
    problem: ReplicaLoss,
    w0: Tensor,
    local: LocalQuadratic,
    tau: int,
    eta: float,
    beta: float = 0.0,
    dampening: float = 0.0,
    batch: int = 4,
    window: tuple[int, int] = (1, 60),
    seeds: int = 100,
    seed: int = 0,
    level: float = 0.95,
) -> GapPrediction:
    """Prediction and runs from w0. The arms share their batches, so differences are paired."""
    first, last = window
    if not 0 <= first <= last:
        raise InputError(f"window: {window!r}; allowed are 0 <= first <= last")
    arms = three_arms(tau, beta, dampening)
    predicted = predictions(local, arms, eta, batch, window)
    rows = draw_rows(problem, last, seeds, batch, seed)
    runs = {name: run_replicas(problem, w0, partial(optimizer_of, method=m, eta=eta), rows) for name, m in arms.items()}
    cell = GapPrediction(problem.name, tau, beta, eta, first, last, seeds, "finite", *predicted)
    if any(run.diverged for run in runs.values()):
        return replace(cell, status="diverged")
    f = {name: run.losses[first:].mean(axis=0) for name, run in runs.items()}
    size = max(float(np.abs(run.losses[first:]).max()) for run in runs.values())
    cell = replace(cell, mean_gap=float((f["delayed"] - f["sync"]).mean()), round_off=ROUND_OFF * size)
    try:
        gap = paired_interval(f["delayed"], f["sync"], level)
        recovered = paired_interval(f["delayed"], f["corrected"], level)
    except InputError:  # equal in all seeds
        return replace(cell, status="no spread")
    share = fieller_ratio(f["delayed"] - f["corrected"], f["delayed"] - f["sync"], level)
    return replace(cell, measured_gap=gap, measured_recovered=recovered, measured_share=share)


def predictions(
    local: LocalQuadratic, arms: dict[str, QuadraticMethod], eta: float, batch: int, window: tuple[int, int]
) -> tuple[Constant, Constant, Constant]:
    """The gap, what is recovered, and the share, of the model, each with its bracket."""
    first, last = window
    losses = {name: local.expected_loss(method, eta, last, batch) for name, method in arms.items()}
    why = {name: local.unstable(method, eta, losses[name]) for name, method in arms.items()}
    mean = {name: float(f[first:].mean()) for name, f in losses.items()}

    def of(name: str, other: str) -> Constant:
        lost = next((f"{arm}: {why[arm]}" for arm in ("sync", "delayed", "corrected")
                     if arm in ("delayed", other) and why[arm]), None)  # fmt: skip
        if lost is not None:
            return not_applicable(name, lost, "the local quadratic model")
        value = mean["delayed"] - mean[other]
        off = local.truncation(arms["delayed"], arms[other], eta, window, batch) + ROUND_OFF * abs(local.f0)
        note = f"bracket of {local.lanczos} steps of Lanczos"
        return Constant(name, value, "estimated", "the local quadratic model", value - off, value + off, note=note)

    gap, recovered = of("gap", "sync"), of("recovered", "corrected")
    return gap, recovered, _share(gap, recovered)


def _share(gap: Constant, recovered: Constant) -> Constant:
    """recovered/gap with the extremes over both brackets."""
    for one in (gap, recovered):
        if not one.applicable:
            return not_applicable("share", one.reason, one.where)
    a, b = ((c.value or 0.0, c.low or 0.0, c.high or 0.0) for c in (recovered, gap))
    if b[1] <= 0 <= b[2]:
        return not_applicable("share", f"the gap's bracket [{b[1]:.4g}, {b[2]:.4g}] has 0 in it", gap.where)
    if not all(map(math.isfinite, (*a, *b))):
        return not_applicable("share", "the brackets are open", gap.where)
    ends = [x / y for x in a for y in b]
    return Constant("share", a[0] / b[0], "estimated", gap.where, min(ends), max(ends), note=gap.note)


@dataclass(frozen=True)
class GapReport:
    """How good the predictions are, over cells of independent problems: all that have both sides, with a gap or
    without, as a choice by what was measured would bias every number here.

    covered: share of the measured intervals that have the prediction in them (about their level, were the model exact);
    ratio: sum of the predicted gaps over that of the measured ones; predicted_share, measured_share: sum of what is
    recovered over that of the gaps; each with Fieller's interval over the cells. left_out: why, and how many.
    """

    cells: tuple[GapPrediction, ...]
    used: int
    left_out: dict[str, int]
    covered: float
    ratio: Ratio
    predicted_share: Ratio
    measured_share: Ratio
    kind: str = "report"

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self) | {"cells": [cell.as_dict() for cell in self.cells]}


def gap_report(cells: Sequence[GapPrediction], level: float = 0.95) -> GapReport:
    """Sum the cells up. Raises InputError for fewer than 2 with a prediction and a measured interval."""
    used, left_out = [], dict[str, int]()
    for c in cells:
        why = c.status if c.measured_gap is None else "" if c.predicted_gap.applicable else "model unstable"
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        else:
            used.append(c)
    if len(used) < 2:
        raise InputError(f"cells: {len(used)} with a prediction and an interval; allowed are at least 2")
    gaps = [c.predicted_gap.value or 0.0 for c in used], [c.mean_gap for c in used]
    both = [c for c in used if c.predicted_recovered.applicable]
    predicted = [(c.predicted_recovered.value or 0.0, c.predicted_gap.value or 0.0) for c in both]
    measured = [(c.measured_recovered.value, c.mean_gap) for c in both if c.measured_recovered is not None]
    return GapReport(
        tuple(cells),
        len(used),
        left_out,
        float(np.mean([c.covered for c in used])),
        fieller_ratio(*gaps, level),
        _over(predicted, level),
        _over(measured, level),
    )


def _over(pairs: Sequence[tuple[float, float]], level: float) -> Ratio:
    """Sum over sum."""
    if len(pairs) < 2:
        return Ratio(None, None, None, level, "Fieller", len(pairs), False, "fewer than 2 cells")
    return fieller_ratio([a for a, _ in pairs], [b for _, b in pairs], level)
