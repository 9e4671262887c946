"""Constants that need a run's steps: against estimators fed by hand from the oracle, and the reasons for none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from empirics.estimators.momentum_lag import momentum_error
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.smoothness import directional
from empirics.estimators.update_drift import UpdateDrift
from empirics.estimators.weights import inner
from empirics.lmo_recorder import Feedback
from empirics.run_budget import facts_of_run, recorder_of_run
from empirics.run_steps import NAMES, RunSteps
from pipeline.models.gpt import GPTConfig
from pipeline.training import TrainConfig, train_oracle

TEXT = bytes((i * i + 3 * i) % 251 for i in range(190))
SMALL = GPTConfig(layers=1, width=8, heads=2, context=8)
CONFIG = TrainConfig(steps=5, sequences=2, microbatches=2, optimizer="lmo", dtype="float64", model=SMALL)


@pytest.mark.parametrize(
    "change",
    [{}, {"schedule": "uniform", "tau": 3}, {"correction": "error-feedback"}],
    ids=["2bw", "uniform", "feedback"],
)
def test_they_are_what_the_estimators_say_of_the_same_steps(change):
    config = replace(CONFIG, **change)
    facts = facts_of_run(config)
    norm = recorder_of_run(config, facts, None).norm
    inputs, targets, _ = config.batches(TEXT).training_windows(1000)
    f = FiniteObjective(replace(config, dtype="float64").make_layers(), inputs, targets, config.loss)
    eta, lag = 0.01, 1 if "correction" in change else 0
    drift, errors, quality, ratios, sizes, before = UpdateDrift(norm, eta, 0.05), [], [], [], [], []

    def look(state):
        x = {n: v - before[-1][n] for n, v in state.x.items()} if lag and before else state.x  # y_k = x_k - U_{k-1}
        x_next = {n: v - lag * state.update[n] for n, v in state.x_next.items()}
        m = {n: state.optimizer.state[p]["momentum"].clone() for n, p in state.parameters.items()}
        before.append(state.update)
        sizes.append(norm.norm(state.update) / eta)
        if lag and state.k == 0:
            ratios.append(directional(norm, state.x, x_next, *(f.value_and_gradient(w)[1] for w in (state.x, x_next))))
            return
        quality.append(-inner(m, state.update) / eta / norm.dual(m))
        points = [f.value_and_gradient(w)[1] for w in (x, x_next, state.read, state.x)]
        errors.append(momentum_error(norm, m, points[0]))
        pairs = [(x, x_next, 0, 1), (x, state.read, 0, 2), (x, state.x, 0, 3)]
        ratios.extend(directional(norm, a, b, points[i], points[j]) for a, b, i, j in pairs)
        if state.k:
            drift.add(x, state.read)

    result = train_oracle(config, TEXT, look)
    steps = RunSteps(config, TEXT, result.losses, 1000)
    found = {name: steps.measure(name) for name in NAMES}
    assert all(c.applicable for c in found.values()), found
    assert steps.objective.whole and "all 162 training windows" in found["mean_error_norm"].where
    assert found["dbar"].value == pytest.approx(drift.dbar, rel=1e-9) and found["dbar"].n == 4
    assert found["r_lo"].value == pytest.approx(min(quality), rel=1e-9)
    assert found["r_hi"].value == pytest.approx(max(sizes), rel=1e-9)
    assert found["mean_error_norm"].value == pytest.approx(np.mean(errors), rel=1e-9)
    assert all(found[n].how == "exact" and found[n].low == found[n].value for n in NAMES if n != "L_trajectory")
    # The recorder looks at more pairs than these, at every one that the proofs speak of.
    L = found["L_trajectory"]
    assert L.value >= max(r for r in ratios if r is not None) * (1 - 1e-9) and (L.low, L.high) == (L.value, math.inf)


def test_a_part_of_the_windows_is_said_to_be_one():
    result = train_oracle(CONFIG, TEXT)
    steps = RunSteps(CONFIG, TEXT, result.losses, 10)
    lag, drift = steps.measure("mean_error_norm"), steps.measure("dbar")
    assert lag.how == "estimated" and lag.low is None and "f over 10 of 162 training windows" in lag.where
    assert drift.how == "exact" and "windows" not in drift.where


@pytest.mark.parametrize(
    ("change", "losses", "said"),
    [
        ({"optimizer": "adamw"}, None, "no theorem's recorder is for this run: lmo: adamw has groups"),
        ({}, [5.5] * 5, "the oracle's losses are not those of the run"),
        ({}, [5.5] * 3, "the oracle's losses are not those of the run"),
    ],
)
def test_no_numbers_without_the_run_itself(change, losses, said):
    config = replace(CONFIG, **change)
    steps = RunSteps(config, TEXT, losses or train_oracle(config, TEXT).losses, 4)
    assert all(not (c := steps.measure(name)).applicable and c.reason.startswith(said) for name in NAMES)


def test_one_step_has_no_drift():
    config = replace(CONFIG, steps=1)
    steps = RunSteps(config, TEXT, train_oracle(config, TEXT).losses, 4)
    assert "a drift needs two" in steps.measure("dbar").reason and steps.measure("r_hi").applicable


@pytest.mark.parametrize(("feedback", "dbar"), [(None, 2.0), (Feedback(1.0, 1), 4 / 3)])
def test_extremes_and_means_of_rows_that_differ(feedback, dbar):
    """Of an inexact oracle, by hand; step 0 of a run without feedback has no delay, of one with it no row."""
    steps = RunSteps(CONFIG, TEXT, [])
    recorder = replace(recorder_of_run(CONFIG, facts_of_run(CONFIG), None), feedback=feedback)
    for quality, size, delta, L in ((0.9, 1.0, 0.0, 5.0), (0.7, 1.3, 1.0, 9.0), (0.8, 1.1, 3.0, 7.0)):
        row = {"oracle_quality": quality, "direction_norm": size, "delta": delta}
        recorder.rows.add(row | {"error_norm": 2 * delta, "smoothness_used": L})
    recorder.once = {"first_direction_norm": 1.4, "start_change": 6.0, "start_gap_norm": 0.5} if feedback else {}
    steps.__dict__["_recorded"] = recorder
    assert steps.measure("dbar").value == pytest.approx(dbar)
    assert steps.measure("r_lo").value == 0.7 and steps.measure("r_hi").value == (1.4 if feedback else 1.3)
    assert steps.measure("L_trajectory").value == (12.0 if feedback else 9.0)
    assert steps.measure("mean_error_norm").value == pytest.approx(8 / 3)
    recorder.rows.add(recorder.rows.last | {"oracle_quality": -0.1})
    assert "no oracle at all" in steps.measure("r_lo").reason
