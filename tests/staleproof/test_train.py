"""`staleproof train` on real worker processes: its JSON, its files, and what a killed worker leaves behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.processes

TEXT = str(Path(__file__).resolve().parents[2] / "README.md")
SMALL = ("--corpus", TEXT, "--width", "16", "--heads", "2", "--context", "16", "--sequences", "2")


@pytest.mark.parametrize(
    ("schedule", "delay"),
    [("1f1b", [0, 0]), ("pipedream", [1, 0]), ("pipedream-2bw", [1, 1]), ("uniform", [1, 1])],
)
def test_every_schedule_equals_the_oracle(staleproof: Run, schedule, delay):
    done = staleproof("train", "--schedule", schedule, "--steps", "4", "--check-oracle", "--json", *SMALL, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["max_abs_diff"] == 0.0
    assert result["optimizer_step_delay"] == delay
    m = result["microbatches"]
    assert sum(result["delay_histogram"].values()) == 4 * m * 2
    assert result["delay_histogram"]["0"] >= m
    assert len(result["losses"]) == 4


def test_files_of_a_run(staleproof: Run, tmp_path: Path):
    done = staleproof("train", "--steps", "3", "--out", "run", *SMALL, timeout=120)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    assert json.loads((run / "status.json").read_text())["state"] == "complete"
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert [row["loss"] for row in rows] == json.loads((run / "run.json").read_text())["losses"]
    events = json.loads((run / "events.json").read_text())["events"]
    assert {event["kind"] for event in events} == {"forward", "backward", "step"}
    trace = json.loads((run / "trace.json").read_text())["traceEvents"]
    assert sum(entry["ph"] == "X" for entry in trace) == len(events)
    timing = json.loads((run / "run.json").read_text())["timing"]
    assert timing["seconds_per_step"] > 0 and 0 < timing["utilisation"] < 1
    assert timing["bubble"] == pytest.approx(1 - timing["utilisation"])
    again = staleproof("train", "--steps", "3", "--out", "run", *SMALL, timeout=60)
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_a_port_in_use_is_one_line(staleproof: Run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = staleproof("train", "--steps", "2", "--port", port, *SMALL, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"staleproof train: error: port = {port} is in use")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_killed_worker_keeps_the_rows_and_marks_the_run(tmp_path: Path):
    command = [sys.executable, "-m", "staleproof", "train", "--steps", "100000", "--out", str(tmp_path / "run"), *SMALL]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    rows = tmp_path / "run" / "steps.jsonl"
    deadline = time.monotonic() + 60
    while not (rows.exists() and len(rows.read_text().splitlines()) >= 5):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    assert len(workers) == 2
    os.kill(workers[1], signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "was killed by SIGKILL" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["state"] == "failed"
    assert "SIGKILL" in status["error"]
    assert len(rows.read_text().splitlines()) >= 5
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_diverged_run_is_a_failed_run(staleproof: Run, tmp_path: Path):
    done = staleproof("train", "--lr", "1e30", "--steps", "4", "--out", "run", *SMALL, timeout=120)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("staleproof train: the run diverged")
    refused = staleproof("report", "run", timeout=60)
    assert refused.returncode == 2
    assert "was written by staleproof train" in refused.stderr
