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
import torch

from pipeline.events import as_columns, from_columns

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
TEXT = str(ROOT / "README.md")
SMALL = ("--corpus", TEXT, "--width", "16", "--heads", "2", "--context", "16", "--sequences", "2")


@pytest.fixture
def train(train_in_process: Run) -> Run:
    """`staleproof train` in this process, on workers that tests share."""
    return train_in_process


@pytest.fixture(scope="module")
def finished(staleproof_in: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three steps without checkpoints, by a process of its own; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("finished")
    done = staleproof_in(folder, "train", "--steps", "3", "--out", "run", *SMALL)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.mark.parametrize(
    ("schedule", "delay"),
    [("1f1b", [0, 0]), ("pipedream", [1, 0]), ("pipedream-2bw", [1, 1]), ("uniform", [1, 1])],
)
def test_every_schedule_equals_the_oracle(train: Run, schedule, delay):
    done = train("--schedule", schedule, "--steps", "4", "--check-oracle", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["max_abs_diff"] == 0.0
    assert result["optimizer_step_delay"] == delay
    m = result["microbatches"]
    assert sum(result["delay_histogram"].values()) == 4 * m * 2
    assert result["delay_histogram"]["0"] >= m
    assert len(result["losses"]) == 4


def test_files_of_a_run(finished: Path, in_process: Run):
    run = finished
    assert json.loads((run / "status.json").read_text())["state"] == "complete"
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert [row["loss"] for row in rows] == json.loads((run / "run.json").read_text())["losses"]
    columns = json.loads((run / "events.json").read_text())["columns"]
    events = from_columns(columns)
    assert {event.kind for event in events} == {"forward", "backward", "step"}
    assert as_columns(events) == columns
    trace = json.loads((run / "trace.json").read_text())["traceEvents"]
    assert sum(entry["ph"] == "X" for entry in trace) == len(events)
    timing = json.loads((run / "run.json").read_text())["timing"]
    assert timing["seconds_per_step"] > 0 and 0 < timing["utilisation"] < 1
    assert timing["bubble"] == pytest.approx(1 - timing["utilisation"])
    again = in_process("train", "--steps", "3", "--out", str(run), *SMALL)
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_a_port_in_use_is_one_line(in_process: Run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = in_process("train", "--steps", "2", "--port", port, *SMALL)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"staleproof train: error: port = {port} is in use")
    assert "Traceback" not in done.stderr


def test_a_diverged_run_is_a_failed_run(train: Run, in_process: Run, tmp_path: Path):
    done = train("--lr", "1e30", "--steps", "4", "--out", "run", *SMALL)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("staleproof train: the run diverged")
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["state"] == "diverged" and f"at step {status['diverged_at']}" in status["error"]
    refused = in_process("report", "run")
    assert refused.returncode == 2
    assert "was written by staleproof train" in refused.stderr


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "weights.pt", weights_only=True)


def killed(folder: Path, *words: str, rows: int, rank: int) -> tuple[str, list[int]]:
    """Start a run in ``folder`` and kill worker ``rank`` after so many rows: (stderr of the run, its workers)."""
    command = [sys.executable, "-m", "staleproof", "train", *words, "--out", str(folder), *SMALL]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    written = folder / "steps.jsonl"
    deadline = time.monotonic() + 90
    while not (written.exists() and len(written.read_text().splitlines()) >= rows):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    assert len(workers) == 2
    os.kill(workers[rank], signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    return errors, workers


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_killed_run_says_so_and_is_resumed_bit_for_bit(staleproof: Run, train: Run, tmp_path: Path):
    settings = ("--steps", "120", "--checkpoint-every", "10", "--correction", "error-feedback", "--dropout", "0.1")
    run = tmp_path / "run"
    errors, workers = killed(run, *settings, rows=25, rank=1)
    assert "was killed by SIGKILL" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    status = json.loads((run / "status.json").read_text())
    assert status["state"] == "failed"
    assert "SIGKILL" in status["error"]
    assert len((run / "steps.jsonl").read_text().splitlines()) >= 25
    assert not (run / "run.json").exists()
    done = staleproof("train", "--resume", "--out", "run", "--json", timeout=120)
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)
    assert resumed["resumed_from"] >= 10
    whole = train(*settings, "--out", str(tmp_path / "whole"), "--json", *SMALL)
    assert whole.returncode == 0, whole.stderr
    a, b = weights(run), weights(tmp_path / "whole")
    assert set(a) == set(b) and all(torch.equal(a[name], b[name]) for name in a)
    rows = [(tmp_path / name / "steps.jsonl").read_text() for name in ("run", "whole")]
    assert rows[0] == rows[1]
    assert resumed["losses"] == json.loads(whole.stdout)["losses"]
    for words, message in (
        (("--width", "32"), "width = 32: the run in 'run' has 16"),
        (("--lr", "0.5"), "lr = 0.5: the run in 'run' was started without it; leave it out"),
        (("--overwrite",), "overwrite: not with --resume"),
        ((), "steps = 120: the checkpoint has 120 steps done"),
    ):
        refused = train("--resume", "--out", "run", *words)
        assert refused.returncode == 2, words
        assert message in refused.stderr.splitlines()[-1]
    assert json.loads((run / "status.json").read_text())["state"] == "complete"


def test_a_2bw_run_goes_on_at_another_number_of_stages(train: Run, tmp_path: Path):
    out = str(tmp_path / "run")
    first = train("--steps", "6", "--checkpoint-every", "3", "--microbatches", "4", "--out", out, *SMALL)
    assert first.returncode == 0, first.stderr
    done = train("--resume", "--out", out, "--steps", "9", "--stages", "4", "--check-oracle", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["stages"], summary["resumed_from"], summary["max_abs_diff"]) == (4, 6, 0.0)
    assert len(summary["losses"]) == 9


def test_resume_without_a_run_or_a_checkpoint(finished: Path, in_process: Run, monkeypatch):
    none = in_process("train", "--resume", "--out", "nothing")
    assert none.returncode == 2 and "has no status.json of a training run" in none.stderr
    monkeypatch.chdir(finished.parent)
    before = sorted(path.name for path in finished.iterdir())
    unsaved = in_process("train", "--resume", "--out", "run", "--steps", "4")
    assert unsaved.returncode == 2 and "no complete checkpoint in 'run/checkpoints'" in unsaved.stderr
    assert sorted(path.name for path in finished.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ("--tied", "--clip", "0.5", "--dtype", "float64", "--recompute", "--dropout", "0.2"),
        ("--clip", "0.5", "--schedule", "1f1b", "--dtype", "float64"),
    ],
)
def test_reordered_sums_equal_the_oracle_to_round_off(train: Run, words):
    done = train("--steps", "5", "--check-oracle", "--json", *words, *SMALL)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["allowed_diff"] == 1e-13
    assert summary["max_relative_diff"] <= 1e-13
    assert len(summary["gradient_norms"]) == 5 and all(norm > 0.5 for norm in summary["gradient_norms"])


