"""Runs on real processes: what is refused, what does not matter, and that the comparison with the oracle can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.schedules import SCHEDULES
from pipeline.training import TrainConfig, train, train_oracle

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=6, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)


def test_the_comparison_can_fail(two_workers):
    engine = train(SMALL, TEXT, two_workers)
    for wrong in ({"schedule": "1f1b"}, {"seed": 1}, {"correction": "error-feedback"}, {"lr": 3.001e-3}):
        gap, place = largest_difference(engine.snapshots, train_oracle(SMALL, TEXT, **wrong).snapshots)
        assert gap > 0
        assert "step" in place


RUNNABLE = [name for name, cls in SCHEDULES.items() if cls(4, 4).runs_on_engine]


def test_what_the_engine_runs():
    assert RUNNABLE == ["gpipe", "1f1b", "pipedream", "pipedream-vertical-sync", "pipedream-2bw", "uniform"]
    for schedule in set(SCHEDULES) - set(RUNNABLE):
        with pytest.raises(InputError, match=f"schedule = '{schedule}': the engine runs gpipe, 1f1b, "):
            TrainConfig(schedule=schedule, stages=4, microbatches=4, model=MODEL)


def test_2bw_at_two_depths_is_one_trajectory(two_workers):
    # 2BW's delay is 1 at any depth: the same run in one process and in two.
    config = replace(SMALL, microbatches=2)
    one = train_oracle(replace(config, stages=1), TEXT)
    assert largest_difference(train(config, TEXT, two_workers).snapshots, one.snapshots) == (0.0, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "2bw"}, "schedule = '2bw': the engine runs gpipe, 1f1b, "),
        ({"optimizer": "lion9"}, "lion9"),
        ({"correction": "magic"}, "correction: 'magic'; allowed are none, error-feedback"),
        ({"stages": 5}, "stages = 5: the model has 4 layers"),
        ({"stages": 0}, "stages = 0"),
        ({"steps": 0}, "steps = 0"),
        ({"dtype": "int8"}, "dtype = 'int8': allowed are"),
        ({"seed": -1}, "seed = -1"),
        ({"lr": -0.1}, r"lr.*-0\.1"),
        ({"schedule": "pipedream", "microbatches": 2, "correction": "error-feedback"}, "of a stage have one"),
        # Of four microbatches one is a step old: no single delay to correct for.
        (
            {"schedule": "pipedream-vertical-sync", "microbatches": 4, "correction": "error-feedback"},
            r"where all microbatches of a stage have one delay",
        ),
    ],
)
def test_bad_settings_are_refused_before_a_process_starts(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)


def test_a_pool_of_another_size_is_refused(two_workers):
    with pytest.raises(InputError, match="stages = 3: the pool has 2 workers"):
        train(replace(SMALL, stages=3), TEXT, two_workers)


def test_the_oracle_is_equal_whatever_number_of_threads_its_process_uses(two_workers):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        config = replace(SMALL, sequences=8, model=GPTConfig(layers=2, width=64, heads=4, context=64), steps=2)
        oracle = train_oracle(config, TEXT)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert largest_difference(train(config, TEXT, two_workers).snapshots, oracle.snapshots) == (0.0, "")
