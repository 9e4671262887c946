"""Ctrl-C and SIGTERM during real worker processes: exit 130, one line, no orphan, no hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROC = Path("/proc")
TEXT = ("--corpus", str(ROOT / "README.md"))


def members(session: int) -> list[int]:
    """Living processes of a session, its leader included (Linux only)."""
    found = []
    for entry in PROC.glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


@pytest.mark.processes
@pytest.mark.skipif(not (PROC / "self" / "stat").exists(), reason="needs /proc to look for orphans")
@pytest.mark.parametrize(
    ("words", "number", "whole_group", "after"),
    [
        (["verify", "--only", "training", *TEXT], signal.SIGINT, True, 0.2),
        (["verify", "--only", "delays"], signal.SIGINT, True, 2.5),
        (["verify", "--only", "training", *TEXT], signal.SIGTERM, False, 2.0),
        (["train", "--steps", "5000"], signal.SIGTERM, False, 3.0),
    ],
    ids=["Ctrl-C at the start of the workers", "Ctrl-C while they run", "SIGTERM to the parent", "train"],
)
def test_no_orphan_and_no_hang(
    tmp_path: Path, words: list[str], number: int, whole_group: bool, after: float
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "staleproof", *words, "--out", str(out)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    try:
        deadline = time.monotonic() + 90
        while len(members(process.pid)) < 3:
            assert process.poll() is None and time.monotonic() < deadline, "no worker processes appeared"
            time.sleep(0.05)
        time.sleep(after)
        asked = time.monotonic()
        os.killpg(process.pid, number) if whole_group else process.send_signal(number)
        stdout, stderr = process.communicate(timeout=120)
        took = time.monotonic() - asked
        left = members(process.pid)
        time.sleep(0.5 if left else 0)
        left = members(process.pid)
    finally:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
    assert left == [], f"processes left behind after {took:.1f} s"
    assert process.returncode == 130, stderr
    assert stderr.splitlines()[-1] in ("staleproof verify: interrupted", "staleproof: interrupted")
    assert "Traceback" not in stderr, stderr
    status = json.loads((out / "status.json").read_text(encoding="utf-8"))
    assert status["state"] == "interrupted"
    assert words[0] != "verify" or status["sections"][words[2]] == "interrupted"
