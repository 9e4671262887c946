"""One table of events for the simulated clock and for the trace of a real run.

Everything that is read from a schedule (delays, timeline, bubble) is read from this table, so one function serves
the plan and the run. Microbatches, steps, stages and versions count from 0; version v is the weights after v
optimizer steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.errors import InputError

Kind = Literal["forward", "backward", "step"]
KINDS: tuple[Kind, ...] = ("forward", "backward", "step")


@dataclass(frozen=True, slots=True)
class Event:
    """One action of one stage.

    kind: ``forward``, ``backward`` or ``step``.
    stage: pipeline stage, 0 at the input side.
    microbatch: global microbatch index; for ``step`` the last microbatch of its batch.
    step: index k of the optimizer step that the microbatch belongs to.
    version: weight version read (forward, backward) or written (step: k + 1).
    start, end: slots on the clock, seconds in a trace.
    """

    kind: Kind
    stage: int
    microbatch: int
    step: int
    version: int
    start: float
    end: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"event kind {self.kind!r}: allowed are {', '.join(KINDS)}")
        if self.end < self.start:
            raise InputError(f"event {self.kind} of microbatch {self.microbatch} ends before it starts")


def as_rows(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events as JSON-ready dictionaries, in the order given."""
    return [asdict(event) for event in events]


def from_rows(rows: Iterable[dict[str, Any]]) -> list[Event]:
    """Events from dictionaries written by :func:`as_rows`."""
    return [Event(**row) for row in rows]


def of_stage(events: Iterable[Event], stage: int) -> Iterator[Event]:
    """Events of one stage, in the order given."""
    return (event for event in events if event.stage == stage)
