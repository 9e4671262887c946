"""Many asynchronous runs in a row on layers of random speed, and messages of 16 bytes and of 16 MB: none hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipeline.engine.job import Job
from pipeline.engine.pool import WorkerPool
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of
from tests.pipeline.toys import Constant, scale_layers, sleepy_layers, toy_job

pytestmark = pytest.mark.processes

SECONDS = 60  # far more than a run takes; only a hang comes near


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """End the test process, with the stacks of its threads, if what is inside does not end."""
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def jobs(S: int) -> list[Job]:
    slow, steps = functools.partial(sleepy_layers, True), {"steps": 4, "snapshot_every": 1}
    return [
        toy_job("pipedream-2bw", S, max(1, S - 1), layers=slow, **steps),
        toy_job("pipedream", S, 1, layers=slow, **steps),
        toy_job("uniform", S, 1, layers=slow, options={"tau": S}, clip=0.3, **steps),
        toy_job("1f1b", S, 2, layers=slow, clip=0.3, **steps),
        toy_job("pipedream-2bw", S, 4, layers=slow, clip=0.3, **steps),
    ]


def soak(pool: WorkerPool, runs: int) -> None:
    made, expected = jobs(pool.stages), []
    for job in made:
        with no_hang():
            expected.append(pool.run(replace(job, layers=functools.partial(sleepy_layers, False))))
        gap, place = largest_difference(expected[-1].snapshots, oracle_of(job).snapshots)
        assert gap <= (1e-14 if job.clip else 0.0), place  # squares of a norm are added up in another order
    for i in range(runs):
        with no_hang():
            found = pool.run(made[i % len(made)])
        plain = expected[i % len(made)]
        assert largest_difference(found.snapshots, plain.snapshots) == (0.0, ""), i
        assert (found.losses, found.norms) == (plain.losses, plain.norms), i


def test_fifty_runs_of_random_speed_are_equal_and_end(workers):
    soak(workers(3), 50)


@pytest.mark.slow
@pytest.mark.parametrize("S", [2, 4])
def test_so_are_runs_at_other_depths(workers, S):
    soak(workers(S), 50)


@pytest.mark.parametrize("width", [4, pytest.param(4 << 20, marks=pytest.mark.slow)])  # 16 bytes, 16 MB
@pytest.mark.parametrize("schedule", ["pipedream-2bw", "1f1b"])
def test_small_and_large_messages_arrive(workers, width, schedule):
    job = toy_job(schedule, 3, 2, layers=scale_layers, data=Constant(width), steps=3)
    for _ in range(2):
        with no_hang():
            engine = workers(3).run(job)
        oracle = oracle_of(job)
        assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, "")
        assert engine.losses == oracle.losses
