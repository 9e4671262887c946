"""A schedule is a value: which action a stage does next, and which weight version each microbatch reads.

Nothing here knows torch. The clock, the delay counts, the validity checks and the engine all read this one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.events import Kind


class Action(NamedTuple):
    """What a stage does next: ``kind`` of event, its global microbatch and the optimizer step it belongs to."""

    kind: Kind
    microbatch: int
    step: int


def positive_integer(field: str, value: object) -> int:
    """``value`` if it is an integer of at least 1; raises :class:`InputError` naming the field otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{field} = {value!r}: allowed are integers of at least 1")
    return value


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules.

    stages: S, number of pipeline stages, one device each.
    microbatches: m, microbatches whose gradients are averaged into one optimizer step.
    """

    stages: int
    microbatches: int

    name = ""
    #: True where the pipeline drains before each optimizer step.
    flushes = False

    def __post_init__(self) -> None:
        positive_integer("stages", self.stages)
        positive_integer("microbatches", self.microbatches)

    def version(self, stage: int, microbatch: int) -> int:
        """Weight version that ``microbatch`` reads at ``stage``, in its forward and in its backward."""
        raise NotImplementedError

    def versions_stored(self, stage: int) -> int:
        """Largest number of weight versions that ``stage`` holds at a time, the newest included."""
        raise NotImplementedError

    def in_flight(self, stage: int) -> int:
        """Largest number of microbatches between forward and backward at ``stage``: S - s for every 1F1B order."""
        return self.stages - stage

    def actions(self, stage: int, steps: int) -> Iterator[Action]:
        """The actions of ``stage`` over ``steps`` optimizer steps, in order: one forward, one backward in turn.

        S - 1 - s warm-up forwards run ahead; with :attr:`flushes` this restarts in every batch, otherwise it happens
        once in the run.
        """
        positive_integer("steps", steps)
        window = self.microbatches if self.flushes else self.microbatches * steps
        for first in range(0, self.microbatches * steps, window):
            yield from self._one_forward_one_backward(stage, first, first + window)

    def _one_forward_one_backward(self, stage: int, first: int, stop: int) -> Iterator[Action]:
        m = self.microbatches
        forward = first
        for backward in range(first, stop):
            while forward < stop and forward - backward < self.stages - stage:
                yield Action("forward", forward, forward // m)
                forward += 1
            yield Action("backward", backward, backward // m)
            if (backward + 1) % m == 0:
                yield Action("step", backward, backward // m)
