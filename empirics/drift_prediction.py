"""Does the drift of updates predict the share of a delay's gap that error feedback recovers? Kind: report.

Error feedback stands for the missing updates by the last one; the relative Frobenius drift |U_k - U_{k-1}|/|U_k| of the
uncorrected run is by how much that is wrong. One cell is an optimizer at a learning rate: its drift, and the recovered
share (f delayed - f corrected)/(f delayed - f without delay), over paired seeds. Over the cells: Spearman's
correlation with the interval of Bonett and Wright (2000, Psychometrika 65), the hyperbolic tangent of
artanh r +- z sqrt((1 + r^2/2)/(n - 3)); for r = +-1, where artanh is infinite, its other end is that of the largest |r|
below 1 that n pairs without ties can have. The interval is one for independent pairs, and the cells are not: they share
seeds, batches and the problem, and rates of one optimizer are alike. So it says less than its level, by
how much is not known; `one_each` has one cell of each optimizer alone, docs/log.md the correlation at two points.
A cell without a significant gap has no share, and one that diverged none either: both are labelled and left out.
Numbers: docs/prediction.md.
Checked by tests/empirics/test_drift_prediction.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.optim import Optimizer

from empirics.errors import InputError
from empirics.problems.replicas import ReplicaLoss
from empirics.replica_runs import ReplicaRuns, draw_rows, run_by_shape, run_replicas
from empirics.statistics import Interval, Ratio, fieller_ratio, paired_interval, student_interval
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from pipeline.optim.lmo import LMO
from pipeline.optim.recipes import make_optimizer
from pipeline.optim.registry import REGISTRY

#: Base optimizers that act on each entry by itself: on the parameter [R, n] they are R independent runs.
ELEMENTWISE: dict[str, Callable[[list[torch.nn.Parameter], float], Optimizer]] = {
    "SGD": lambda ps, lr: torch.optim.SGD(ps, lr=lr, foreach=False),
    "heavy ball 0.9": lambda ps, lr: torch.optim.SGD(ps, lr=lr, momentum=0.9, foreach=False),
    "EMA 0.9": lambda ps, lr: torch.optim.SGD(ps, lr=lr, momentum=0.9, dampening=0.9, foreach=False),
    "Nesterov 0.9": lambda ps, lr: torch.optim.SGD(ps, lr=lr, momentum=0.9, nesterov=True, foreach=False),
    "AdamW": lambda ps, lr: torch.optim.AdamW(ps, lr=lr, weight_decay=0.0, foreach=False),
    "sign 0.1": lambda ps, lr: LMO(ps, lr=lr, alpha=0.1, norm="sign"),
}


@dataclass(frozen=True)
class Cell:
    """One optimizer at one rate. status: "finite"; "no gap": its interval is not above 0, or some run stood still;
    "no spread": the gap is the same in every seed, or the share or the drift is, so that it has no interval;
    "diverged": some run did.
    """

    optimizer: str
    lr: float
    tau: int
    status: str
    drift: Interval | None
    gap: Interval | None
    share: Ratio | None

    @property
    def usable(self) -> bool:
        return self.status == "finite"


@dataclass(frozen=True)
class DriftReport:
    """All cells and Spearman's correlation of drift and share over the usable ones; None where fewer than 4 are."""

    cells: tuple[Cell, ...]
    correlation: Interval | None
    kind: str = "report"

    def one_each(self, rates: Mapping[str, float]) -> Interval | None:
        """The correlation over one cell of each optimizer, at these rates."""
        return correlation_of([cell for cell in self.cells if rates.get(cell.optimizer) == cell.lr])

    def as_dict(self) -> dict[str, Any]:
        """For a result file."""
        return asdict(self)


