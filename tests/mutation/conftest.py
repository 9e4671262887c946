"""The cases run in the background while other tests run; each test waits for its own.

Every case is a process of its own on a copy of the packages of its own, so cases may run beside each other. Their tests
come last: until then the cases have half of the cores, then all of them. Only the cases that were selected are run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LONGEST = 300  # seconds a case may take
PLUGIN = "mutation-cases"

Prepare = Callable[[Path], list[str]]  # makes the copy in a folder, returns the command to run in it


@dataclass
class Case:
    """A case that was started: its process, or the error that kept it from starting."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    error: Exception | None = None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self) -> None:
        """Ask it to end, which ends its workers too; then insist."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


class Background:
    """Starts the next case whenever a test begins and a core is free. No threads: tests fork."""

    def __init__(self, waiting: dict[str, Prepare], folder: Path) -> None:
        self.waiting = waiting
        self.folder = folder
        self.cases: dict[str, Case] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self.fill(max(CORES // 2, 1))

    def fill(self, most: int) -> None:
        """Start cases until `most` of them run."""
        for case in self.cases.values():
            if case.running() and time.monotonic() - case.started > LONGEST:
                case.end()
                case.error = TimeoutError(f"ran for more than {LONGEST} s")
        while self.waiting and sum(case.running() for case in self.cases.values()) < most:
            self.start(next(iter(self.waiting)))

    def start(self, name: str) -> None:
        prepare = self.waiting.pop(name)
        case = self.cases[name] = Case(self.folder / str(len(self.cases)))
        packages = case.folder / "packages"
        packages.mkdir(parents=True)
        try:
            command = prepare(packages)
            with open(case.folder / "stdout", "wb") as stdout, open(case.folder / "stderr", "wb") as stderr:
                case.process = subprocess.Popen(
                    command,
                    cwd=packages,
                    env=os.environ | {"PYTHONPATH": str(packages)},
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            case.started = time.monotonic()
        except Exception as error:  # belongs to the test of this case, not to the one that runs now
            case.error = error

    def result(self, name: str) -> subprocess.CompletedProcess[str]:
        """Wait for a case, with all cores in use."""
        if name in self.waiting:
            self.waiting = {name: self.waiting[name]} | self.waiting  # next
        while True:
            self.fill(CORES)
            case = self.cases.get(name)
            if case is not None and not case.running():
                break
            time.sleep(0.05)
        if case.error is not None or case.process is None:
            raise case.error or RuntimeError("the case was not started")
        texts = [(case.folder / stream).read_text(encoding="utf-8") for stream in ("stdout", "stderr")]
        return subprocess.CompletedProcess(case.process.args, case.process.returncode, *texts)

    def stop(self) -> None:
        self.waiting = {}
        for case in self.cases.values():
            case.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Last, so that the cases have the time of all other tests."""
    items.sort(key=lambda item: item.path.parent == HERE)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    if session.config.option.collectonly:
        return (yield)
    waiting: dict[str, Prepare] = {
        item.nodeid: partial(item.module.break_copy, item.callspec.params["case"])
        for item in session.items
        if isinstance(item, pytest.Function) and item.path.parent == HERE
    }
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        background = Background(waiting, Path(folder))
        session.config.pluginmanager.register(background, PLUGIN)
        try:
            return (yield)
        finally:
            background.stop()
            session.config.pluginmanager.unregister(background)


@pytest.fixture
def finished(request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """The ended process of the test's own case."""
    background: Background = request.config.pluginmanager.get_plugin(PLUGIN)
    return background.result(request.node.nodeid)
