"""Measured runs of a small GPT: what is recorded is what the formulas say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from empirics.drift_recorder import DriftRecorder
from empirics.errors import InputError
from empirics.estimators.model_norm import EuclideanNorm
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.weights import minus
from empirics.gpt_runs import feedback_of, measure_drift, measure_theorem
from pipeline.models.gpt import GPTConfig, cross_entropy
from pipeline.optim.corrections import CorrectionOptions
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


UNIFORM = {"schedule": "uniform", "tau": 2, "pool": 0, "optimizer": "adamw", "lr": 1e-3}


@pytest.mark.parametrize(
    ("change", "options", "past"),
    [
        ({"correction": "error-feedback"}, {}, [2.0]),
        ({"correction": "error-feedback"}, {"form": "telescoped"}, [1.0, 1.0]),
        ({"correction": "error-feedback"}, {"coefficient": 0.5}, [0.5]),
        ({"correction": "error-feedback", "schedule": "pipedream-2bw", "tau": None}, {}, [1.0]),
        ({"correction": "lr-discount"}, {}, []),
        ({"correction": "gradient-extrapolation"}, {}, []),
        ({}, {}, []),
    ],
)
def test_the_reference_is_the_point_that_moves_by_the_plain_updates(change, options, past):
    """z = x - c (U_{k-1} + ...) under error feedback with its own c and lag, x under everything else."""
    config = replace(CONFIG, **UNIFORM | change, correction_options=CorrectionOptions(**options))
    states = []
    train_oracle(config, TEXT, states.append)
    inputs, targets = config.batches(TEXT).held_out(4)
    objective = FiniteObjective(config.make_layers(), inputs, targets, cross_entropy)
    recorder = DriftRecorder(objective, 1, feedback_of(config))
    for state in states:
        recorder(state)
    size, zs = EuclideanNorm().norm, {}
    for k in range(1, len(states)):
        zs[k] = dict(states[k].x)
        for i, c in enumerate(past):
            zs[k] = {n: v - c * states[max(k - 1 - i, 0)].update[n] for n, v in zs[k].items()}
        at_z, at_read = (objective.value_and_gradient(w)[1] for w in (zs[k], states[k].read))
        assert recorder.delay_bias[k - 1] == pytest.approx(size(minus(at_read, at_z)) / size(at_z), rel=1e-11)
        if past and k > 1:
            for name, value in states[k - 1].update.items():
                torch.testing.assert_close(zs[k][name] - zs[k - 1][name], value, rtol=0, atol=1e-14)
    assert measure_drift(config, TEXT, 1, 4).at == ("x_k" if not past else str(feedback_of(config)))


def test_a_run_that_diverged_has_a_status_and_no_average():
    lost = measure_drift(replace(CONFIG, optimizer="sgd", pool=0, lr=1e200), TEXT, every=2, sequences=4)
    assert lost.status == "diverged" and all(math.isnan(x) for x in (lost.drift, lost.delay_bias, lost.momentum_lag))
    short = measure_drift(replace(CONFIG, pool=0, steps=1), TEXT, every=2, sequences=4)
    assert short.status.startswith("too short") and math.isnan(short.drift)
    assert measure_drift(replace(CONFIG, pool=0), TEXT, every=2, sequences=4).status == "complete"


def test_no_one_virtual_iterate_where_stages_have_different_delays():
    config = replace(CONFIG, schedule="pipedream", microbatches=1, stages=3, correction="error-feedback")
    with pytest.raises(InputError, match="one delay of all stages"):
        measure_drift(config, TEXT, every=2, sequences=4)
