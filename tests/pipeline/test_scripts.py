"""The API in users' scripts and surroundings: main guards, stdin, Ctrl-C, another launcher's variables, names."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.engine.pool import RunResult, WorkerPool
from pipeline.errors import InputError
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of, run_job
from tests.pipeline.toys import toy_job

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **changes}


def script(tmp_path: Path, body: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(body), encoding="utf-8")
    return str(path)


def outcome(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    env = environment(**options.pop("env", {}))
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=SECONDS, **options)


def local_layers() -> Any:
    def build() -> list[Any]:
        return []

    return build


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": lambda output, target: (output - target).sum()}, "loss = <lambda>: cannot be sent to a worker"),
        ({"layers": local_layers()}, "layers = local_layers.<locals>.build: cannot be sent to a worker process"),
        ({"optimizer": functools.partial(lambda named: None)}, "optimizer = partial: cannot be sent to a worker"),
        ({"data": SimpleNamespace(microbatch=lambda j: j)}, "data = SimpleNamespace: cannot be sent to a worker"),
    ],
)
def test_what_cannot_be_sent_is_named_before_a_process_starts(monkeypatch, changes, message):
    monkeypatch.setattr(WorkerPool, "__init__", lambda *_: pytest.fail("a pool was made"))
    with pytest.raises(InputError) as caught:
        run_job(toy_job(**changes))
    assert message in str(caught.value) and "top level" in str(caught.value) and "\n" not in str(caught.value)


OWN_MODEL = """
    import torch
    from torch import nn
    from pipeline.run import run_job
    from tests.pipeline.toys import toy_job

    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4).double()

        def forward(self, x):
            return self.inner(x).sin()

    def layers():
        return [Mine(), Mine()]

    {guard}
        print(len(run_job(toy_job(layers=layers, steps=3)).losses), "steps")
"""


def test_a_model_defined_in_a_script_runs_whatever_the_launcher_left(tmp_path):
    # Rendezvous variables of an outer launcher, and another hash seed in each process.
    left = {
        "MASTER_ADDR": "no.such.host",
        "MASTER_PORT": "1",
        "RANK": "7",
        "LOCAL_RANK": "7",
        "WORLD_SIZE": "64",
        "PYTHONHASHSEED": "random",
    }
    words = [sys.executable, script(tmp_path, OWN_MODEL.format(guard='if __name__ == "__main__":'))]
    done = outcome(words, env=left)
    assert (done.returncode, done.stdout) == (0, "3 steps\n"), done.stderr


def test_a_script_without_a_main_guard_ends_with_a_hint(tmp_path):
    began = time.monotonic()
    done = outcome([sys.executable, script(tmp_path, OWN_MODEL.format(guard="if True:"))])
    assert done.returncode == 1
    assert "start training under if __name__ == '__main__'" in done.stderr
    assert "does the script start its training under if __name__ == '__main__':?)" in done.stderr
    assert time.monotonic() - began < SECONDS


@pytest.mark.slow
def test_a_script_from_stdin_runs_what_modules_define(tmp_path):
    text = "from pipeline.run import run_job\nfrom tests.pipeline.toys import toy_job\n"
    done = outcome([sys.executable, "-"], input=text + "print(len(run_job(toy_job(steps=3)).losses))", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    own = text + "def layers(): return []\nrun_job(toy_job(layers=layers))"
    done = outcome([sys.executable, "-"], input=own, cwd=tmp_path)
    assert "InputError: layers = layers: defined at a prompt" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_host_name_that_nobody_resolves(tmp_path):
    words = ["unshare", "--uts", "sh", "-c", 'hostname no-such-host.invalid && exec "$@"', "sh"]
    if shutil.which("unshare") is None or shutil.which("hostname") is None:
        pytest.skip("no unshare or hostname on this machine")
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("a name space of host names is not allowed here")
    path = script(tmp_path, OWN_MODEL.format(guard='if __name__ == "__main__":'))
    done = outcome([*words, sys.executable, path])
    assert (done.returncode, done.stdout) == (0, "3 steps\n"), done.stderr


@pytest.mark.slow
def test_two_runs_at_once_do_not_meet(two_workers):
    jobs = [toy_job(steps=60), toy_job("pipedream", m=1, steps=60, seed=4)]
    results: dict[int, RunResult] = {}

    def run(i: int, pool: WorkerPool) -> None:
        results[i] = pool.run(jobs[i])

    with WorkerPool(2, device="cpu") as other:
        threads = [threading.Thread(target=run, args=(i, pool)) for i, pool in enumerate((two_workers, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    for i, job in enumerate(jobs):
        assert largest_difference(results[i].snapshots, oracle_of(job).snapshots) == (0.0, "")


LONG = """
    from pipeline.engine.pool import WorkerPool
    from tests.pipeline.toys import toy_job

    if __name__ == "__main__":
        with WorkerPool(2, device="cpu") as pool:
            print(*pool.pids, flush=True)
            pool.run(toy_job(steps=10**6), lambda k, loss: k == 20 and print("running", flush=True))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to look for processes")
def test_ctrl_c_ends_a_script_and_its_workers(tmp_path):
    process = subprocess.Popen(
        [sys.executable, script(tmp_path, LONG)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    try:
        assert len(pids) == 2 and process.stdout.readline() == "running\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, stderr = process.communicate(timeout=30)
        assert stderr.splitlines()[-1] == "KeyboardInterrupt"
        assert stderr.count("Traceback") == 1  # the workers say nothing
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    finally:
        process.kill()


def test_another_number_of_stages_leaves_the_pool_alive(two_workers):
    with pytest.raises(InputError, match="stages = 3: the pool has 2 workers"):
        two_workers.run(toy_job(stages=3))
    assert len(two_workers.run(replace(toy_job(), steps=2)).losses) == 2
