"""Local worker processes, one a stage: started once, then fed jobs. Failures end everything, with the first error."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pipeline.engine.job import Job, main_is_a_file
from pipeline.engine.result import StageResult
from pipeline.engine.transport import choose_placement
from pipeline.engine.worker import WorkerSettings, main
from pipeline.errors import InputError, RunError, VersionError
from pipeline.events import Event

#: After the first sign of a failure: how long to wait for a better explanation from another worker.
EXPLANATION_SECONDS = 2.0
START_SECONDS = 120.0

OnStep = Callable[[int, float], None]


def _ignore(k: int, loss: float) -> None:
    pass


@dataclass(frozen=True)
class RunResult:
    """A finished run, gathered from its stages.

    events: trace of all stages, times in seconds from the first event; losses[k]: training loss of step k at the
    version it used, those before a resumed checkpoint included; norms[k]: norm of batch k's gradient before clipping
    (with clipping only); skipped: every step k left out for Inf or NaN in its gradient, those before a resumed
    checkpoint included; snapshots: steps done -> full weights by parameter name, as forwards see them; solution: what
    has been trained, another point under weight prediction; step_ends[s]: when stage s ended each optimizer step of
    this run, on the clock of the events (without events from the first of these ends).
    """

    events: list[Event]
    losses: list[float]
    norms: list[float]
    skipped: list[int]
    snapshots: dict[int, dict[str, Tensor]]
    solution: dict[str, Tensor]
    input_digest: str
    target_digest: str
    peak_versions: list[int]
    peak_in_flight: list[int]
    peak_gradient_sets: list[int]
    step_ends: list[list[float]]

    @property
    def weights(self) -> dict[str, Tensor]:
        """Final weights by full parameter name."""
        return self.snapshots[max(self.snapshots)]


@contextlib.contextmanager
def _no_main_to_import() -> Iterator[None]:
    """Let workers not look for the file of a script that came from stdin, which Python calls '<stdin>'."""
    main = sys.modules["__main__"]
    named = vars(main).get("__file__")
    if named is None or main_is_a_file():
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = named


class WorkerPool:
    """Context manager over ``stages`` worker processes on this machine.

    device, transport: see :func:`pipeline.engine.transport.choose_placement`; port: of the rendezvous on the loopback
    interface (default: a free one).

    Raises InputError (before any process starts) for a port in use or a placement that is impossible; RunError where
    a worker fails.
    """

    def __init__(self, stages: int, device: str = "auto", transport: str = "auto", port: int | None = None) -> None:
        if port is not None and not 0 < port < 65536:
            raise InputError(f"port = {port}: allowed are 1 to 65535")
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        self._placements = [choose_placement(gpus, stages, rank, device, transport) for rank in range(stages)]
        self.stages = stages
        self.device = self._placements[0].device
        self.transport = self._placements[0].backend
        self._port = port
        self._store = self._rendezvous()
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []
        self._ready = False
        self._steps = [0] * stages
        self._busy = [0.0] * stages
        self._began = 0.0

    def _rendezvous(self) -> dist.TCPStore:
        try:
            return dist.TCPStore(
                "127.0.0.1", self._port or 0, self.stages + 1, is_master=True, wait_for_workers=False
            )
        except dist.DistNetworkError:
            raise InputError(
                f"port = {self._port} is in use: give another one, or none to let a free one be found"
            ) from None

    def restart(self) -> None:
        """Start the workers again after a failed run has ended them."""
        self.kill()
        del self._store  # frees the port
        self._store = self._rendezvous()
        self.__enter__()

    def __enter__(self) -> WorkerPool:
        if getattr(multiprocessing.process.current_process(), "_inheriting", False):
            raise InputError("a worker process would start workers: start training under if __name__ == '__main__':")
        self._ready = False
        context = multiprocessing.get_context("spawn")
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"  # one thread a process: more fight over the cores
        try:
            for rank, p in enumerate(self._placements):
                settings = WorkerSettings(rank, self.stages, self._store.port, p.backend, p.device, p.staged)
                ours, theirs = context.Pipe()
                process = context.Process(target=main, args=(settings, theirs), daemon=True)
                # Ctrl-C reaches the whole process group: a worker that is still importing must not answer it.
                # The tracker's own start would unblock the signal, so it comes first.
                resource_tracker.ensure_running()
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    with _no_main_to_import():
                        process.start()
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
            self._collect("ready", time.monotonic() + START_SECONDS)
            self._ready = True
        except BaseException:
            self.kill()
            raise
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for pipe in self._pipes:
                try:
                    pipe.send(None)
                except OSError:
                    pass
            deadline = time.monotonic() + 10
            for process in self._processes:
                process.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, by rank."""
        return [process.pid for process in self._processes]

    def run(self, job: Job, on_step: OnStep = _ignore) -> RunResult:
        """Run a job on all stages; ``on_step(k, loss)`` is called soon after the last stage has finished its k-th step
        (from 1), with the mean training loss of the batch at the version used.

        Raises InputError, before a worker hears of it, for a job that is not for this pool; RunError (InputError where
        a worker finds bad input), after ending every worker, where one fails or dies.
        """
        if job.schedule.stages != self.stages:
            raise InputError(f"stages = {job.schedule.stages}: the pool has {self.stages} workers")
        if not self._pipes:
            raise RunError("the pool's workers have ended: restart() starts them again")
        job.check_picklable()
        if job.checkpoints is not None:
            from pipeline.engine.checkpoint import prepare_folder  # loads much of torch.distributed

            prepare_folder(job.checkpoints, job.resume)
        self._steps, self._busy, self._began = [0] * self.stages, [0.0] * self.stages, time.monotonic()
        try:
            sent = pickle.dumps(job)  # by value: a worker that dies must not be waited for with a file descriptor
            for pipe in self._pipes:
                pipe.send(sent)
        except OSError:
            pass  # a dead worker: the wait below finds out which and why
        try:
            replies = self._collect("done", None, on_step)
        except BaseException:  # of on_step, or Ctrl-C: the next job would be answered with results of this one
            self.kill()
            raise
        return gather([torch.load(io.BytesIO(reply), weights_only=False) for reply in replies])

    @property
    def bubble(self) -> float:
        """Share of the stages' time without a forward or backward since the run began, start-up included."""
        elapsed = time.monotonic() - self._began
        return 1 - sum(self._busy) / (self.stages * elapsed)

    def _collect(
        self, what: str, deadline: float | None, on_step: OnStep = _ignore
    ) -> list[Any]:
        """One ``what`` reply from every worker."""
        replies: dict[int, Any] = {}
        rank_of: dict[Any, int] = {pipe: rank for rank, pipe in enumerate(self._pipes)}
        rank_of |= {process.sentinel: rank for rank, process in enumerate(self._processes)}
        while len(replies) < self.stages:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                self._fail([], f"workers did not start within {START_SECONDS:.0f} s")
            for signalled in wait(list(rank_of), left):
                rank = rank_of[signalled]
                message = self._receive(rank)
                if message is None:
                    continue
                if message[0] == "steps":
                    self._steps[rank], self._busy[rank] = message[1][-1][0], message[2]
                    if rank == self.stages - 1:
                        for k, loss in message[1]:
                            on_step(k, loss)
                elif message[0] == what:
                    replies[rank] = message[1]
                else:
                    self._fail([message])
        return [replies[rank] for rank in range(self.stages)]

    def _receive(self, rank: int) -> tuple[Any, ...] | None:
        """The next message of a worker; its death is a message too. None where nothing is to be read yet."""
        pipe, process = self._pipes[rank], self._processes[rank]
        try:
            if pipe.poll():
                message: tuple[Any, ...] = pipe.recv()
                return message
        except (EOFError, OSError):
            pass
        if process.is_alive():
            return None
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
        if not self._ready and (code or 0) >= 0:
            how += " before it was ready (does the script start its training under if __name__ == '__main__':?)"
        return ("error", rank, self._steps[rank], f"the worker {how}", "", False)

    def _fail(self, errors: list[tuple[Any, ...]], why: str = "") -> None:
        """End all workers and raise the error that explains the failure best."""
        deadline = time.monotonic() + EXPLANATION_SECONDS
        while errors and all(error[5] for error in errors) and time.monotonic() < deadline:
            for rank in range(self.stages):
                if rank not in [error[1] for error in errors]:
                    message = self._receive(rank)
                    if message is not None and message[0] == "error":
                        errors.append(message)
            time.sleep(0.05)
        self.kill()
        if not errors:
            raise RunError(why)
        _, rank, step, text, trace, _ = min(errors, key=lambda error: error[5])
        if text.startswith(f"{InputError.__name__}: "):
            raise InputError(text.split(": ", 1)[1])
        kind = VersionError if text.startswith(VersionError.__name__) else RunError
        failure = kind(f"stage {rank} of {self.stages}, step {step}: {text}")
        failure.add_note(trace)
        raise failure

    def kill(self) -> None:
        """End every worker now."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
        for process in self._processes:
            process.join(10)
        for pipe in self._pipes:
            pipe.close()
        self._processes, self._pipes = [], []


def gather(stages: list[StageResult]) -> RunResult:
    """One result from those of the stages, in order.

    Raises RunError where copies of a tied weight differ, or the steps that stages have left out.
    """
    for stage in stages:
        if stage.skipped != stages[-1].skipped:
            raise RunError(f"stage {stage.stage} left out the steps {stage.skipped}, the last {stages[-1].skipped}")
    steps = sorted(stages[0].snapshots)
    starts = [stage.events[0].start for stage in stages if stage.events]
    origin = min(starts or [stage.step_ends[0] for stage in stages if stage.step_ends], default=0.0)
    events = [
        Event(e.kind, e.stage, e.microbatch, e.step, e.version, e.start - origin, e.end - origin)
        for stage in stages
        for e in stage.events
    ]
    return RunResult(
        events=sorted(events, key=lambda e: (e.start, e.stage)),
        losses=stages[-1].losses,
        norms=stages[-1].norms,
        skipped=stages[-1].skipped,
        snapshots={k: _merged([stage.snapshots[k] for stage in stages], k) for k in steps},
        solution=_merged([stage.solution for stage in stages], steps[-1]),
        input_digest=stages[0].input_digest,
        target_digest=stages[-1].target_digest,
        peak_versions=[stage.peak_versions for stage in stages],
        peak_in_flight=[stage.peak_in_flight for stage in stages],
        peak_gradient_sets=[stage.peak_gradient_sets for stage in stages],
        step_ends=[[end - origin for end in stage.step_ends] for stage in stages],
    )


def _merged(parts: list[dict[str, Tensor]], k: int) -> dict[str, Tensor]:
    whole: dict[str, Tensor] = {}
    for part in parts:
        for name, weight in part.items():
            if name in whole and not torch.equal(whole[name].nan_to_num(), weight.nan_to_num()):
                raise RunError(f"after {k} steps the copies of the tied weight {name} differ between stages")
            whole.setdefault(name, weight)
    return whole
