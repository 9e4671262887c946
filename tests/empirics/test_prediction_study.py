"""The study behind docs/prediction.md, made small: what it runs, what it prints, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from empirics.drift_prediction import measure_cell
from empirics.local_quadratic import measure_local
from empirics.prediction_study import GapSetting, drift_rows, gap_cells, gap_rows, main, registry_drift
from empirics.problems.gpt_replicas import gpt_replicas
from empirics.problems.replicas import perceptron
from empirics.replica_runs import draw_rows, settle
from pipeline.optim.registry import REGISTRY
from theory.quadratic import QuadraticMethod

TEXT = bytes((7 * i * i + i) % 250 for i in range(2000))
ROOT = Path(__file__).resolve().parents[2]
SMALL = gpt_replicas(TEXT, sequences=5, width=8, context=4)


def test_gap_cells_are_at_their_settings_and_make_the_table():
    settings = [GapSetting(0, 2, 0.9, 0.1), GapSetting(20, 1, 0.9, 0.2)]
    problems = [perceptron(seed=seed) for seed in range(2)]
    cells = list(gap_cells(problems, settings, seeds=10, steps=15))
    assert [cell.setting for cell in cells] == settings * 2
    local = measure_local(problems[1], settle(problems[1], 20, 0.3), 12)
    assert cells[3].local.sharpness == local.sharpness
    limit = QuadraticMethod(1, 0.9).stability_limit() / local.sharpness
    assert cells[3].found.eta == pytest.approx(0.2 * limit, rel=1e-12)
    rows = list(gap_rows(cells))
    assert len(rows) == 4 and len({row.count("|") for row in rows}) == 1
    assert rows[3].startswith("| 20 | 1 | 0.9 | 0.2 |") and "2 of 2" in rows[3]
    gone = [replace(cell, found=replace(cell.found, measured_gap=None)) for cell in cells[::2]]
    assert "fewer than 2" in list(gap_rows(gone))[2]


def test_a_gpt_at_its_start_and_on_its_way():
    """After 300 full steps the model is good, with wide margins so that a broken one shows; at the start it is not."""
    settings = [GapSetting(0, 1, 0.0, 0.2), GapSetting(300, 1, 0.0, 0.2), GapSetting(300, 1, 0.9, 0.2)]
    problem = gpt_replicas((ROOT / "LICENSE").read_bytes(), 8, width=8, context=4)
    start, plain, momentum = (cell.found for cell in gap_cells([problem], settings, steps=20, lanczos=8))
    for found in (plain, momentum):
        assert 0.5 < found.gap_ratio < 2 and found.covered and found.measured_gap.low > 0
    assert plain.predicted_share.value == pytest.approx(plain.measured_share.value, rel=0.5)
    assert momentum.measured_share.low <= momentum.predicted_share.value <= momentum.measured_share.high
    assert start.gap_ratio > 10 and not start.covered


def test_drift_of_recipes_at_their_rates():
    names = ["sgd", "muon"]
    report = registry_drift(SMALL, names, (0.5, 1.0), steps=12, seeds=3)
    assert [(cell.optimizer, cell.lr) for cell in report.cells] == [
        (name, factor * REGISTRY[name].lr) for name in names for factor in (0.5, 1.0)
    ]
    own = {name: REGISTRY[name].lr for name in names}
    assert report.correlation.n == 4 and report.one_each(own) is None  # two are too few
    rows = list(drift_rows(report))
    assert len(rows) == 2 + 4 + 2 and len({row.count("|") for row in rows[:6]}) == 1
    assert rows[-2].startswith("Spearman, all usable cells: ")


def test_a_recipe_that_diverges_is_labelled():
    """SOAP would raise for a gradient that is not finite; the runs stop before."""
    rows = draw_rows(SMALL, 12, 2, 2, 0)
    assert measure_cell(SMALL, SMALL.start, "sgd", 1e6, 1, rows, 2).status == "diverged"
    pytest.importorskip("pytorch_optimizer")
    assert measure_cell(SMALL, SMALL.start, "soap", 1e200, 1, rows, 2).status == "diverged"


def test_usage(capsys):
    assert main(["drift"]) == 2
    assert capsys.readouterr().err.startswith("python -m empirics.prediction_study")
