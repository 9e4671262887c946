"""The section loop: what is on disk, the verdict and the exit code, whatever a section does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = str(HERE / "fake_sections.py")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **more}


def verify(folder: Path, plan: dict[str, str], *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, json.dumps(plan), "verify", "--out", str(folder), *words],
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_all_hold(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = verify(out, {"delays": "holds", "training": "corpus"}, "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert "Verdict: holds" in done.stdout and str(out / "report.html") in done.stdout
    status = read(out, "status.json")
    assert status["state"] == "complete" and status["error"] is None and status["finished"]
    assert status["seed"] == 7 and status["preset"] == "quick" and status["schema"] == 1
    assert status["sections"] == {"delays": "complete", "training": "complete"}
    assert status["corpus"] == {"name": "text", "bytes": 3}
    assert status["command"].startswith("staleproof verify --out ")
    assert {"python", "torch", "numpy", "staleproof"} <= set(status["versions"])
    assert read(out, "training.json") == {"x": 1}
    assert read(out, "claims.json")["verdict"] == "holds"
    assert sorted(path.name for path in out.iterdir()) == [
        "claims.json",
        "delays.json",
        "report.html",
        "status.json",
        "training.json",
    ]


def test_a_failing_claim_is_named_with_value_and_place(tmp_path: Path) -> None:
    done = verify(tmp_path / "out", {"delays": "fails", "training": "holds"})
    assert done.returncode == 1
    line = next(line for line in done.stderr.splitlines() if "claim failed" in line)
    assert line == "claim failed: delays is exact: value 1.0, limit 0.0 at step 7 of tau=2"
    assert "Verdict: fails" in done.stdout
    rows = [line for line in done.stdout.splitlines() if "is exact" in line]
    assert rows[0].startswith("fails") and rows[1].startswith("holds")
    assert read(tmp_path / "out", "status.json")["state"] == "complete"


@pytest.mark.parametrize("what", ["missing", "nothing"])
def test_nothing_shown_is_not_success(tmp_path: Path, what: str) -> None:
    done = verify(tmp_path / "out", {"delays": what})
    assert done.returncode == 1
    assert read(tmp_path / "out", "claims.json")["verdict"] == "incomplete"


@pytest.mark.parametrize(
    ("what", "code", "message"),
    [
        ("input-error", 2, "layers: 1 is not allowed; give at least the 2 stages"),
        ("run-error", 3, "worker 1 was killed at step 3"),
        ("disk-full", 3, "runs/a.json: No space left on device"),
        ("bug", 3, "KeyError: 'gone'"),
    ],
)
def test_a_section_that_stops(tmp_path: Path, what: str, code: int, message: str) -> None:
    out = tmp_path / "out"
    done = verify(out, {"delays": "holds", "certified": what, "training": "holds"})
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == f"staleproof verify: {message}"
    status = read(out, "status.json")
    assert (status["state"], status["error"]) == ("failed", message)
    assert status["sections"] == {"delays": "complete", "certified": "failed", "training": "pending"}
    assert read(out, "delays.json") == {"x": 0.1}
    claims = read(out, "claims.json")
    assert claims["verdict"] == "incomplete"
    outcomes = {claim["name"]: claim["outcome"] for claim in claims["claims"]}
    assert outcomes == {
        "delays is exact": "holds",
        "certified finished": "missing",
        "training finished": "missing",
    }
    assert (out / "report.html").read_text(encoding="utf-8") == "failed"
    assert (out / "traceback.txt").exists() == (what == "bug")


def test_a_failure_seen_before_a_stop_stays_in_the_verdict(tmp_path: Path) -> None:
    done = verify(tmp_path / "out", {"delays": "fails", "training": "run-error"})
    assert done.returncode == 3
    assert read(tmp_path / "out", "claims.json")["verdict"] == "fails"


def test_what_can_be_refused_is_refused_before_the_folder_is_touched(tmp_path: Path) -> None:
    done = verify(tmp_path / "out", {"delays": "holds", "training": "check-refuses"})
    assert done.returncode == 2
    assert "corpus: '/nowhere' does not exist" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_bad_input_does_not_destroy_an_earlier_result(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert verify(out, {"delays": "holds"}).returncode == 0
    assert verify(out, {"delays": "check-refuses"}, "--overwrite").returncode == 2
    assert read(out, "claims.json")["verdict"] == "holds"


def test_no_report_leaves_the_drawing_to_later(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = verify(out, {"delays": "fails"}, "--no-report", FAKE_REPORT="fails")
    assert done.returncode == 1 and "Report: not drawn" in done.stdout
    assert read(out, "status.json")["state"] == "complete" and read(out, "claims.json")["verdict"] == "fails"
    assert sorted(path.name for path in out.iterdir()) == ["claims.json", "delays.json", "status.json"]
    stopped = verify(tmp_path / "stopped", {"delays": "run-error"}, "--no-report")
    assert stopped.returncode == 3 and not (tmp_path / "stopped" / "report.html").exists()


def test_a_report_that_cannot_be_drawn(tmp_path: Path) -> None:
    done = verify(tmp_path / "out", {"delays": "holds"}, FAKE_REPORT="fails")
    assert done.returncode == 2
    assert "Report: not drawn" in done.stdout
    status = read(tmp_path / "out", "status.json")
    assert status["state"] == "failed" and status["sections"] == {"delays": "complete"}
    assert read(tmp_path / "out", "claims.json")["verdict"] == "holds"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        [
            sys.executable,
            SCRIPT,
            '{"delays": "holds", "training": "wait"}',
            "verify",
            "--out",
            str(out),
            "--json",
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # An ignored SIGINT (a background job's) stays ignored in Python: give the child the default.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    wait_for(out / "waiting")
    asked = time.monotonic()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    assert time.monotonic() - asked < 10
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "staleproof verify: interrupted"
    assert "Traceback" not in stderr
    status = read(out, "status.json")
    assert status["state"] == "interrupted" and status["finished"]
    assert status["sections"] == {"delays": "complete", "training": "interrupted"}
    assert read(out, "delays.json") == {"x": 0.1}
    assert not (out / "training.json").exists()
    assert json.loads(stdout)["exit_code"] == 130
    assert (out / "report.html").read_text(encoding="utf-8") == "interrupted"
    # An interrupted result can be replaced.
    assert verify(out, {"delays": "holds"}, "--overwrite").returncode == 0


def test_a_kill_leaves_a_folder_that_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, SCRIPT, '{"delays": "holds", "training": "wait"}', "verify", "--out", str(out)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(out / "waiting")
    process.kill()
    process.wait(timeout=10)
    status = read(out, "status.json")
    assert status["state"] == "running" and status["sections"]["training"] == "running"
    assert read(out, "claims.json")["verdict"] == "incomplete"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def test_json_stdout_is_json_only(tmp_path: Path) -> None:
    done = verify(tmp_path / "out", {"delays": "spawn", "training": "fails"}, "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["verdict"] == "fails" and result["exit_code"] == 1
    assert [claim["outcome"] for claim in result["claims"]] == ["holds", "fails"]
    assert result["report"] == str(tmp_path / "out" / "report.html")
    for text in ("a library prints", "a C library writes", "a worker prints"):
        assert text in done.stderr


def test_only_runs_what_was_asked_in_order(tmp_path: Path) -> None:
    plan = {"delays": "holds", "certified": "fails", "training": "holds"}
    done = verify(tmp_path / "out", plan, "--only", "training,delays")
    assert done.returncode == 0
    assert read(tmp_path / "out", "status.json")["sections"] == {
        "delays": "complete",
        "certified": "skipped",
        "training": "complete",
    }
    assert not (tmp_path / "out" / "certified.json").exists()


@pytest.mark.parametrize("only", ["nothing", "", "delays,", "delays,Training"])
def test_only_refuses_unknown_names_before_touching_the_folder(tmp_path: Path, only: str) -> None:
    done = verify(tmp_path / "out", {"delays": "holds", "training": "holds"}, "--only", only)
    assert done.returncode == 2
    assert "delays, training" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_second_run_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert verify(out, {"delays": "holds"}).returncode == 0
    before = (out / "status.json").read_bytes()
    done = verify(out, {"delays": "fails"})
    assert done.returncode == 2 and "is not empty" in done.stderr and len(done.stderr.splitlines()) == 1
    assert (out / "status.json").read_bytes() == before


def test_ascii_locale_and_odd_folder_name(tmp_path: Path) -> None:
    out = tmp_path / "σ é 🙂 out."
    done = verify(
        out, {"delays": "holds"}, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING=""
    )
    assert done.returncode == 0, done.stderr
    assert "σ é 🙂 out." in read(out, "status.json")["command"]
