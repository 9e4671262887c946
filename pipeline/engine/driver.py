"""The streaming driver: runs one stage's actions in the schedule's order, for as many steps as asked.

Receives are posted one ahead, sends are reaped later, each direction has a process group of its own, and data is
pulled by global microbatch index on the first and on the last stage. The driver knows no schedule by name.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor
from torch.distributed.pipelining.schedules import PipelineScheduleSingle
from torch.optim import Optimizer

from pipeline.engine.stage import VersionedStage
from pipeline.engine.transport import Direction, Message
from pipeline.events import Event

Loss = Callable[[Tensor, Tensor], Tensor]


class Data(Protocol):
    """Microbatches by global index."""

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of microbatch j."""
        ...


@dataclass
class StageResult:
    """What one stage brings home.

    events: its trace, times in seconds; losses: mean training loss of each step at the version used (last stage).
    snapshots: step count k -> weights after k steps, by full parameter name (host tensors).
    input_digest, target_digest: sha256 of the inputs (first stage) and targets (last stage) consumed, in order.
    """

    stage: int
    events: list[Event] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    snapshots: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    input_digest: str = ""
    target_digest: str = ""
    peak_versions: int = 0
    peak_in_flight: int = 0


class StreamingDriver(PipelineScheduleSingle):
    """Drives a :class:`VersionedStage` without end: a schedule of torch's with a step loop of its own."""

    def __init__(self, stage: VersionedStage, loss: Loss, activations: Direction, gradients: Direction) -> None:
        super().__init__(stage, n_microbatches=stage.slots, loss_fn=loss, scale_grads=False)
        self.stage = stage
        self.loss = loss
        self.activations = activations
        self.gradient_messages = gradients

    def _step_microbatches(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("a streaming pipeline has no separate step; use run()")

    def run(
        self,
        steps: int,
        optimizer: Optimizer,
        data: Data,
        *,
        snapshot_every: int = 0,
        on_step: Callable[[int, float | None], None] = lambda k, loss: None,
    ) -> StageResult:
        """Train for ``steps`` optimizer steps; weights are kept every ``snapshot_every`` steps and at the end."""
        stage, schedule, s = self.stage, self.stage.schedule, self.stage.stage_index
        m = schedule.microbatches
        result = StageResult(s)
        input_hash, target_hash = hashlib.sha256(), hashlib.sha256()
        self._prepare(data)
        forwards, backwards = self._receives("forward", steps), self._receives("backward", steps)
        in_flight: deque[int] = deque()
        loss_of: dict[int, Tensor] = {}
        next_forward = 0
        batch_loss = 0.0
        for kind, j, k, *_ in schedule.actions(s, steps):
            if kind == "forward":
                inputs = targets = None
                if stage.is_first or stage.is_last:
                    inputs, targets = data.microbatch(j)
                    input_hash.update(inputs.cpu().numpy().tobytes())
                    target_hash.update(targets.cpu().numpy().tobytes())
                    inputs, targets = inputs.to(stage.device), targets.to(stage.device)
                next(forwards, None)
                start = time.perf_counter()
                output, version = stage.forward_microbatch(j, (inputs,) if stage.is_first else ())
                if stage.is_last:
                    assert targets is not None
                    loss_of[j] = self.loss(output, targets) / m
                    batch_loss += loss_of[j].item()
                end = time.perf_counter()
                if not stage.is_last:
                    self.activations.send(stage.get_fwd_send_ops(j % stage.slots))
                in_flight.append(j)
                next_forward = j + 1
                result.peak_in_flight = max(result.peak_in_flight, len(in_flight))
            elif kind == "backward":
                next(backwards, None)
                start = time.perf_counter()
                version = stage.backward_microbatch(j, loss_of.pop(j, None))
                end = time.perf_counter()
                self.gradient_messages.send(stage.get_bwd_send_ops(j % stage.slots))
                in_flight.remove(j)
            else:
                start = time.perf_counter()
                version = k + 1
                needed = [*in_flight, next_forward] if next_forward < m * steps else list(in_flight)
                self._step(optimizer, k, min((schedule.version(s, i) for i in needed), default=version))
                end = time.perf_counter()
                if version == steps or (snapshot_every and version % snapshot_every == 0):
                    result.snapshots[version] = self._weights(version)
                if stage.is_last:
                    result.losses.append(batch_loss)
                on_step(k, batch_loss if stage.is_last else None)
                batch_loss = 0.0
            result.events.append(Event(kind, s, j, k, version, start, end))
        self.activations.drain()
        self.gradient_messages.drain()
        result.peak_versions = stage.store.peak
        if stage.is_first:
            result.input_digest = input_hash.hexdigest()
        if stage.is_last:
            result.target_digest = target_hash.hexdigest()
        return result

    def _prepare(self, data: Data) -> None:
        """Let torch find the shapes of the messages and allocate the ring's buffers (runs one forward, no step)."""
        stage = self.stage
        stage.has_backward = True
        inputs, targets = (t.to(stage.device) for t in data.microbatch(0))
        stage.store.bind(0)
        self._initialize_stage((inputs,) if stage.is_first else (), {}, targets if stage.is_last else None)
        stage.clear_runtime_states()

    def _receives(self, kind: str, steps: int) -> Iterator[None]:
        """Waits, each time it is advanced, for the next message of one direction; keeps one more posted ahead."""
        stage = self.stage
        if (kind == "forward" and stage.is_first) or (kind == "backward" and stage.is_last):
            return
        direction = self.activations if kind == "forward" else self.gradient_messages
        ops = stage.get_fwd_recv_ops if kind == "forward" else stage.get_bwd_recv_ops
        total = stage.schedule.microbatches * steps
        posted: deque[list[Message]] = deque()
        for j in range(total):
            while j + len(posted) < min(j + 2, total):
                posted.append(direction.receive(ops((j + len(posted)) % stage.slots)))
            for message in posted.popleft():
                message.wait()
            yield

    def _step(self, optimizer: Optimizer, k: int, needed: int) -> None:
        """Optimizer step k: writes version k + 1; versions below ``needed`` are dead."""
        store = self.stage.store
        store.drop_below(needed)
        store.begin_step()
        for name, handle in store.handles.items():
            handle.grad = self.stage.gradients.get(name)
        optimizer.step()
        for handle in store.handles.values():
            handle.grad = None
        self.stage.gradients = {}
        store.end_step(k + 1)

    def _weights(self, version: int) -> dict[str, Tensor]:
        leaves = self.stage.store.leaves(version)
        return {name: leaf.detach().cpu().clone() for name, leaf in leaves.items()}

