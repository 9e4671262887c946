"""The same run under torchrun: same files, one line for bad input, and restarts that lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pipeline.errors import InputError
from pipeline.train import Launch

ROOT = Path(__file__).resolve().parents[2]
SMALL = "--width 16 --heads 2 --context 16 --sequences 2".split() + ["--corpus", str(ROOT / "README.md")]
LIMIT = 150


def torchrun(folder: Path, *words: str, restarts: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    return subprocess.Popen(
        [*command, "-m", "pipeline.train", *SMALL, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "weights.pt", weights_only=True)


def rows(folder: Path) -> list[str]:
    path = folder / "steps.jsonl"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_killed_rank_is_restarted_and_the_run_ends_as_if_nothing_had_happened(tmp_path, train_in_process):
    settings = "--steps 150 --checkpoint-every 20 --optimizer muon --correction error-feedback".split()
    process = torchrun(tmp_path, *settings, "--out", "killed", "--json", restarts=1)
    deadline = time.monotonic() + LIMIT
    while len(rows(tmp_path / "killed")) < 50:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    out, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, errors[-3000:]
    summary = json.loads(out)
    assert summary["restarts"] == 1
    assert summary["resumed_from"] >= 40 and summary["resumed_from"] % 20 == 0
    assert json.loads((tmp_path / "killed" / "status.json").read_text())["state"] == "complete"
    # The uninterrupted run, on workers of our own.
    done = train_in_process(*SMALL, *settings, "--out", str(tmp_path / "whole"), "--json")
    assert done.returncode == 0, done.stderr
    a, b = weights(tmp_path / "killed"), weights(tmp_path / "whole")
    assert set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
    assert summary["losses"] == json.loads(done.stdout)["losses"]


@pytest.mark.processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_without_restarts_a_killed_rank_ends_the_run_and_marks_it(tmp_path):
    process = torchrun(tmp_path, "--steps", "100000", "--out", "run")
    deadline = time.monotonic() + LIMIT
    while len(rows(tmp_path / "run")) < 5:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "pipeline.train: error: stage 0 of 2, step " in errors
    assert not any(os.path.exists(f"/proc/{rank}") for rank in ranks)
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["state"] == "failed" and status["error"].startswith("stage 0 of 2, step ")


@pytest.mark.processes
def test_bad_input_is_one_line_and_does_not_touch_an_earlier_run(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    process = torchrun(tmp_path, "--steps", "2", "--out", "out")
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert "pipeline.train: error: out: 'out' is not empty" in errors
    assert "pipeline/train.py" not in errors  # torchrun prints a traceback, of its own
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


ENVIRONMENT = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


def test_what_the_launcher_says():
    launch = Launch.read(ENVIRONMENT | {"TORCHELASTIC_RESTART_COUNT": "2"})
    assert (launch.rank, launch.ranks, launch.local_rank, launch.local_ranks, launch.attempt) == (1, 4, 1, 2, 2)
    assert not launch.one_node
    assert Launch.read({"RANK": "0", "WORLD_SIZE": "2"}).one_node


@pytest.mark.parametrize(
    ("change", "message"),
    [({"RANK": None}, "RANK is not set: start with torchrun"), ({"WORLD_SIZE": "two"}, "WORLD_SIZE = 'two'")],
)
def test_a_missing_launcher_is_one_line(change, message):
    environment = {k: v for k, v in (ENVIRONMENT | change).items() if v is not None}
    with pytest.raises(InputError, match=message):
        Launch.read(environment)


def test_without_a_launcher_the_module_ends_with_exit_code_2(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.train"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        "pipeline.train: error: RANK is not set: start with torchrun, or use staleproof train\n"
    )
