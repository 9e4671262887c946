"""A training run as a value: what the engine, torch's own schedules and the oracle are all given."""

from __future__ import annotations

import math
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from pipeline.errors import InputError
from pipeline.schedules.base import Schedule, positive_integer

NamedParameters = list[tuple[str, Any]]
REDUCTIONS = ("mean", "sum")
DRIVERS = ("streaming", "torch")
NORMS = (2.0, math.inf)


class Data(Protocol):
    """Microbatches by global index; the same index is always the same microbatch, in tensors that stay as they are."""

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of microbatch j; shapes and dtypes do not depend on j."""
        ...


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints go and how often: after every ``every``-th optimizer step; the last ``keep`` stay.

    settings: what describes the run, kept beside the weights (JSON-ready).
    """

    folder: str
    every: int
    keep: int = 2
    settings: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        positive_integer("checkpoint_every", self.every)
        positive_integer("keep", self.keep)


@dataclass(frozen=True)
class Job:
    """A model as a list of layers, an optimizer, data, a loss and a schedule. Everything must be picklable.

    layers: () -> list of modules, the same on every call (it is called after ``torch.manual_seed(seed)``, so default
    initialisation depends on neither rank nor number of stages); each takes the one tensor that the layer before
    returns. One Parameter object in two layers is a tied weight.
    optimizer: [(name, parameter)] -> any torch optimizer over them; a stage passes its own parameters.
    data: object with ``microbatch(j)``; loss: (output, target) -> scalar.
    steps: optimizer steps in all; parts: layer indices of each stage (default: as even as possible).
    reduction: ``mean``: the loss of a batch is the mean over its microbatches; ``sum``: their sum.
    seed: of initial weights, and of what layers draw (dropout), which depends on (seed, layer, microbatch) alone.
    recompute: keep only layer inputs, run each layer again in the backward.
    clip: largest norm of the batch gradient over the whole model (None: no clipping), by torch's
    ``clip_grad_norm_``; clip_norm: 2 or inf.
    skip_nonfinite: leave out the optimizer step of every stage where the batch gradient of any of them holds Inf or
    NaN: the next weight version equals the one before, optimizer and corrections stay as they are.
    compute: dtype of forwards and backwards (None: that of the layers); the optimizer always works on the layers' own
    dtype. Losses are then taken on float32 outputs.
    snapshot_every: keep the weights every so many steps (0: only at the end).
    confirm: compare a checksum of the weights with their version tag at every forward and backward (slow).
    driver: ``streaming``: ours; ``torch``: torch's own Schedule1F1B or ScheduleGPipe, for 1f1b and gpipe only.
    checkpoints: when to save; resume: folder of a checkpoint to go on from.

    Raises InputError for values that cannot run.
    """

    schedule: Schedule
    layers: Callable[[], list[nn.Module]]
    optimizer: Callable[[NamedParameters], torch.optim.Optimizer]
    data: Any
    loss: Callable[[Any, Any], Any]
    steps: int
    parts: tuple[range, ...] | None = None
    reduction: str = "mean"
    seed: int = 0
    recompute: bool = False
    clip: float | None = None
    clip_norm: float = 2.0
    skip_nonfinite: bool = False
    compute: torch.dtype | None = None
    snapshot_every: int = 0
    confirm: bool = False
    driver: str = "streaming"
    checkpoints: Checkpoints | None = None
    resume: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, Schedule):
            raise InputError(f"schedule = {self.schedule!r}: allowed is what make_schedule returns")
        for field in ("layers", "optimizer", "loss"):
            if not callable(getattr(self, field)):
                raise InputError(f"{field} = {getattr(self, field)!r}: allowed is a function, see Job")
        if not callable(getattr(self.data, "microbatch", None)):
            raise InputError(f"data = {type(self.data).__name__}: allowed are objects with a method microbatch(j)")
        if self.compute is not None and not getattr(self.compute, "is_floating_point", False):
            raise InputError(f"compute = {self.compute!r}: allowed are None and floating-point dtypes of torch")
        positive_integer("steps", self.steps)
        every = self.snapshot_every
        if isinstance(every, bool) or not isinstance(every, int) or every < 0:
            raise InputError(f"snapshot_every = {every!r}: allowed are integers of at least 0")
        for field, allowed in (("reduction", REDUCTIONS), ("driver", DRIVERS), ("clip_norm", NORMS)):
            if getattr(self, field) not in allowed:
                raise InputError(f"{field} = {getattr(self, field)!r}: allowed are {', '.join(map(str, allowed))}")
        if not self.schedule.runs_on_engine:
            from pipeline.schedules import engine_schedules

            raise InputError(f"schedule = {self.schedule.name!r}: the engine runs {', '.join(engine_schedules())}")
        if self.clip is not None:
            if isinstance(self.clip, bool) or not isinstance(self.clip, (int, float)) or not 0 < self.clip < math.inf:
                raise InputError(f"clip = {self.clip!r}: allowed are finite numbers above 0")
            self.schedule.refuse_without_slack("clip", self.clip)
        if not isinstance(self.skip_nonfinite, bool):
            raise InputError(f"skip_nonfinite = {self.skip_nonfinite!r}: allowed are True and False")
        if self.skip_nonfinite:
            self.schedule.refuse_without_slack("skip_nonfinite", True)
        if self.driver == "torch":
            if self.schedule.name not in ("1f1b", "gpipe"):
                raise InputError(f"schedule = {self.schedule.name!r}: torch's own schedules here are gpipe, 1f1b")
            if self.clip is not None or self.compute is not None or self.checkpoints or self.resume:
                raise InputError("driver = 'torch': allowed without clip, compute, checkpoints and resume")
            if self.skip_nonfinite:
                raise InputError("driver = 'torch': allowed without skip_nonfinite")
        if self.parts is not None:
            if len(self.parts) != self.schedule.stages:
                raise InputError(f"parts has {len(self.parts)} entries: the schedule has {self.schedule.stages} stages")
            if not all(isinstance(part, range) and len(part) for part in self.parts) or not self._in_order():
                raise InputError(f"parts = {self.parts!r}: allowed are ranges that hold every layer once, in order")

    def _in_order(self) -> bool:
        every = [index for part in self.parts or () for index in part]
        return every == list(range(len(every)))

    @property
    def scale(self) -> float:
        """What the loss of a microbatch is divided by."""
        return self.schedule.microbatches if self.reduction == "mean" else 1

    def as_input(self, inputs: Tensor) -> Tensor:
        """A microbatch's inputs as the first layer takes them: floating-point ones in the dtype of the forwards."""
        if self.compute is not None and inputs.is_floating_point():
            return inputs.to(self.compute)
        return inputs

    def as_output(self, output: Tensor) -> Tensor:
        """What the last layer returns as the loss takes it: in float32 at least where forwards have another dtype."""
        if self.compute is not None:
            return output.to(torch.promote_types(output.dtype, torch.float32))
        return output

    def check_picklable(self) -> None:
        """Raises InputError naming the first field that a worker process could not be given."""
        for field in fields(self):
            value = getattr(self, field.name)
            try:
                if not isinstance(value, (int, str, float, type(None))):
                    pickle.dumps(value)
            except Exception as error:  # noqa: BLE001 - whatever pickling runs into
                raise InputError(
                    f"{field.name} = {_named(value)}: cannot be sent to a worker process "
                    f"({' '.join(str(error).split())}); allowed are what a module defines at its top level"
                ) from None
            origin = value if callable(value) else type(value)
            if getattr(origin, "__module__", None) == "__main__" and not main_is_a_file():
                raise InputError(
                    f"{field.name} = {_named(value)}: defined at a prompt, worker processes cannot find it; allowed "
                    "are what a file defines"
                )


def main_is_a_file() -> bool:
    """Whether a worker process can import what this process runs; not so at a prompt and for a script from stdin."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return path is not None and os.path.exists(path)


def _named(value: Any) -> str:
    return getattr(value, "__qualname__", None) or type(value).__qualname__