def spearman(x: Sequence[float], y: Sequence[float], level: float = 0.95) -> Interval:
    """Spearman's correlation and its interval, for independent pairs. Raises InputError for fewer than 4, or a
    constant side."""
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 4 or not np.isfinite([a, b]).all():
        raise InputError(f"x, y: shapes {a.shape}, {b.shape}; allowed are at least 4 pairs of finite numbers")
    if not np.ptp(a) or not np.ptp(b) or not 0 < level < 1:
        raise InputError(f"x, y, level: constant, or level {level!r}; allowed are samples that vary and 0 < level < 1")
    r = float(np.clip(stats.spearmanr(a, b).statistic, -1.0, 1.0))
    n = len(a)
    nearest = 1 - 12 / (n * (n**2 - 1))  # two neighbours change places: sum of squared differences of ranks 2
    inside = max(-nearest, min(nearest, r))
    half = float(stats.norm.ppf(0.5 + level / 2)) * math.sqrt((1 + inside**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(inside) - half), math.tanh(math.atanh(inside) + half)
    return Interval(r, min(low, r), max(high, r), level, "Spearman, Bonett and Wright", len(a))


def three_runs(
    problem: ReplicaLoss, w0: Tensor, name: str, lr: float, tau: int, rows: Tensor
) -> dict[str, ReplicaRuns]:
    """On the same batches without delay, delayed, delayed and corrected. name: in ELEMENTWISE, or a recipe of the
    registry, with its groups by name and shape and its weight decay."""
    if name not in ELEMENTWISE and name not in REGISTRY:
        raise InputError(f"optimizer: {name!r}; allowed are {', '.join([*ELEMENTWISE, *sorted(REGISTRY)])}")
    if not 0 < lr < math.inf or tau < 1:
        raise InputError(f"lr, tau: {lr!r}, {tau!r}; allowed are a finite number > 0 and an integer >= 1")

    def run(around: Callable[[Optimizer], Delayed]) -> ReplicaRuns:
        if name in ELEMENTWISE:
            return run_replicas(problem, w0, lambda p: around(ELEMENTWISE[name]([p], lr)), rows)
        return run_by_shape(problem, w0, lambda named: around(make_optimizer(name, named, lr)), rows)

    return {
        "sync": run(lambda base: Delayed(base, 0)),
        "delayed": run(lambda base: Delayed(base, tau)),
        "corrected": run(lambda base: Delayed(ErrorFeedback(base, tau), tau)),
    }


def measure_cell(
    problem: ReplicaLoss, w0: Tensor, name: str, lr: float, tau: int, rows: Tensor, first: int, level: float = 0.95
) -> Cell:
    """The three runs' averages over the steps from `first` on."""
    runs = three_runs(problem, w0, name, lr, tau, rows)
    f = {arm: run.losses[first:].mean(axis=0) for arm, run in runs.items()}
    if any(run.diverged for run in runs.values()):
        return Cell(name, lr, tau, "diverged", None, None, None)
    with_drift = runs["delayed"].drift[max(first - 1, 0) :].mean(axis=0)
    try:
        gap = paired_interval(f["delayed"], f["sync"], level)
        drift = student_interval(with_drift, level) if np.isfinite(with_drift).all() else None
    except InputError:  # all seeds are equal up to round-off
        return Cell(name, lr, tau, "no spread", None, None, None)
    share = fieller_ratio(f["delayed"] - f["corrected"], f["delayed"] - f["sync"], level)
    usable = gap.low > 0 and share.defined and drift is not None
    return Cell(name, lr, tau, "finite" if usable else "no gap", drift, gap, share if usable else None)


def drift_report(
    problem: ReplicaLoss,
    w0: Tensor,
    rates: Mapping[str, Sequence[float]],
    tau: int = 1,
    steps: int = 60,
    first: int = 20,
    batch: int = 8,
    seeds: int = 60,
    seed: int = 0,
    level: float = 0.95,
) -> DriftReport:
    """All cells, optimizer -> learning rates, on the same batches, and the correlation."""
    if not 0 <= first < steps - 1:
        raise InputError(f"first: {first!r}; allowed are 0 to {steps - 2}")
    rows = draw_rows(problem, steps, seeds, batch, seed)
    cells = [measure_cell(problem, w0, name, lr, tau, rows, first, level) for name, lrs in rates.items() for lr in lrs]
    return DriftReport(tuple(cells), correlation_of(cells, level))


def correlation_of(cells: Sequence[Cell], level: float = 0.95) -> Interval | None:
    """Spearman's of drift and share over the usable cells; None where fewer than 4 are."""
    drift = [cell.drift.value for cell in cells if cell.usable and cell.drift]
    share = [float(cell.share.value or 0.0) for cell in cells if cell.usable and cell.share]
    return spearman(drift, share, level) if len(drift) >= 4 else None
