"""Drift of updates against the share that error feedback recovers: a report, its interval, and what is left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats

from empirics.drift_prediction import ELEMENTWISE, drift_report, measure_cell, spearman, three_runs
from empirics.errors import InputError
from empirics.problems.replicas import perceptron, quadratic_sum
from empirics.replica_runs import draw_rows, settle

PROBLEM = perceptron()
RATES = {"SGD": [0.05, 0.15], "heavy ball 0.9": [0.03], "EMA 0.9": [0.3], "Nesterov 0.9": [0.03], "sign 0.1": [0.005]}


def test_drift_and_share_over_optimizers():
    """Error feedback loses where updates change most: SGD without momentum. The interval does not reach 0."""
    report = drift_report(PROBLEM, settle(PROBLEM, 300, 0.1), RATES, seeds=40, steps=50)
    assert report.kind == "report" and all(cell.usable for cell in report.cells)
    assert report.correlation.value < 0 and report.correlation.high < 0
    by_name = {(cell.optimizer, cell.lr): cell for cell in report.cells}
    assert by_name["SGD", 0.15].share.high < 0 < by_name["EMA 0.9", 0.3].share.low
    assert by_name["EMA 0.9", 0.3].drift.high < by_name["SGD", 0.15].drift.low
    assert json.loads(json.dumps(report.as_dict()))["cells"][0]["optimizer"] == "SGD"


def test_every_optimizer_is_elementwise():
    """Two replicas at once are two runs by themselves, for each optimizer of the table; equal ones have no spread."""
    rows = draw_rows(PROBLEM, 12, 2, 4, 0)
    for name in ELEMENTWISE:
        both = three_runs(PROBLEM, PROBLEM.start, name, 0.01, 1, rows)
        for r in (0, 1):
            alone = three_runs(PROBLEM, PROBLEM.start, name, 0.01, 1, rows[:, [r, r]])
            for arm, run in both.items():
                np.testing.assert_allclose(run.losses[:, r], alone[arm].losses[:, 0], rtol=1e-9, err_msg=name)
    cell = measure_cell(PROBLEM, PROBLEM.start, "SGD", 0.01, 1, rows[:, [0, 0]], 2)
    assert cell.status == "no spread" and cell.gap is None and not cell.usable


def test_cells_without_a_gap_and_diverged_ones_are_labelled():
    flat = quadratic_sum(torch.full((3,), 1e-6, dtype=torch.float64), 0.0)
    rows = draw_rows(PROBLEM, 20, 5, 4, 0)
    cell = measure_cell(PROBLEM, PROBLEM.start, "SGD", 50.0, 1, rows, 2)
    assert cell.status == "diverged" and cell.share is None and not cell.usable
    none = measure_cell(flat, torch.zeros(3, dtype=torch.float64), "EMA 0.9", 1e-9, 1, draw_rows(flat, 20, 5, 4, 0), 2)
    assert none.status == "no spread" and none.share is None and none.gap is None  # it stands still in every seed
    report = drift_report(PROBLEM, PROBLEM.start, {"SGD": [50.0]}, seeds=5, steps=20, first=5)
    assert report.correlation is None


def test_interval_of_spearman_covers():
    """Normal pairs with Pearson's rho have Spearman's (6/pi) arcsin(rho/2): 93 to 97 % of the intervals cover it."""
    rng, rho, n = np.random.default_rng(0), 0.6, 30
    truth, covered = 6 / np.pi * np.arcsin(rho / 2), 0
    for _ in range(1500):
        x, e = rng.standard_normal((2, n))
        interval = spearman(x, rho * x + np.sqrt(1 - rho**2) * e)
        covered += interval.covers(truth)
    assert 0.93 < covered / 1500 < 0.97
    x = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    assert spearman(x, x**3 + [0, 30, 0, 0, 0]).value == pytest.approx(
        stats.spearmanr(x, x**3 + [0, 30, 0, 0, 0]).statistic
    )
    assert spearman(x, -x).value == pytest.approx(-1.0)


@pytest.mark.parametrize("n", [4, 6, 12, 40])
def test_a_perfect_order_has_the_interval_of_the_nearest_one(n):
    """Not an end at 0: few pairs in order say little, many say much, and no less than with two neighbours exchanged."""
    x = np.arange(n, dtype=float)
    nearly = np.array([1.0, 0.0, *x[2:]])
    up, down, near = spearman(x, x**3), spearman(x, -x), spearman(x, nearly)
    assert (up.value, up.high, down.low) == (pytest.approx(1.0), pytest.approx(1.0), pytest.approx(-1.0))
    assert near.value == pytest.approx(1 - 12 / (n * (n**2 - 1))) and up.low == pytest.approx(near.low)
    assert down.high == pytest.approx(-up.low) and (up.low < 0) == (n == 4)
    assert up.low > 0.95 or n < 40


def test_bad_input():
    rows = draw_rows(PROBLEM, 5, 2, 2, 0)
    with pytest.raises(InputError, match="optimizer: 'Muon'"):
        measure_cell(PROBLEM, PROBLEM.start, "Muon", 0.1, 1, rows, 1)
    with pytest.raises(InputError, match="lr, tau: 0.0"):
        measure_cell(PROBLEM, PROBLEM.start, "SGD", 0.0, 1, rows, 1)
    with pytest.raises(InputError, match="first: 60"):
        drift_report(PROBLEM, PROBLEM.start, RATES, first=60)
    with pytest.raises(InputError, match="at least 4 pairs"):
        spearman([1, 2, 3], [1, 2, 3])
    with pytest.raises(InputError, match="constant"):
        spearman([1, 1, 1, 1], [1, 2, 3, 4])
