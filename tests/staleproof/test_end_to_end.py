"""The main job on the small preset: real sections, real worker processes, real report, real verdict."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from staleproof.claims import KINDS
from staleproof.sections import SECTIONS

TEXT = Path(__file__).resolve().parents[2] / "README.md"  # any text that is long enough; no network needed


@pytest.mark.processes
def test_smoke_verification_and_redrawn_report(
    staleproof: Callable[..., subprocess.CompletedProcess[str]],
    in_process: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    words = ("verify", "--preset", "smoke", "--corpus", str(TEXT), "--out", "out", "--json")
    done = staleproof(*words, timeout=400, PYTHONWARNINGS="default")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == "holds"
    assert {claim["kind"] for claim in result["claims"]} == set(KINDS)
    out = tmp_path / "out"
    status = json.loads((out / "status.json").read_text(encoding="utf-8"))
    assert status["sections"] == dict.fromkeys(SECTIONS, "complete")
    assert status["corpus"]["bytes"] == TEXT.stat().st_size
    for name in SECTIONS:
        assert (out / f"{name}.json").stat().st_size > 100

    # The folder moves to another place and is drawn again from its result files alone: the same bytes.
    drawn = [
        Path(path)
        for path in (out / "report.html", *(out / "figures").iterdir(), *(out / "tables").iterdir())
    ]
    assert {path.suffix for path in drawn} >= {".html", ".pdf", ".png", ".csv", ".tex"}
    moved = tmp_path / "moved"
    shutil.copytree(out, moved)
    shutil.rmtree(moved / "figures")
    shutil.rmtree(moved / "tables")
    (moved / "report.html").unlink()
    again = in_process("report", "moved", "--json")
    assert again.returncode == 0, again.stderr
    assert "moved/report.html" in json.loads(again.stdout)["files"]
    for path in drawn:
        assert (moved / path.relative_to(out)).read_bytes() == path.read_bytes(), path.name
