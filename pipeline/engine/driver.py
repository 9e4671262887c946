"""The streaming driver: runs one stage's actions in the schedule's order, for as many steps as asked.

Receives are posted one ahead, sends are reaped later, each direction has a process group of its own, and data is
pulled by global microbatch index on the first and on the last stage. The driver knows no schedule by name.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributed.pipelining.schedules import PipelineScheduleSingle
from torch.optim import Optimizer

from pipeline.engine.digest import bytes_of
from pipeline.engine.exchange import BatchExchange, Pending
from pipeline.engine.job import Job
from pipeline.engine.result import StageResult
from pipeline.engine.stage import VersionedStage
from pipeline.engine.transport import Direction, Message
from pipeline.errors import RunError
from pipeline.events import Event, Kind
from pipeline.optim.wrapper import Wrapper, parameters_of


@dataclass
class Hooks:
    """What happens outside a stage's own work.

    on_step(k, loss, busy): k steps are done, ``busy`` seconds were spent on forwards and backwards so far;
    on_action(k): an action of step k begins; save(k): k steps are done and a checkpoint is due.
    """

    on_step: Callable[[int, float | None, float], None] = lambda k, loss, busy: None
    on_action: Callable[[int], None] = lambda k: None
    save: Callable[[int], None] | None = None


class DataReader:
    """Microbatches on the device of a stage, read a batch at a time, checked against the first and hashed in order."""

    def __init__(self, job: Job, device: torch.device) -> None:
        self.job = job
        self.microbatches = job.schedule.microbatches
        self.device = device
        self._first: list[tuple[torch.Size, torch.dtype]] = []
        self._hashes = hashlib.sha256(), hashlib.sha256()
        self._ahead: dict[int, tuple[Tensor, Tensor] | Exception] = {}

    def read_ahead(self, j: int) -> None:
        """Get microbatch j and the rest of its batch before they are asked for; an error waits until then."""
        if j in self._ahead:
            return
        for i in range(j, j - j % self.microbatches + self.microbatches):
            try:
                self._ahead[i] = self._read(i, count=True)
            except Exception as error:  # noqa: BLE001 - raised by the call that needs it
                self._ahead[i] = error
                return

    def __call__(self, j: int) -> tuple[Tensor, Tensor]:
        self.read_ahead(j)
        found = self._ahead.pop(j)
        if isinstance(found, Exception):
            raise found
        return found

    def peek(self, j: int) -> tuple[Tensor, Tensor]:
        """Microbatch j, not counted as used."""
        return self._read(j, count=False)

    def _read(self, j: int, count: bool) -> tuple[Tensor, Tensor]:
        pair = self.job.data.microbatch(j)
        found = [(t.shape, t.dtype) for t in pair]
        self._first = self._first or found
        if found != self._first:
            for what, (shape, dtype), (first, kind) in zip(("inputs", "targets"), found, self._first, strict=True):
                if (shape, dtype) != (first, kind):
                    raise RunError(
                        f"{what} of microbatch {j} are {dtype} {tuple(shape)}, those of the first are {kind} "
                        f"{tuple(first)}: all microbatches must be alike"
                    )
        if count:
            for sha, t in zip(self._hashes, pair, strict=True):
                sha.update(bytes_of(t))
        inputs, targets = (t.to(self.device) for t in pair)
        return self.job.as_input(inputs), targets

    @property
    def digests(self) -> tuple[str, str]:
        """sha256 of the inputs and of the targets so far."""
        return self._hashes[0].hexdigest(), self._hashes[1].hexdigest()


class StreamingDriver(PipelineScheduleSingle):
    """Drives a :class:`VersionedStage` without end: a schedule of torch's with a step loop of its own."""

    def __init__(
        self, stage: VersionedStage, job: Job, activations: Direction, gradients: Direction, exchange: BatchExchange
    ) -> None:
        super().__init__(stage, n_microbatches=stage.slots, loss_fn=job.loss, scale_grads=False)
        self.stage = stage
        self.job = job
        self.activations = activations
        self.gradient_messages = gradients
        self.exchange = exchange
        self._trace: list[tuple[Kind, int, int, int, int, float, float]] = []  # events to be
        self._on_gpu = stage.device.type == "cuda"
        self.result = StageResult(stage.stage_index)

    def _step_microbatches(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("a streaming pipeline has no separate step; use run()")

    def run(self, optimizer: Optimizer | None, start: int = 0, hooks: Hooks | None = None) -> StageResult:
        """Train from ``start`` optimizer steps done to ``job.steps``; the optimizer is None where a stage has nothing
        to train."""
        stage, schedule, s, result = self.stage, self.stage.schedule, self.stage.stage_index, self.result
        self._hooks = hooks or Hooks()
        self._optimizer = optimizer
        m, steps = schedule.microbatches, self.job.steps
        reader = DataReader(self.job, stage.device)
        self._prepare(reader, start * m)
        forwards, backwards = (self._receives(kind, start * m, steps * m) for kind in ("forward", "backward"))
        self._in_flight: deque[int] = deque()
        self._next_forward = start * m
        self._pending: deque[Pending] = deque()
        loss_of: dict[int, Tensor] = {}
        batch_loss = 0.0
        for kind, shifted, k, *_ in schedule.rest_after(start).actions(s, steps - start):
            j, k = shifted + start * m, k + start
            self._hooks.on_action(k)
            if kind == "forward":
                inputs = targets = None
                if stage.is_first or stage.is_last:
                    inputs, targets = reader(j)
                self._settle(schedule.version(s, j))
                next(forwards, None)
                begin = self._now()
                output, version = stage.forward_microbatch(j, (inputs,) if stage.is_first else ())
                if stage.is_last:
                    loss_of[j] = self._loss(output, targets)
                    batch_loss += loss_of[j].item()
                self._note(kind, j, k, version, begin)
                if not stage.is_last:
                    self.activations.send(stage.get_fwd_send_ops(j % stage.slots))
                self._in_flight.append(j)
                self._next_forward = j + 1
                result.peak_in_flight = max(result.peak_in_flight, len(self._in_flight))
            elif kind == "backward":
                if stage.is_first and not stage.is_last and self._next_forward < steps * m:
                    reader.read_ahead(self._next_forward)
                next(backwards, None)
                begin = self._now()
                version = stage.backward_microbatch(j, loss_of.pop(j, None))
                self._note(kind, j, k, version, begin)
                self.gradient_messages.send(stage.get_bwd_send_ops(j % stage.slots))
                self._in_flight.remove(j)
                sets = stage.holds_gradients + sum(bool(batch.gradients) for batch in self._pending)
                result.peak_gradient_sets = max(result.peak_gradient_sets, sets)
            else:
                if stage.is_last:
                    result.losses.append(batch_loss)
                    batch_loss = 0.0
                gradients = stage.take_gradients()
                if self.exchange.needed:
                    self._pending.append(self.exchange.post(k, gradients))
                else:
                    self._step(Pending(k, gradients))
        self._settle(steps)
        self._set_solution()
        self.activations.drain()
        self.gradient_messages.drain()
        result.events = [Event(*fields) for fields in self._trace]
        result.peak_versions = stage.store.peak
        result.input_digest, result.target_digest = reader.digests
        return result

    def _loss(self, output: Tensor, targets: Tensor | None) -> Tensor:
        assert targets is not None
        loss = self.job.loss(self.job.as_output(output), targets) / self.job.scale
        assert isinstance(loss, Tensor)
        return loss

    def _note(self, kind: Kind, j: int, k: int, version: int, begin: float) -> float:
        """An event of the trace; returns when it ended."""
        end = self._now()
        if kind != "step":
            self.result.busy += end - begin
        self._trace.append((kind, self.stage.stage_index, j, k, version, begin, end))
        return end

    def _now(self) -> float:
        """The time; on a GPU when what was asked of this stage's stream is done, data it waits for included.

        Other streams are left alone: a receive that is posted ahead ends only when a neighbour has gone on.
        """
        if self._on_gpu:
            torch.cuda.current_stream(self.stage.device).synchronize()
        return time.perf_counter()

    def _prepare(self, reader: DataReader, j: int) -> None:
        """Let torch find the shapes of the messages and allocate the ring's buffers (runs one forward, no step)."""
        stage = self.stage
        stage.has_backward = True
        inputs, targets = reader.peek(j)
        stage.store.bind(stage.store.newest)
        buffers = [(buffer, buffer.clone()) for buffer in stage.module.buffers()]
        self._initialize_stage((inputs,) if stage.is_first else (), {}, targets if stage.is_last else None)
        stage.clear_runtime_states()
        for buffer, before in buffers:
            buffer.copy_(before)

    def _receives(self, kind: str, first: int, stop: int) -> Iterator[None]:
        """Waits, each time it is advanced, for the next message of one direction; keeps one more posted ahead."""
        stage = self.stage
        if (kind == "forward" and stage.is_first) or (kind == "backward" and stage.is_last):
            return
        direction = self.activations if kind == "forward" else self.gradient_messages
        ops = stage.get_fwd_recv_ops if kind == "forward" else stage.get_bwd_recv_ops
        posted: deque[list[Message]] = deque()
        for j in range(first, stop):
            while j + len(posted) < min(j + 2, stop):
                posted.append(direction.receive(ops((j + len(posted)) % stage.slots)))
            for message in posted.popleft():
                message.wait()
            yield

    def _settle(self, version: int) -> None:
        """Take the steps that were put off, up to the one that writes ``version``."""
        while self._pending and self.stage.store.newest < version:
            self._step(self._pending.popleft())

    def _step(self, pending: Pending) -> None:
        """Optimizer step k: writes version k + 1; versions that no microbatch can read any more are dead."""
        store, schedule, s, k = self.stage.store, self.stage.schedule, self.stage.stage_index, pending.k
        begin = time.perf_counter()
        norm = self.exchange.settle(pending)
        if norm is not None:
            self.result.norms.append(norm)
        # Those from (k + 1) m on too: where steps are put off they may be done, but a checkpoint runs them again.
        unread = (*self._in_flight, self._next_forward, (k + 1) * schedule.microbatches)
        store.drop_below(min(schedule.version(s, j) for j in unread))
        store.begin_step()
        for name, handle in store.handles.items():
            handle.grad = pending.gradients.get(name)
        if pending.skip:
            self.result.skipped.append(k)  # a version like every other, with the weights of the one before
            if isinstance(self._optimizer, Wrapper):
                self._optimizer.leave_out()
        elif self._optimizer is not None:
            self._optimizer.step()
        for handle in store.handles.values():
            handle.grad = None
        store.end_step(k + 1)
        self.result.step_ends.append(self._note("step", (k + 1) * schedule.microbatches - 1, k, k + 1, begin))
        every = self.job.snapshot_every
        if k + 1 == self.job.steps or (every and (k + 1) % every == 0):
            self.result.snapshots[k + 1] = self._weights(k + 1)
        checkpoints = self.job.checkpoints
        if self._hooks.save is not None and checkpoints is not None and (k + 1) % checkpoints.every == 0:
            self._hooks.save(k + 1)
        self._hooks.on_step(k + 1, self.result.losses[k] if self.stage.is_last else None, self.result.busy)

    def _set_solution(self) -> None:
        """The last weights, or what the optimizer says that it has trained instead."""
        weights = self._weights(self.job.steps)
        if isinstance(self._optimizer, Wrapper):
            name_of = {id(handle): name for name, handle in self.stage.store.handles.items()}
            for p, found in zip(parameters_of(self._optimizer), self._optimizer.solution(), strict=True):
                weights[name_of[id(p)]] = found.cpu()
        self.result.solution = weights

    def _weights(self, version: int) -> dict[str, Tensor]:
        store = self.stage.store
        weights = store.handles if store.masters else store.leaves(version)
        return {name: weight.detach().cpu().clone() for name, weight in weights.items()}
