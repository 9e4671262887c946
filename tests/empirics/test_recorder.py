"""The recorders on small runs: they measure what their formulas say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from empirics.estimators.model_norm import EuclideanNorm
from empirics.estimators.weights import minus
from empirics.gpt_runs import measure_drift, measure_theorem
from pipeline.models.gpt import GPTConfig
from pipeline.training import TrainConfig, train_oracle

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
CONFIG = TrainConfig(
    steps=8,
    sequences=2,
    microbatches=2,
    optimizer="lmo",
    dtype="float64",
    pool=6,
    model=GPTConfig(layers=1, width=8, heads=2, context=8),
)


def test_the_theorem_run_measures_lemma_b_and_the_step_length():
    run = measure_theorem(CONFIG, TEXT, every=1)
    assert [row["k"] for row in run.rows] == list(range(8))
    assert run.E0 == pytest.approx(run.rows[0]["grad_norm"], rel=1e-12)  # m_0 = 0
    assert run.rows[0]["delay_bias"] == 0.0
    for before, row in zip(run.rows, run.rows[1:], strict=False):
        assert row["step_norm"] == pytest.approx(run.eta, rel=1e-9)
        # With tau = 1 the delay bias of step k is the gradient's change over step k - 1.
        assert row["delay_bias"] == pytest.approx(before["smoothness"] * before["step_norm"], rel=1e-9)
        assert row["f_now"] == pytest.approx(before["f_next"], rel=1e-12)


def test_a_synchronous_run_has_no_delay_bias():
    run = measure_theorem(replace(CONFIG, schedule="1f1b"), TEXT, every=2)
    assert all(row["delay_bias"] == 0.0 for row in run.rows)


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd", "lmo"])
def test_drift_equals_its_definition(optimizer):
    config = replace(CONFIG, optimizer=optimizer, pool=0, steps=6, lr=1e-3)
    updates = []
    train_oracle(config, TEXT, lambda state: updates.append(state.update))
    size = EuclideanNorm().norm
    shares = [size(minus(b, a)) / size(b) for a, b in zip(updates, updates[1:], strict=False)]
    measured = measure_drift(config, TEXT, every=2, sequences=4)
    assert measured.drift == pytest.approx(sum(shares[len(shares) // 2 :]) / len(shares[len(shares) // 2 :]), rel=1e-12)
    assert measured.delay_bias > 0
    assert math.isfinite(measured.momentum_lag)


def test_error_feedback_moves_the_reference_to_the_virtual_iterate():
    config = replace(CONFIG, optimizer="adamw", pool=0, correction="error-feedback", lr=1e-3)
    states = []
    train_oracle(config, TEXT, lambda state: states.append((state.x, state.update, state.read)))
    # y_k = x_k - U_{k-1}: with tau = 1, y_{k+1} = y_k + U_k for k >= 1.
    ys = [minus(states[k][0], states[k - 1][1]) for k in range(1, len(states))]
    for k in range(1, len(states) - 1):
        for name in ys[0]:
            torch.testing.assert_close(ys[k][name] - ys[k - 1][name], states[k][1][name], rtol=0, atol=1e-14)
