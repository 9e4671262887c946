"""The command line with sections that do what a test asks: run as a script in a process of its own.

    python fake_sections.py '{"delays": "holds", "training": "wait"}' verify --out DIR ...

Behaviours: holds, fails, missing, nothing (no claim), input-error, run-error, disk-full, bug, wait (says so
in a file, then sleeps), spawn (a worker process writes to its stdout), check-refuses, corpus.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import figures.errors
import pipeline.errors
from staleproof import cli, sections, verify
from staleproof.claims import Claim
from staleproof.presets import Preset


def behave(name: str, what: str, folder: Path) -> tuple[dict[str, Any], list[Claim]]:
    """The results and claims of one behaviour."""
    if what == "input-error":
        raise pipeline.errors.InputError("layers: 1 is not allowed;\ngive at least the 2 stages")
    if what == "run-error":
        raise pipeline.errors.RunError("worker 1 was killed at step 3")
    if what == "disk-full":
        raise OSError(28, "No space left on device", "runs/a.json")
    if what == "bug":
        raise KeyError("gone")
    if what == "wait":
        (folder / "waiting").touch()
        time.sleep(60)
    if what == "spawn":
        print("a library prints")
        os.write(1, b"a C library writes\n")
        subprocess.run([sys.executable, "-c", "print('a worker prints')"], check=True)
    if what == "corpus":
        return {"corpus": {"name": "text", "bytes": 3}, "x": 1}, [Claim.equality("a", "a", 0.0)]
    if what == "missing":
        return {}, [Claim.missing("gone", "certified", "it is there", "no data")]
    if what == "nothing":
        return {}, []
    value = 1.0 if what == "fails" else 0.0
    return {"x": 0.1}, [Claim.equality(f"{name} is exact", "value is 0", value, place="step 7 of tau=2")]


def fake(name: str, what: str) -> ModuleType:
    """A section module with that behaviour."""
    module = ModuleType(f"staleproof.sections.{name}")

    def run(
        preset: Preset, progress: Callable[[float, str], None], folder: Path
    ) -> tuple[dict[str, Any], list[Claim]]:
        progress(0.5, "half")
        return behave(name, what, folder)

    def check(preset: Preset) -> None:
        raise pipeline.errors.InputError("corpus: '/nowhere' does not exist; give a file or a folder")

    module.TITLE = f"Section {name}"  # type: ignore[attr-defined]
    module.run = run  # type: ignore[attr-defined]
    if what == "check-refuses":
        module.check = check  # type: ignore[attr-defined]
    return module


def main() -> None:
    """Put the fakes in place of the sections and of the report, then run the command line."""
    plan = json.loads(sys.argv[1])
    sections.SECTIONS = tuple(plan)
    for name, what in plan.items():
        sys.modules[f"staleproof.sections.{name}"] = fake(name, what)
    report = ModuleType("figures.report")

    def write_report(folder: Path) -> list[Path]:
        if os.environ.get("FAKE_REPORT") == "fails":
            raise figures.errors.InputError("status.json: missing")
        state = json.loads((folder / "status.json").read_text(encoding="utf-8"))["state"]
        (folder / "report.html").write_text(state, encoding="utf-8")
        return [folder / "report.html"]

    report.write_report = write_report  # type: ignore[attr-defined]
    sys.modules["figures.report"] = report
    verify.gpus = lambda: 0
    sys.exit(cli.main(sys.argv[2:]))


if __name__ == "__main__":
    main()
