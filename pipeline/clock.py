"""A clock for schedules: every stage does its actions in order, each as soon as its inputs are there.

Sends do not block and cost ``hop``; an optimizer step takes ``step`` (0 by default, then it falls on the instant at
which the last backward of its batch ends).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline.errors import InputError
from pipeline.events import Event
from pipeline.schedules.base import Action, Schedule


def simulate(
    schedule: Schedule, steps: int, forward: float = 1, backward: float = 1, hop: float = 0, step: float = 0
) -> list[Event]:
    """Events of ``steps`` optimizer steps, sorted by (start, stage).

    forward, backward, hop, step: durations in slots (any unit, the events carry the same).

    Raises InputError for a negative or non-finite duration, and for an order that no clock can run.
    """
    for field, value in (("forward", forward), ("backward", backward), ("hop", hop), ("step", step)):
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{field} = {value!r}: allowed are finite durations of at least 0")
    S = schedule.stages
    duration = {"forward": forward, "backward": backward, "step": step}
    done: dict[tuple[str, int, int], float] = {}
    free = [0.0 if isinstance(forward, float) else 0] * S
    streams: list[Iterator[Action]] = [schedule.actions(s, steps) for s in range(S)]
    heads: list[Action | None] = [next(stream, None) for stream in streams]
    events: list[Event] = []
    progress = True
    while progress:
        progress = False
        for s in range(S):
            while (action := heads[s]) is not None:
                ready = _inputs_ready(action, s, S, done, hop)
                if ready is None:
                    break
                start = max(free[s], ready)
                end = start + duration[action.kind]
                if action.kind == "step":
                    version = action.step + 1
                else:
                    version = schedule.version(s, action.microbatch)
                    done[action.kind, s, action.microbatch] = end
                events.append(Event(action.kind, s, action.microbatch, action.step, version, start, end))
                free[s] = end
                heads[s] = next(streams[s], None)
                progress = True
    if any(head is not None for head in heads):
        waiting = {s: head for s, head in enumerate(heads) if head is not None}
        raise InputError(f"schedule {schedule.name!r} cannot run: these actions wait for ever: {waiting}")
    # Stable: a step of zero duration stays behind the backward that it follows.
    return sorted(events, key=lambda event: (event.start, event.stage))


def _inputs_ready(
    action: Action, s: int, S: int, done: dict[tuple[str, int, int], float], hop: float
) -> float | None:
    """When the inputs of ``action`` reach stage s, or None while they are not known yet."""
    j = action.microbatch
    if action.kind == "forward":
        if s == 0:
            return 0
        arrival = done.get(("forward", s - 1, j))
    elif action.kind == "backward":
        if s == S - 1:
            return done.get(("forward", s, j))
        arrival = done.get(("backward", s + 1, j))
    else:
        return 0
    return None if arrival is None else arrival + hop