def test_a_masked_encoder_in_low_precision_equals_the_oracle(train: Run):
    words = ("--model", "bert", "--dtype", "bfloat16", "--optimizer", "muon", "--correction", "error-feedback")
    done = train("--steps", "5", "--check-oracle", "--json", *words, *SMALL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["max_abs_diff"] == 0.0


def test_the_loss_at_the_newest_weights(train: Run):
    words = ("--steps", "6", "--newest-loss-every", "2", "--dropout", "0.1", "--json", *SMALL)
    for schedule in ("1f1b", "pipedream-2bw"):
        done = train("--schedule", schedule, *words)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        used = {k: summary["losses"][int(k)] for k in summary["newest_losses"]}
        assert list(used) == ["2", "4"]
        # A synchronous run reads the newest weights; a delayed one does not.
        assert (summary["newest_losses"] == used) is (schedule == "1f1b")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--clip", "1", "--schedule", "pipedream"), "clip = 1.0: allowed where a microbatch reads one weight version"),
        (("--tied", "--schedule", "pipedream"), "tied = True: allowed where a microbatch reads one weight version"),
        (("--clip", "1", "--check-oracle"), "dtype = 'float32': allowed is float64"),
        (("--dropout", "1"), "'1' is not allowed; give a number of at least 0 and below 1"),
        (("--model", "llama"), "model = 'llama': allowed are gpt, bert"),
        (("--checkpoint-every", "2"), "checkpoint-every: needs --out DIR"),
        (("--resume",), "resume: needs --out DIR"),
        (("--transport", "nccl", "--device", "cpu"), "transport = 'nccl': needs one GPU for each of the 2 stages"),
    ],
)
def test_bad_input_is_one_line(in_process: Run, words, message):
    done = in_process("train", *words, *SMALL)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr
