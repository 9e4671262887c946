"""What a stage can do wrong, where and how: the first error is named with stage and step, and no process stays."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from pipeline.errors import RunError
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of
from tests.pipeline.toys import (
    Rows,
    fragile_layers,
    fragile_sgd,
    hurt,
    shrinking_layers,
    toy_job,
    turned_layers,
)

pytestmark = pytest.mark.processes

SAYS = {
    "raise": "ValueError: bad record 17",
    "exit": "SystemExit: 5",
    "quit": "the worker ended with exit code 0",
    "kill": "the worker was killed by SIGKILL",
}


def gone(pids: list[int], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@dataclass(frozen=True)
class BadRecord:
    inner: Any
    at: int
    how: str

    def microbatch(self, j: int) -> Any:
        if j == self.at:
            hurt(self.how)
        return self.inner.microbatch(j)


@dataclass(frozen=True)
class OtherShape:
    """One row less, or another type, from microbatch ``at`` on."""

    inner: Any
    at: int
    what: str

    def microbatch(self, j: int) -> Any:
        x, y = self.inner.microbatch(j)
        if j < self.at:
            return x, y
        return {"inputs": (x[1:], y), "targets": (x, y[1:]), "both": (x[1:], y[1:]), "dtype": (x.float(), y)}[self.what]


def failing(place: str, how: str, stages: int, stage: int) -> Any:
    """A job whose stage ``stage`` fails at ``place``; four layers in ``stages`` stages."""
    job = toy_job(stages=stages)
    layer = (4 * stage) // stages
    if place == "optimizer":
        return replace(job, optimizer=functools.partial(fragile_sgd, layer=layer, how=how))
    if place == "data":
        return replace(job, data=BadRecord(job.data, 9, how))
    return replace(job, layers=functools.partial(fragile_layers, layer, place, how))


PLACES = [
    (2, 0, "backward", "raise"),
    (2, 1, "optimizer", "raise"),
    (3, 1, "backward", "raise"),
    *(
        pytest.param(S, s, place, how, marks=pytest.mark.slow)
        for S, s, place, how in [
            (2, 0, "forward", "raise"),
            (2, 1, "forward", "exit"),
            (2, 0, "forward", "quit"),
            (2, 1, "forward", "kill"),
            (2, 1, "backward", "exit"),
            (2, 0, "backward", "kill"),
            (2, 0, "optimizer", "exit"),
            (2, 0, "optimizer", "kill"),
            (2, 0, "data", "raise"),
            (2, 0, "data", "exit"),
            (3, 1, "forward", "raise"),
            (3, 1, "optimizer", "exit"),
            (3, 1, "forward", "kill"),
            (3, 2, "backward", "kill"),
        ]
    ),
]


@pytest.mark.parametrize(("S", "s", "place", "how"), PLACES)
def test_the_stage_and_its_first_error_are_named(workers, S, s, place, how):
    job = failing(place, how, S, s)
    stage = r"\d" if place == "data" else s  # first and last stage ask for the same record
    message = rf"^stage {stage} of {S}, step \d+: {SAYS[how]}"
    pool = workers(S)
    pids = pool.pids
    with pytest.raises(RunError, match=message) as caught:
        pool.run(job)
    assert "\n" not in str(caught.value)
    assert gone(pids)
    with pytest.raises(RunError, match=r"the pool's workers have ended: restart\(\)"):
        pool.run(job)


def tokens(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(output, target)


@dataclass(frozen=True)
class BadLabel:
    """Four classes, and a label 4 in microbatch 9."""

    inner: Any

    def microbatch(self, j: int) -> Any:
        x, _ = self.inner.microbatch(j)
        return x, torch.tensor([1, 4 if j == 9 else 2])


def test_a_label_out_of_range_is_an_error_of_the_last_stage(two_workers):
    with pytest.raises(RunError, match=r"^stage 1 of 2, step 4: IndexError: Target 4 is out of bounds"):
        two_workers.run(toy_job(data=BadLabel(Rows()), loss=tokens))


SHAPES = {
    "inputs": r"^inputs of microbatch 9 are torch\.float64 \(1, 4\), those of the first",
    "targets": r"^targets of microbatch 9 are torch\.float64 \(1, 4\), those of the first are torch\.float64 \(2, 4\)",
    "both": r"^inputs of microbatch 9 are torch\.float64 \(1, 4\)",
    "dtype": r"^inputs of microbatch 9 are torch\.float32 \(2, 4\), those of the first are torch\.float64 \(2, 4\)",
}


@pytest.mark.parametrize("what", SHAPES)
def test_a_microbatch_of_another_shape_is_refused_by_name(alone, what):
    with pytest.raises(RunError, match=SHAPES[what]):
        alone(toy_job(stages=1, data=OtherShape(Rows(), 9, what)))


def test_an_output_of_another_shape_is_not_sent(two_workers):
    message = (
        r"^stage 0 of 2, step \d+: RunError: output of microbatch \d+ is torch\.float64 \(1, 4\), that of the first is "
        r"torch\.float64 \(2, 4\): all outputs of a stage must be alike"
    )
    with pytest.raises(RunError, match=message):
        two_workers.run(toy_job(layers=functools.partial(shrinking_layers, 1)))


@pytest.mark.slow
def test_an_output_of_another_shape_on_a_middle_hop_is_not_sent(workers):
    with pytest.raises(RunError, match="^stage 1 of 3, .* must be alike"):
        workers(3).run(toy_job(stages=3, layers=functools.partial(shrinking_layers, 1)))


@pytest.mark.parametrize("schedule", ["pipedream-2bw", "pipedream"])
def test_views_that_are_not_contiguous_arrive_as_they_are(two_workers, schedule):
    job = toy_job(schedule, layers=turned_layers, data=Rows(rows=4), snapshot_every=1)
    engine, oracle = two_workers.run(job), oracle_of(job)
    assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, "")
    assert engine.losses == oracle.losses
