"""A schedule is a value: which action a device does next, and which weight version each microbatch reads.

Nothing here knows torch. The clock, the delay counts, the memory, the validity checks and the engine all read this one
value. :mod:`pipeline.schedules.TEMPLATE` shows how to write another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pipeline.errors import InputError
from pipeline.events import Kind


class Action(NamedTuple):
    """What a device does next.

    kind: of the event; microbatch: its global index (of ``step`` and ``reduce``: the last of the batch); step: the
    optimizer step it belongs to; stage: model stage; version: weight version read, by ``step`` the version written;
    pipeline: which copy of the stage.
    """

    kind: Kind
    microbatch: int
    step: int
    stage: int
    version: int
    pipeline: int = 0

    @property
    def copy(self) -> tuple[int, int]:
        """(stage, pipeline): the copy of the weights that the action works on."""
        return self.stage, self.pipeline


def positive_integer(field: str, value: object) -> int:
    """``value`` if it is an integer of at least 1; raises :class:`InputError` naming the field otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{field} = {value!r}: allowed are integers of at least 1")
    return value


def multiple_of(field: str, value: int, base: int, who: str) -> None:
    """Raises :class:`InputError` naming the field unless ``value`` is a multiple of ``base``."""
    if value % base:
        raise InputError(f"{field} = {value!r}: {who} allows multiples of {base}")


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules.

    stages: S, depth of the pipeline; microbatches: m, microbatches whose gradients enter one optimizer step.
    Raises InputError, naming the field, for S and m that the schedule does not allow.

    What this class says is true of the simplest pipelines: S devices, stage s on device s, one copy of the weights.
    """

    stages: int
    microbatches: int

    name: ClassVar[str] = ""
    #: One line for tables and help.
    title: ClassVar[str] = ""
    #: Where it was published.
    reference: ClassVar[str] = ""
    #: True where the pipeline drains before each optimizer step.
    flushes: ClassVar[bool] = False
    #: True where ``backward`` is the gradient of the inputs alone and ``weight`` follows later.
    splits_backward: ClassVar[bool] = False
    #: True where the copies of a stage sum their gradients: pipeline 0's copy steps, the others receive its weights.
    shares_weights: ClassVar[bool] = False
    #: Microbatches per step when the user names none; None: S.
    default_microbatches: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        positive_integer("stages", self.stages)
        positive_integer("microbatches", self.microbatches)

    @property
    def options(self) -> dict[str, Any]:
        """Every setting by its name, JSON-ready."""
        return dict(vars(self))

    @property
    def synchronous_steps(self) -> int:
        """How many steps at the beginning of a run have delay 0, before the order starts afresh; see
        :mod:`pipeline.schedules.synchronous_start`."""
        return 0

    def rest_after(self, steps: int) -> Schedule:
        """The schedule of what is left of a run after its first ``steps``, counted from 0 again."""
        return self

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.stages

    @property
    def model_stages(self) -> int:
        """Number of pieces that the model is cut into; the stage of an action counts these."""
        return self.stages

    @property
    def pipelines(self) -> int:
        """Number of copies of each stage's weights."""
        return 1

    def device_of(self, stage: int, pipeline: int = 0) -> int:
        """Device that holds this copy of the stage."""
        return stage

    def copies(self, device: int) -> list[tuple[int, int]]:
        """(stage, pipeline) of every copy that ``device`` holds."""
        every = ((s, p) for s in range(self.model_stages) for p in range(self.pipelines))
        return [(s, p) for s, p in every if self.device_of(s, p) == device]

    def step_of(self, microbatch: int) -> int:
        """Optimizer step that the gradient of ``microbatch`` enters."""
        return microbatch // self.microbatches

    def pipeline_of(self, microbatch: int) -> int:
        """Pipeline that ``microbatch`` goes through."""
        return 0

    def version(self, stage: int, microbatch: int) -> int:
        """Weight version that the forward of ``microbatch`` reads at ``stage``."""
        raise NotImplementedError

    def backward_version(self, stage: int, microbatch: int) -> int:
        """Weight version that its backward reads there: the same, unless a schedule keeps no old versions."""
        return self.version(stage, microbatch)

    def versions_stored(self, stage: int) -> int:
        """Largest number of weight versions that a copy of ``stage`` holds at a time, the newest included."""
        raise NotImplementedError

    def in_flight(self, stage: int) -> int:
        """Largest number of microbatches between forward and backward at ``stage``: S - s for a 1F1B order."""
        return self.stages - stage

    @property
    def start_up(self) -> int:
        """Optimizer steps, at most, until every step is like the one before."""
        versions = max(self.versions_stored(stage) for stage in range(self.model_stages))
        return -(-2 * self.stages // self.microbatches) + versions

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        """The actions of ``device`` over ``steps`` optimizer steps, in order: one forward, one backward in turn.

        S - 1 - s warm-up forwards run ahead; with :attr:`flushes` this restarts in every batch, otherwise it happens
        once in the run.
        """
        positive_integer("steps", steps)
        window = self.microbatches if self.flushes else self.microbatches * steps
        for first in range(0, self.microbatches * steps, window):
            yield from self.one_forward_one_backward(device, first, first + window)

    def one_forward_one_backward(self, stage: int, first: int, stop: int) -> Iterator[Action]:
        """Microbatches ``first`` to ``stop`` - 1 at a stage: forwards run ahead by at most :meth:`in_flight`."""
        forward, ahead = first, self.in_flight(stage)
        for backward in range(first, stop):
            while forward < stop and forward - backward < ahead:
                yield self.forward(stage, forward)
                forward += 1
            yield self.backward(stage, backward)
            if (backward + 1) % self.microbatches == 0:
                yield self.step(stage, backward)

    def forward(self, stage: int, j: int) -> Action:
        """The forward of microbatch j."""
        return Action("forward", j, self.step_of(j), stage, self.version(stage, j), self.pipeline_of(j))

    def backward(self, stage: int, j: int) -> Action:
        """The backward of microbatch j."""
        return Action("backward", j, self.step_of(j), stage, self.backward_version(stage, j), self.pipeline_of(j))

    def weight(self, stage: int, j: int) -> Action:
        """The weight gradient of microbatch j, where it is split from the backward."""
        return Action("weight", j, self.step_of(j), stage, self.backward_version(stage, j), self.pipeline_of(j))

    def step(self, stage: int, j: int, pipeline: int = 0) -> Action:
        """The optimizer step whose last microbatch is j."""
        k = self.step_of(j)
        return Action("step", j, k, stage, k + 1, pipeline)

    @property
    def runs_on_engine(self) -> bool:
        """True where the engine can run it: stage s on device s, one copy, forward and backward on one version."""
        return (
            self.model_stages == self.devices
            and self.pipelines == 1
            and not self.splits_backward
            and type(self).backward_version is Schedule.backward_version
        )

    @property
    def one_version_everywhere(self) -> bool:
        """True where a microbatch reads the same version at every stage."""
        several = range(self.microbatches * (self.start_up + 2))
        return all(self.version(s, j) == self.version(0, j) for s in range(1, self.model_stages) for j in several)

    def refuse_without_slack(self, field: str, value: object) -> None:
        """Raises InputError where a step cannot wait for a number that all stages have to agree on.

        Where a microbatch reads the same version at every stage, a later stage needs version k + 1 only for a
        microbatch that stage 0 has sent after its own step k: by then every stage has its gradient of batch k.
        """
        if not self.one_version_everywhere:
            raise InputError(
                f"{field} = {value!r}: allowed where a microbatch reads one weight version at every stage; {self.name} "
                "would have to drain the pipeline before every step"
            )
