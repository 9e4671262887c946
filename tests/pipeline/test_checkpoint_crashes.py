"""Crashes around a save: a kill -9 costs the steps since the last checkpoint, never a checkpoint."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pipeline.engine.checkpoint import complete_checkpoints, folder_of, latest_checkpoint, read_manifest
from pipeline.engine.job import Checkpoints
from pipeline.errors import RunError
from pipeline.oracle import largest_difference
from tests.pipeline.toys import Rows, optimizer, toy_job

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]


def test_a_worker_killed_in_flight_costs_the_steps_since_the_last_checkpoint(two_workers, tmp_path):
    job = toy_job(optimizer=optimizer("adamw", "error-feedback"), steps=40)
    whole = two_workers.run(job)
    pids = two_workers.pids

    def kill(k: int, loss: float) -> None:
        if k == 17:
            os.kill(pids[0], signal.SIGKILL)

    saving = replace(job, checkpoints=Checkpoints(str(tmp_path), 5))
    with pytest.raises(RunError, match=r"stage 0 of 2, step \d+: the worker was killed by SIGKILL"):
        two_workers.run(saving, kill)
    last = latest_checkpoint(tmp_path)
    assert last in [folder_of(tmp_path, step) for step in (15, 20, 25, 30, 35)]
    two_workers.restart()
    rest = two_workers.run(replace(saving, resume=str(last)))
    assert rest.losses == whole.losses
    assert largest_difference(rest.snapshots, whole.snapshots) == (0.0, "")
    assert [step for step, _ in complete_checkpoints(tmp_path)] == [35, 40]


@pytest.mark.slow
def test_kills_at_random_moments_leave_a_checkpoint_that_loads(two_workers, tmp_path):
    job = toy_job(steps=400, optimizer=optimizer("adamw"), checkpoints=Checkpoints(str(tmp_path), 1))
    whole = two_workers.run(replace(job, checkpoints=None))
    resume, done, kills = None, 0, 0
    while kills < 10:
        victim = two_workers.pids[os.urandom(1)[0] % 2]
        rest = (3 + os.urandom(1)[0] / 32) * 0.15
        began = threading.Event()
        killer = threading.Thread(target=lambda v=victim, r=rest, b=began: (b.wait(60), time.sleep(r), _kill(v)))
        killer.start()
        try:
            two_workers.run(replace(job, resume=resume), lambda k, loss, b=began: b.set())
        except RunError:
            kills += 1
        killer.join()
        folder = latest_checkpoint(tmp_path)
        step = read_manifest(folder)["step"]
        assert step >= done
        done, resume = step, str(folder)
        if two_workers.pids:
            break  # it was over before the kill
        two_workers.restart()
    assert kills >= 5
    # At the next start nothing of an interrupted save is left, and the run goes on.
    more = min(done + 2, job.steps)
    rest = two_workers.run(replace(job, steps=more, resume=resume)) if more > done else None
    assert rest is None or rest.losses == whole.losses[:more]
    assert list(tmp_path.glob("*.tmp")) == []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@dataclass(frozen=True)
class FullDisk:
    """From microbatch ``at`` on this process cannot write files beyond a limit, as on a disk that is full."""

    inner: Any
    at: int
    limit: int = 512
    _done: list[bool] = field(default_factory=list)

    def microbatch(self, j: int) -> Any:
        if j >= self.at and not self._done:
            self._done.append(True)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))
        return self.inner.microbatch(j)


def test_a_full_disk_is_reported_and_the_earlier_checkpoint_loads(two_workers, tmp_path):
    job = toy_job(checkpoints=Checkpoints(str(tmp_path), 4))
    with pytest.raises(RunError) as caught:
        two_workers.run(replace(job, data=FullDisk(Rows(), 14)))
    assert f"checkpoint {str(folder_of(tmp_path, 8))!r} cannot be written (File too large)" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert latest_checkpoint(tmp_path) == folder_of(tmp_path, 4)
    two_workers.restart()
    whole = two_workers.run(replace(job, checkpoints=None))
    rest = two_workers.run(replace(job, resume=str(latest_checkpoint(tmp_path))))
    assert rest.losses == whole.losses
    assert largest_difference(rest.snapshots, whole.snapshots) == (0.0, "")
    assert list(tmp_path.glob("*.tmp")) == []
