"""One table of events for the simulated clock and for the trace of a real run.

Everything that is read from a schedule (delays, timeline, bubble, memory) is read from this table, so one function
serves the plan and the run. Microbatches, steps, stages and versions count from 0; version v is the weights after v
optimizer steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pipeline.errors import InputError

Kind = Literal["forward", "backward", "weight", "reduce", "step"]
KINDS: tuple[Kind, ...] = ("forward", "backward", "weight", "reduce", "step")

#: A duration or a point in time: integers and fractions keep the clock exact.
Time = int | float | Fraction


@dataclass(frozen=True, slots=True)
class Event:
    """One action of one stage.

    kind: ``forward``; ``backward`` (of schedules that split it: the gradient of the inputs); ``weight`` (the gradient
    of the weights, split off); ``reduce`` (copies of a stage sum their gradients or average their weights); ``step``.
    stage: model stage, 0 at the input side.
    microbatch: global microbatch index; for ``step`` and ``reduce`` the last microbatch of its batch.
    step: index k of the optimizer step that the microbatch belongs to.
    version: weight version read (forward, backward, weight, reduce) or written (step: k + 1).
    start, end: slots on the clock, seconds in a trace.
    pipeline: which of several copies of the stage; device: where it ran (default: the stage's own number).
    """

    kind: Kind
    stage: int
    microbatch: int
    step: int
    version: int
    start: Time
    end: Time
    pipeline: int = 0
    device: int = -1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"event kind {self.kind!r}: allowed are {', '.join(KINDS)}")
        if self.end < self.start:
            raise InputError(f"event {self.kind} of microbatch {self.microbatch} ends before it starts")
        if self.device < 0:
            object.__setattr__(self, "device", self.stage)

    @property
    def copy(self) -> tuple[int, int]:
        """(stage, pipeline): the copy of the weights that the action works on."""
        return self.stage, self.pipeline


FIELDS = ("kind", "stage", "microbatch", "step", "version", "start", "end", "pipeline", "device")


def plain_number(value: Time) -> int | float:
    """``value`` as JSON can carry it: whole numbers stay integers, fractions become floats."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def as_rows(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events as JSON-ready dictionaries, in the order given."""
    rows = [{name: getattr(event, name) for name in FIELDS} for event in events]
    for row in rows:
        row["start"], row["end"] = plain_number(row["start"]), plain_number(row["end"])
    return rows


def as_columns(events: Iterable[Event]) -> dict[str, list[Any]]:
    """The events as JSON-ready columns, in the order given: one list a field."""
    rows = as_rows(events)
    return {name: [row[name] for row in rows] for name in FIELDS}


def from_columns(columns: dict[str, list[Any]]) -> list[Event]:
    """Events from columns written by :func:`as_columns`."""
    return [Event(*values) for values in zip(*(columns[name] for name in FIELDS), strict=True)]


def from_rows(rows: Iterable[dict[str, Any]]) -> list[Event]:
    """Events from dictionaries written by :func:`as_rows`."""
    return [Event(**row) for row in rows]
