"""One worker process: a rank of the pipeline that runs jobs until it is told to stop."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

#: How long a message between stages may take before the run counts as hung.
TIMEOUT_SECONDS = 120
#: Time between two reports of a worker's progress, at least.
REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class WorkerSettings:
    """Where a worker finds its peers and what it runs on."""

    rank: int
    stages: int
    port: int
    backend: str
    device: str
    staged: bool


class Reports:
    """Tells the parent of finished steps, a few times a second: a message for each would cost it a core."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._steps: list[tuple[int, float | None]] = []
        self._busy = 0.0
        self._sent = time.monotonic()

    def __call__(self, k: int, loss: float | None, busy: float) -> None:
        self._steps.append((k, loss))
        self._busy = busy
        if time.monotonic() - self._sent > REPORT_SECONDS:
            self.send()

    def send(self) -> None:
        """Send what has been collected."""
        if self._steps:
            self._pipe.send(("steps", self._steps, self._busy))
            self._steps = []
        self._sent = time.monotonic()


def main(settings: WorkerSettings, pipe: Connection) -> None:
    """Entry point of the process: serves jobs from ``pipe``.

    Replies are ("ready", rank), ("steps", [(k, loss), ...], busy), ("done", result) and ("error", ...).
    """
    start_quietly()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    progress = {"step": -1}
    try:
        import torch
        import torch.distributed as dist

        from pipeline.engine.run_stage import Groups, run_stage

        device = torch.device(settings.device)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        timeout = timedelta(seconds=TIMEOUT_SECONDS)
        store = dist.TCPStore("127.0.0.1", settings.port, settings.stages + 1, is_master=False, timeout=timeout)
        dist.init_process_group(
            settings.backend, store=store, rank=settings.rank, world_size=settings.stages, timeout=timeout
        )
        groups = Groups.make(timeout)
        pipe.send(("ready", settings.rank))
        while (sent := pipe.recv()) is not None:
            job = pickle.loads(sent)
            progress["step"] = 0

            def on_action(k: int) -> None:
                progress["step"] = k

            reports = Reports(pipe)
            try:
                result = run_stage(job, settings.rank, device, settings.staged, groups, reports, on_action)
            finally:
                reports.send()
            pipe.send(("done", _pack(result)))
        dist.destroy_process_group()
    except EOFError:
        os._exit(1)
    except BaseException as error:  # noqa: BLE001 - everything must reach the user
        _report(error, settings.rank, progress["step"], pipe)
        os._exit(1)


def _pack(result: Any) -> bytes:
    """The result as bytes: tensors through torch.save, so no shared memory outlives the worker."""
    import io

    import torch

    buffer = io.BytesIO()
    torch.save(result, buffer)
    return buffer.getvalue()


def _report(error: BaseException, rank: int, step: int, pipe: Connection) -> None:
    """Tell the parent; an error of the transport is second-hand news of a peer that failed."""
    root = first_cause(error)
    secondhand = is_transport_error(root)
    if secondhand:
        time.sleep(0.5)  # let the peer's own report go first
    text = " ".join([*str(root).split(), *(f"[{note}]" for note in getattr(root, "__notes__", []))])
    try:
        pipe.send(("error", rank, step, f"{type(root).__name__}: {text}", traceback.format_exc(), secondhand))
    except OSError:
        pass


def first_cause(error: BaseException) -> BaseException:
    """What a layer has raised, out of what torch's stage makes of it."""
    while isinstance(error, RuntimeError) and "failed to run" in str(error).lower() and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_transport_error(error: BaseException) -> bool:
    """Whether it is second-hand news: a message that did not come because a peer has failed."""
    import torch.distributed as dist

    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and re.search(r"gloo/[\w/]+\.(cc|h)\b", str(error)) is not None
    )


def start_quietly() -> None:
    """First thing in a worker process: leave Ctrl-C to the parent, end with the parent, use one thread."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    torch.set_num_threads(1)


def _die_with_parent() -> None:
    """End this process when its parent is gone, whatever it is doing."""
    import multiprocessing

    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
