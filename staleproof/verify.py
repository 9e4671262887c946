"""One verification: the sections in order, their claims, the verdict, the report.

What is on disk at any moment is true of that moment: status.json is written at the start and after every
change of state, NAME.json and claims.json right after each section, all atomically. A run that stops early
keeps the results of the sections that finished and marks the others.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.folder import SCHEMA, ResultFolder
from pipeline.progress import Progress
from staleproof import sections as section_modules
from staleproof.claims import Claim, verdict
from staleproof.errors import (
    EXIT_BAD_INPUT,
    EXIT_CLAIM_FAILED,
    EXIT_HOLDS,
    EXIT_INTERRUPTED,
    EXIT_RUN_FAILED,
    InputError,
)
from staleproof.output import note
from staleproof.presets import Preset
from staleproof.rooms import input_errors, one_line, run_errors
from staleproof.signals import signals_interrupt
from staleproof.versions import cores, gpus, versions


@dataclass
class Outcome:
    """What a verification came to.

    verdict    holds | fails | incomplete
    exit_code  0 holds, 1 a gating claim fails or is missing, 2 bad input, 3 a run failed, 130 interrupted
    report     path of the report page, None if it could not be drawn or was not asked for
    """

    status: dict[str, Any]
    folder: Path
    claims: list[Claim] = field(default_factory=list)
    verdict: str = "incomplete"
    exit_code: int = EXIT_RUN_FAILED
    report: Path | None = None


def choose(only: Sequence[str] | None) -> tuple[str, ...]:
    """The sections to run, in their fixed order. Raises InputError for an unknown or an empty choice."""
    if only is None:
        return section_modules.SECTIONS
    for name in only:
        if name not in section_modules.SECTIONS:
            raise InputError(f"only: {name!r} is not one of {', '.join(section_modules.SECTIONS)}")
    if not only:
        raise InputError(
            f"only: '' is not allowed; give one or more of {', '.join(section_modules.SECTIONS)}"
        )
    return tuple(name for name in section_modules.SECTIONS if name in only)


def check_input(preset: Preset, only: Sequence[str] | None = None) -> None:
    """Refuse what can be foreseen, before anything is written: calls `check(preset)` of each chosen section.

    Raises the section's InputError.
    """
    for name in choose(only):
        check = getattr(section_modules.load(name), "check", None)
        if check is not None:
            check(preset)


def verify(
    preset: Preset,
    folder: ResultFolder,
    only: Sequence[str] | None = None,
    command: str = "",
    report: bool = True,
) -> Outcome:
    """Run the sections and write everything to the folder; raises only for an unknown section.

    report: draw the report at the end; without it `staleproof report` can draw it from the folder later.

    SIGINT, SIGTERM and SIGHUP end it cleanly (in the main thread): status "interrupted", finished sections
    kept.
    """
    chosen = choose(only)
    run = _Run(preset, folder, chosen, command, report)
    with signals_interrupt():
        try:
            run.start()
            for name in chosen:
                run.section(name)
            run.finish("complete")
            run.draw()
        except KeyboardInterrupt:
            run.stop("interrupted", "interrupted", EXIT_INTERRUPTED)
        except input_errors() as error:
            run.stop("failed", one_line(error), EXIT_BAD_INPUT)
        except run_errors() as error:
            run.stop("failed", one_line(error), EXIT_RUN_FAILED)
        except OSError as error:
            run.stop("failed", one_line(error), EXIT_RUN_FAILED)
        except Exception as error:  # a fault of this program: one line for the user, the rest in a file
            run.record_traceback(error)
            run.stop("failed", f"{type(error).__name__}: {one_line(error)}", EXIT_RUN_FAILED)
    return run.outcome


class _Run:
    """The state of one verification and its mirror on disk."""

    def __init__(
        self, preset: Preset, folder: ResultFolder, chosen: Sequence[str], command: str, report: bool
    ) -> None:
        self.preset = preset
        self.report = report
        self.folder = folder
        self.chosen = chosen
        self.clock = time.monotonic()
        self.current: str | None = None
        status: dict[str, Any] = {
            "schema": SCHEMA,
            "state": "running",
            "error": None,
            "command": command,
            "preset": preset.name,
            "seed": preset.seed,
            "started": _now(),
            "finished": None,
            "wall_seconds": 0.0,
            "versions": versions(),
            "machine": {"cores": cores(), "gpus": 0},
            "corpus": None,
            "skipped": {},
            "sections": {
                name: "pending" if name in chosen else "skipped" for name in section_modules.SECTIONS
            },
        }
        self.outcome = Outcome(status, folder.path)

    @property
    def status(self) -> dict[str, Any]:
        return self.outcome.status

    def start(self) -> None:
        """First files on disk."""
        self.write_status()
        self.status["machine"]["gpus"] = gpus()
        self.write_status()

    def section(self, name: str) -> None:
        """Run one section and write its results and the claims so far."""
        self.current = name
        self.status["sections"][name] = "running"
        self.write_status()
        module = section_modules.load(name)
        progress = Progress(name)
        progress(0.0, module.TITLE)
        # What a library or a worker prints belongs to stderr: stdout is for the result.
        with contextlib.redirect_stdout(sys.stderr):
            try:
                results, claims = module.run(self.preset, progress, self.folder.path)
            except section_modules.Skipped as error:
                self.skip(name, str(error))
                progress.finish(f"skipped: {error}")
                return
            except BaseException as error:
                # What a section had established before it failed is kept.
                self.outcome.claims.extend(getattr(error, "finished_claims", []))
                raise
        results = dict(results)
        if "corpus" in results:
            self.status["corpus"] = results.pop("corpus")
        self.folder.write(f"{name}.json", results)
        self.outcome.claims.extend(claims)
        self.current = None
        self.status["sections"][name] = "complete"
        self.write_claims(complete=name == self.chosen[-1])
        self.write_status()
        failing = sum(claim.gates and claim.outcome == "fails" for claim in claims)
        progress.finish(f"{len(claims)} claims, {failing} gating failures")

    def skip(self, name: str, why: str) -> None:
        """Mark a section that cannot run here; its missing claim does not gate."""
        self.outcome.claims.append(Claim.missing(f"{name} checked", "report", f"Section {name} is checked", why))
        self.current = None
        self.status["sections"][name] = "skipped"
        self.status["skipped"][name] = why
        self.write_claims(complete=name == self.chosen[-1])
        self.write_status()

    def finish(self, state: str, error: str | None = None) -> None:
        """Final state on disk, before the report is drawn from it."""
        self.status.update(state=state, error=error, finished=_now())
        self.write_status()
        if state == "complete":
            codes = {"holds": EXIT_HOLDS, "fails": EXIT_CLAIM_FAILED, "incomplete": EXIT_CLAIM_FAILED}
            self.outcome.exit_code = codes[self.outcome.verdict]

    def stop(self, state: str, error: str, exit_code: int) -> None:
        """End early: mark what did not finish, keep the rest, draw what there is."""
        was_complete = self.status["state"] == "complete"
        self.outcome.exit_code = exit_code
        if not was_complete:
            sections = self.status["sections"]
            if self.current is not None:
                sections[self.current] = state
            for name in self.chosen:
                if sections[name] not in ("complete", "skipped"):
                    statement = f"Section {name} runs to its end"
                    self.outcome.claims.append(
                        Claim.missing(f"{name} finished", "equality", statement, error)
                    )
        try:
            self.write_claims(complete=was_complete)
            self.finish(state, error)
            if not was_complete:
                self.draw()
        except KeyboardInterrupt:
            note("staleproof: interrupted again; no report was drawn")
        except Exception as second:
            note(f"staleproof: the results so far are not complete on disk: {one_line(second)}")

    def draw(self) -> None:
        """The report, from the files alone, unless none was asked for."""
        if not self.report:
            return
        report = importlib.import_module("figures.report")
        with contextlib.redirect_stdout(sys.stderr):
            paths = [Path(path) for path in report.write_report(self.folder.path)]
        self.outcome.report = next((path for path in paths if path.name == "report.html"), None)

    def write_claims(self, complete: bool) -> None:
        found = verdict(self.outcome.claims)
        self.outcome.verdict = "incomplete" if found == "holds" and not complete else found
        claims = [claim.as_dict() for claim in self.outcome.claims]
        self.folder.write("claims.json", {"claims": claims, "verdict": self.outcome.verdict})

    def write_status(self) -> None:
        self.status["wall_seconds"] = time.monotonic() - self.clock
        self.folder.write("status.json", self.status)

    def record_traceback(self, error: Exception) -> None:
        with contextlib.suppress(OSError):
            path = self.folder.path / "traceback.txt"
            path.write_text(
                "".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace"
            )
            note(f"staleproof: unexpected error; its traceback is in {path}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
