"""The two predictions on a GPT on a finite corpus: the runs behind docs/prediction.md. Kind: report.

    python -m empirics.prediction_study gap LICENSE
    python -m empirics.prediction_study drift LICENSE

gap: the local quadratic model's delay gap and recovered share, at points of full-gradient descent, for SGD with and
without momentum; networks are initialisations on the same windows. drift: every recipe of the registry at three rates,
from the start. Each prints its table; some minutes on one thread.
Checked by tests/empirics/test_prediction_study.py.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from empirics.drift_prediction import Cell, DriftReport, drift_report
from empirics.errors import InputError
from empirics.local_quadratic import LocalQuadratic, measure_local
from empirics.prediction import GapPrediction, gap_report, predict_gap
from empirics.problems.gpt_replicas import gpt_replicas
from empirics.problems.replicas import ReplicaLoss
from empirics.replica_runs import settle
from empirics.statistics import Interval, Ratio
from pipeline.optim.registry import REGISTRY
from theory.quadratic import QuadraticMethod

#: Rate of the full-gradient descent to the points of the study.
SETTLE_ETA = 0.3
#: Of the text, each of 8 bytes; and initialisations.
WINDOWS, NETWORKS = 16, 8
#: A recipe's own rate times these.
RATES = (0.25, 1.0, 4.0)


@dataclass(frozen=True)
class GapSetting:
    """warm_up: full-gradient steps to the point; of_limit: eta as a share of the stability limit at the sharpness."""

    warm_up: int
    tau: int
    beta: float
    of_limit: float


GAP_SETTINGS = (
    *(GapSetting(warm_up, 1, beta, 0.2) for warm_up in (0, 100, 300) for beta in (0.0, 0.9)),
    *(GapSetting(300, 2, beta, 0.2) for beta in (0.0, 0.9)),
)


@dataclass(frozen=True)
class GapCell:
    """One network at one setting, with the model that predicted it."""

    setting: GapSetting
    local: LocalQuadratic
    found: GapPrediction


def gap_cells(
    problems: Iterable[ReplicaLoss],
    settings: Sequence[GapSetting] = GAP_SETTINGS,
    seeds: int = 16,
    steps: int = 30,
    batch: int = 4,
    lanczos: int = 12,
) -> Iterator[GapCell]:
    """Every setting on every problem, as they are done."""
    for number, problem in enumerate(problems):
        for warm_up in sorted({setting.warm_up for setting in settings}):
            w = settle(problem, warm_up, SETTLE_ETA)
            local = measure_local(problem, w, lanczos)
            for setting in settings:
                if setting.warm_up != warm_up:
                    continue
                limit = QuadraticMethod(setting.tau, setting.beta).stability_limit() / local.sharpness
                eta = setting.of_limit * limit
                found = predict_gap(
                    problem,
                    w,
                    local,
                    setting.tau,
                    eta,
                    setting.beta,
                    batch=batch,
                    window=(1, steps),
                    seeds=seeds,
                    seed=number,
                )
                yield GapCell(setting, local, found)


def gap_rows(cells: Sequence[GapCell]) -> Iterator[str]:
    """A row of a table a setting: what docs/prediction.md has."""
    yield "| warm-up | tau | beta | eta/limit | loss | cells | predicted/measured | covered | share | measured |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for setting in dict.fromkeys(cell.setting for cell in cells):
        mine = [cell for cell in cells if cell.setting == setting]
        words = f"| {setting.warm_up} | {setting.tau} | {setting.beta:g} | {setting.of_limit:g} "
        words += f"| {statistics.mean(cell.local.f0 for cell in mine):.3g} "
        try:
            report = gap_report([cell.found for cell in mine])
        except InputError:
            yield words + "| fewer than 2 | | | | |"
            continue
        covered = f"{round(report.covered * report.used)} of {report.used}"
        shares = f"{_words(report.predicted_share)} | {_words(report.measured_share)}"
        yield f"{words}| {report.used} of {len(mine)} | {_words(report.ratio)} | {covered} | {shares} |"


def registry_drift(
    problem: ReplicaLoss,
    names: Iterable[str] = tuple(REGISTRY),
    factors: Sequence[float] = RATES,
    steps: int = 45,
    seeds: int = 6,
) -> DriftReport:
    """Every recipe at its rate times the factors, from the problem's start, tau = 1."""
    rates = {name: [factor * REGISTRY[name].lr for factor in factors] for name in names}
    return drift_report(problem, problem.start, rates, 1, steps, steps // 3, 8, seeds)


def drift_rows(report: DriftReport) -> Iterator[str]:
    """A row a cell, and the correlations."""
    yield "| optimizer | rate | gap | drift | share |"
    yield "|---|---|---|---|---|"
    yield from (f"| {cell.optimizer} | {cell.lr:.3g} | {_cell(cell)} |" for cell in report.cells)
    own = {name: recipe.lr for name, recipe in REGISTRY.items()}
    for words, r in (("all usable cells", report.correlation), ("one rate each", report.one_each(own))):
        yield f"Spearman, {words}: " + ("none" if r is None else f"{_words(r)}, n = {r.n}")


def _cell(cell: Cell) -> str:
    if cell.gap is None:
        return f"{cell.status} | | "
    drift = "" if cell.drift is None else f"{cell.drift.value:.2f}"
    share = cell.share
    words = cell.status if share is None else f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"
    return f"{_words(cell.gap)} | {drift} | {words}"


def _words(x: Interval | Ratio) -> str:
    if x.value is None:
        return "undefined"
    return f"{x.value:.3g} [{x.low:.3g}, {x.high:.3g}]"


def main(words: Sequence[str]) -> int:
    """The exit code."""
    if len(words) != 2 or words[0] not in ("gap", "drift"):
        print("python -m empirics.prediction_study gap|drift TEXT-FILE", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    text = Path(words[1]).read_bytes()
    if words[0] == "gap":
        rows = gap_rows(list(gap_cells(gpt_replicas(text, WINDOWS, seed=seed) for seed in range(NETWORKS))))
    else:
        rows = drift_rows(registry_drift(gpt_replicas(text, WINDOWS)))
    for row in rows:
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
