"""Predicted against measured delay gap: what the local quadratic model (`empirics.local_quadratic`) says of a run.

Kinds: on a quadratic whose noise is the same everywhere it is an equality. On a network it is a report: how far the
model is right is what is measured, with intervals over seeds; nothing gates on it.
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

from empirics.errors import InputError
from empirics.local_quadratic import LocalQuadratic
from empirics.monte_carlo import optimizer_of
from empirics.problems.replicas import ReplicaLoss
from empirics.replica_runs import draw_rows, run_replicas
from empirics.statistics import Interval, Ratio, fieller_ratio, paired_interval, student_interval
from theory.quadratic import QuadraticMethod


def three_arms(tau: int, beta: float = 0.0, dampening: float = 0.0) -> dict[str, QuadraticMethod]:
    """Without delay, with it, and with error feedback. Raises InputError for tau < 1."""
    if tau < 1:
        raise InputError(f"tau: {tau!r}; allowed is an integer >= 1, there is no gap without a delay")
    plain = QuadraticMethod(tau=tau, beta=beta, dampening=dampening)
    return {"sync": replace(plain, tau=0), "delayed": plain, "corrected": replace(plain, correction="error-feedback")}


@dataclass(frozen=True)
class GapPrediction:
    """Average over the window first..last of f delayed - f without delay, and the share of it that error feedback takes
    away: predicted, and measured over paired seeds. status: "finite", or "diverged" with nothing measured.
    """

    problem: str
    tau: int
    beta: float
    eta: float
    first: int
    last: int
    seeds: int
    status: str
    predicted_gap: float
    measured_gap: Interval | None
    predicted_share: float
    measured_share: Ratio | None
    kind: str = "report"

    @property
    def gap_ratio(self) -> float:
        """Predicted over measured; NaN where nothing was measured or it is 0."""
        if self.measured_gap is None or not self.measured_gap.value:
            return math.nan
        return self.predicted_gap / self.measured_gap.value

    @property
    def covered(self) -> bool:
        """Whether the measured interval has the predicted gap in it."""
        return self.measured_gap is not None and self.measured_gap.covers(self.predicted_gap)

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
    real_tau: int | None = None,
) -> GapPrediction:
    """Prediction and runs from w0. The arms share their batches, so differences are paired.

    real_tau: a delay of the runs that the prediction does not know of, for tests that have to fail.
    """
    first, last = window
    if not 0 <= first <= last:
        raise InputError(f"window: {window!r}; allowed are 0 <= first <= last")
    arms = three_arms(tau, beta, dampening)
    predicted = {name: local.expected_loss(m, eta, last, batch)[first:].mean() for name, m in arms.items()}
    rows = draw_rows(problem, last, seeds, batch, seed)
    real = three_arms(tau if real_tau is None else real_tau, beta, dampening)
    runs = {name: run_replicas(problem, w0, partial(optimizer_of, method=m, eta=eta), rows) for name, m in real.items()}
    measured = {name: run.losses[first:].mean(axis=0) for name, run in runs.items()}
    gap = float(predicted["delayed"] - predicted["sync"])
    share = float(predicted["delayed"] - predicted["corrected"]) / gap if gap else math.nan
    cell = GapPrediction(problem.name, tau, beta, eta, first, last, seeds, "finite", gap, None, share, None)
    if any(run.diverged for run in runs.values()):
        return replace(cell, status="diverged")
    return replace(
        cell,
        measured_gap=paired_interval(measured["delayed"], measured["sync"], level),
        measured_share=fieller_ratio(
            measured["delayed"] - measured["corrected"], measured["delayed"] - measured["sync"], level
        ),
    )


@dataclass(frozen=True)
class GapReport:
    """How good the predictions are, over cells of independent problems. covered: share of the measured intervals that
    have the prediction in them (about their level, were the model exact); ratio: mean of predicted/measured gaps, with
    Student's interval; share_error: median of |predicted - measured|/|measured| of the recovered shares.
    left_out: cells that diverged, or whose gap's interval has 0 in it.
    """

    cells: tuple[GapPrediction, ...]
    left_out: int
    covered: float
    ratio: Interval
    share_error: float
    kind: str = "report"

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self) | {"cells": [cell.as_dict() for cell in self.cells]}


def gap_report(cells: Sequence[GapPrediction], level: float = 0.95) -> GapReport:
    """Sum the cells up. Raises InputError for fewer than 2 that have a gap."""
    used = [c for c in cells if c.measured_gap is not None and not c.measured_gap.covers(0.0)]
    if len(used) < 2:
        raise InputError(f"cells: {len(used)} with a gap; allowed are at least 2")
    shares = [
        abs(c.predicted_share - c.measured_share.value) / abs(c.measured_share.value)
        for c in used
        if c.measured_share is not None and c.measured_share.value
    ]
    return GapReport(
        tuple(cells),
        len(cells) - len(used),
        float(np.mean([c.covered for c in used])),
        student_interval([c.gap_ratio for c in used], level),
        float(np.median(shares)) if shares else math.nan,
    )
