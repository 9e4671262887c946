"""A synchronous start: the first K0 steps have delay 0, then the asynchronous schedule starts afresh from W(K0).

Batch k < K0 reads version k, in the order of 1F1B with a flush; batch k >= K0 reads version max(v, K0), where v is what
it would read without the start. At the switch the pipeline fills once more: W(K0) is to the rest what W(0) is to a run
without a start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.schedules.base import Action, Schedule, positive_integer
from pipeline.schedules.one_f_one_b import OneFOneB


@dataclass(frozen=True)
class SynchronousStart(Schedule):
    """``after``: the schedule of batch K0 = ``first_steps`` and all later ones. Made by :func:`synchronous_start`.

    It goes by the name of ``after``. What settles, settles as there: delay, period, bubble.
    """

    after: Schedule
    first_steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for word in ("name", "title", "reference"):
            object.__setattr__(self, word, getattr(self.after, word))

    @property
    def _start(self) -> Schedule:
        return OneFOneB(self.stages, self.microbatches)

    @property
    def options(self) -> dict[str, Any]:
        return self.after.options | {"synchronous_steps": self.first_steps}

    @property
    def synchronous_steps(self) -> int:
        return self.first_steps

    def rest_after(self, steps: int) -> Schedule:
        return synchronous_start(self.after, max(self.first_steps - steps, 0))

    def _split(self, microbatch: int) -> tuple[Schedule, int]:
        """The schedule that the microbatch belongs to, and the microbatch where that one begins."""
        first = self.first_steps * self.microbatches
        return (self._start, 0) if microbatch < first else (self.after, first)

    def version(self, stage: int, microbatch: int) -> int:
        part, first = self._split(microbatch)
        return part.version(stage, microbatch - first) + first // self.microbatches

    def backward_version(self, stage: int, microbatch: int) -> int:
        part, first = self._split(microbatch)
        return part.backward_version(stage, microbatch - first) + first // self.microbatches

    def versions_stored(self, stage: int) -> int:
        return self.after.versions_stored(stage)

    def in_flight(self, stage: int) -> int:
        return max(self._start.in_flight(stage), self.after.in_flight(stage))

    @property
    def start_up(self) -> int:
        return self.first_steps + self.after.start_up

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        first = min(positive_integer("steps", steps), self.first_steps)
        yield from self._start.actions(device, first)
        if steps > first:
            for a in self.after.actions(device, steps - first):
                yield a._replace(
                    microbatch=a.microbatch + first * self.microbatches, step=a.step + first, version=a.version + first
                )

    @property
    def runs_on_engine(self) -> bool:
        return self.after.runs_on_engine

    @property
    def one_version_everywhere(self) -> bool:
        return self.after.one_version_everywhere


def synchronous_start(schedule: Schedule, steps: int) -> Schedule:
    """``schedule`` after ``steps`` synchronous optimizer steps; itself for 0.

    Raises InputError for a number that is none, and for a schedule that is synchronous anyway or has several copies or
    pieces of a model on a device.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise InputError(f"synchronous_steps = {steps!r}: allowed are integers of at least 0")
    if steps == 0:
        return schedule
    if schedule.flushes or schedule.pipelines > 1 or schedule.model_stages != schedule.devices:
        raise InputError(
            f"synchronous_steps = {steps}: allowed with asynchronous schedules of one copy of each stage, one on each "
            f"device; not with {schedule.name}"
        )
    return SynchronousStart(schedule.stages, schedule.microbatches, schedule, steps)
