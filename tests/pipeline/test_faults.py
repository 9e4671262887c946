"""Failures of real worker processes: the first error is named with stage and step, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pipeline.engine.pool import WorkerPool
from pipeline.errors import InputError, RunError
from pipeline.models.gpt import GPTConfig
from pipeline.training import TrainConfig

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]

TEXT = bytes(range(32, 127)) * 60
CONFIG = TrainConfig(steps=40, sequences=1, model=GPTConfig(layers=2, width=8, heads=2, context=8))


@dataclass(frozen=True)
class FailingData:
    """Data that ends the process at one microbatch, on the stages that ask for it."""

    inner: Any
    at: int
    how: str

    def microbatch(self, j: int) -> Any:
        if j == self.at:
            if self.how == "exit":
                sys.exit(5)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.microbatch(j)


def gone(pids: list[int], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", r"stage [01] of 2, step \d+: SystemExit: 5"),
        ("kill", r"stage [01] of 2, step \d+: the worker was killed by SIGKILL"),
    ],
)
def test_the_first_error_is_what_the_user_reads(how, message):
    job = CONFIG.job(TEXT)
    with pytest.raises(RunError, match=message) as caught, WorkerPool(2, device="cpu") as pool:
        pids = pool.pids
        pool.run(replace(job, data=FailingData(job.data, 20, how)))
    assert "\n" not in str(caught.value)
    assert gone(pids)


def test_a_killed_worker_is_named_and_the_pool_starts_again():
    with WorkerPool(2, device="cpu") as pool:
        pids = pool.pids

        def kill(k: int, loss: float) -> None:
            if k == 5:
                os.kill(pids[1], signal.SIGKILL)

        with pytest.raises(RunError, match=r"stage 1 of 2, step \d+: the worker was killed by SIGKILL"):
            pool.run(CONFIG.job(TEXT), kill)
        assert gone(pids)
        with pytest.raises(RunError, match=r"the pool's workers have ended: restart\(\) starts them again"):
            pool.run(CONFIG.job(TEXT))
        pool.restart()
        assert len(pool.run(replace(CONFIG, steps=2).job(TEXT)).losses) == 2
        pids = pool.pids
    assert gone(pids)


def test_a_layer_that_raises_is_reported_without_torch_wrapping():
    with pytest.raises(RunError, match=r"stage \d of 2, step 0: IndexError"), WorkerPool(2, device="cpu") as pool:
        job = CONFIG.job(TEXT)
        pool.run(replace(job, data=replace(job.data, context=9)))  # one byte more than the model's positions


def test_a_port_in_use_is_refused_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port = {port} is in use"):
            WorkerPool(2, device="cpu", port=port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_impossible_port_is_refused(port):
    with pytest.raises(InputError, match=f"port = {port}: allowed are 1 to 65535"):
        WorkerPool(2, device="cpu", port=port)


ORPHAN_MAKER = """
import sys, time
from pipeline.engine.pool import WorkerPool
if __name__ == "__main__":
    with WorkerPool(2, device="cpu") as pool:
        print(*pool.pids, flush=True)
        time.sleep(60)
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(ORPHAN_MAKER, encoding="utf-8")
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(pids)


def test_a_callback_that_raises_ends_the_job_and_not_the_next(two_workers):
    def stop(k: int, loss: float) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        two_workers.run(CONFIG.job(TEXT), stop)
    two_workers.restart()
    assert len(two_workers.run(replace(CONFIG, steps=7).job(TEXT)).losses) == 7


def test_an_error_that_was_raised_from_another_is_the_one_that_is_read(two_workers):
    job, pids = CONFIG.job(TEXT), two_workers.pids
    message = r"stage \d of 2, step \d+: ValueError: record 3 of the shard is broken"
    with pytest.raises(RunError, match=message) as caught:
        two_workers.run(replace(job, data=Chained(job.data)))
    assert "\n" not in str(caught.value)
    assert gone(pids)


@dataclass(frozen=True)
class Chained:
    """Data whose error has a cause of its own."""

    inner: Any

    def microbatch(self, j: int) -> Any:
        try:
            return {}[j] if j == 3 else self.inner.microbatch(j)
        except KeyError as error:
            raise ValueError("record 3 of the shard is broken") from error
