"""Fixtures and skips shared by all rooms."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# One thread a process: results do not depend on the machine, and tests do not compete with worker processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, saying why."""
    if shutil.which("pdflatex") is None:
        for item in items:
            if item.get_closest_marker("tex"):
                item.add_marker(pytest.mark.skip(reason="no pdflatex on this machine"))
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no CUDA device on this machine"))


@pytest.fixture(scope="session")
def _two_workers() -> Iterator[Any]:
    from pipeline.engine.pool import WorkerPool

    with WorkerPool(2, device="cpu") as pool:
        yield pool


@pytest.fixture
def two_workers(_two_workers: Any) -> Any:
    """Two worker processes, shared by many tests; started again where an earlier test has ended them."""
    if not _two_workers.pids:
        _two_workers.restart()
    return _two_workers


@pytest.fixture(scope="session")
def workers(_two_workers: Any) -> Iterator[Callable[[int], Any]]:
    """S -> a pool of S worker processes, started when first asked for and shared; alive again after a failed run."""
    from pipeline.engine.pool import WorkerPool

    with contextlib.ExitStack() as stack:
        pools = {2: _two_workers}

        def of(S: int) -> Any:
            if S not in pools:
                pools[S] = stack.enter_context(WorkerPool(S, device="cpu"))
            if not pools[S].pids:
                pools[S].restart()
            return pools[S]

        yield of


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def staleproof_in() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own, in a given folder; returns the completed process."""

    def run(
        folder: Path, *words: str, timeout: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **environment}
        return subprocess.run(
            [sys.executable, "-m", "staleproof", *words],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
        )

    return run


@pytest.fixture
def staleproof(tmp_path: Path, staleproof_in: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own, in an empty folder."""
    return functools.partial(staleproof_in, tmp_path)


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """As ``staleproof``, in this process: for what needs none of its own, some seconds faster."""
    from staleproof.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = main(words)
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


class Lent:
    """A pool that outlives the command that asked for it."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Lent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


@pytest.fixture
def train_in_process(
    in_process: Any, workers: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``staleproof train`` in this process, on the workers that tests share; these have a folder of their own, so a
    run that saves needs an absolute path."""

    def lend(stages: int, device: str, transport: str, port: int | None) -> Lent:
        assert (transport, port) == ("auto", None)
        return Lent(workers(stages))

    monkeypatch.setattr("pipeline.engine.pool.WorkerPool", lend)
    return functools.partial(in_process, "train")
