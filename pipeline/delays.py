"""Optimizer-step delays counted from a table of events: of the clock or of a real run, by the same functions.

The optimizer-step delay says how many versions the weights moved between where a gradient was computed and what it
updates. Where forward and backward read different versions, each has a delay of its own, and their difference is the
gap. The other count, updates of single stages in between, is in :mod:`pipeline.block_delays`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from pipeline.block_delays import DEFAULT_CONVENTION, block_update_delay
from pipeline.clock import simulate
from pipeline.errors import InputError
from pipeline.events import Event
from pipeline.schedules import make_schedule
from pipeline.schedules.base import Schedule


class MicrobatchDelay(NamedTuple):
    """Delay of one microbatch's gradient at one stage, in optimizer steps.

    forward, backward: of the version that the forward and the backward read.
    """

    microbatch: int
    step: int
    forward: int
    backward: int

    @property
    def delay(self) -> int:
        """Age of the oldest weights that went into the gradient."""
        return max(self.forward, self.backward)

    @property
    def gap(self) -> int:
        """Versions between forward and backward."""
        return abs(self.forward - self.backward)


def microbatch_delays(events: Sequence[Event]) -> dict[int, list[MicrobatchDelay]]:
    """Stage -> delay of every microbatch, in order of the microbatches.

    A gradient is complete with its backward, or with its weight gradient where that is split off, and is applied by the
    next step of its copy, which writes version w: its delay is w - 1 - v if it was taken at version v.

    Raises InputError where a gradient is never applied, is applied twice, or is consumed by a wrong step.
    """
    found: dict[int, list[MicrobatchDelay]] = defaultdict(list)
    pending: dict[tuple[int, int], list[Event]] = defaultdict(list)
    read: dict[tuple[str, int, int], int] = {}
    producer = "weight" if any(event.kind == "weight" for event in events) else "backward"
    # Stable: actions that start together stay in the order given, on the clock that of their device.
    for event in sorted(events, key=lambda e: (e.stage, e.pipeline, e.start)):
        key = (event.kind, event.stage, event.microbatch)
        if event.kind in ("forward", "backward", "weight"):
            if key in read:
                raise InputError(
                    f"microbatch {event.microbatch} has two {event.kind}s at stage {event.stage}, so its gradient "
                    "counts twice"
                )
            read[key] = event.version
            if event.kind == producer:
                pending[event.copy].append(event)
        elif event.kind == "step":
            waiting = pending.pop(event.copy, [])
            # A step that was put off comes after backwards of later batches: they wait for steps of their own.
            pending[event.copy] = [g for g in waiting if g.step > event.step]
            for g in waiting:
                if g.step < event.step:
                    raise InputError(
                        f"the gradient of microbatch {g.microbatch} at stage {g.stage} belongs to step {g.step} and "
                        f"was applied by step {event.step}"
                    )
                if g.step > event.step:
                    continue
                newest = event.version - 1
                forward = read.get(("forward", g.stage, g.microbatch), g.version)
                found[g.stage].append(MicrobatchDelay(g.microbatch, g.step, newest - forward, newest - g.version))
    lost = {copy[0]: [g.microbatch for g in left] for copy, left in pending.items() if left}
    if lost:
        raise InputError(f"gradients that no step applied, by stage: {lost}")
    return {stage: sorted(delays) for stage, delays in sorted(found.items())}


def delays_per_microbatch(events: Sequence[Event]) -> dict[int, list[int]]:
    """Stage -> optimizer-step delay of every microbatch, in their order; see :func:`microbatch_delays`."""
    return {stage: [d.delay for d in delays] for stage, delays in microbatch_delays(events).items()}


def optimizer_step_delay(events: Sequence[Event]) -> list[int]:
    """Optimizer-step delay of each stage: the largest over the microbatches of the run.

    Of a schedule whose delays settle (see :mod:`pipeline.validity`) that of the steady state: start-up is never staler.
    """
    return [max(delays) for delays in delays_per_microbatch(events).values()]


def version_mismatch(events: Sequence[Event]) -> int:
    """Largest difference between the versions that a microbatch's forward and backward read at a stage."""
    return max((d.gap for delays in microbatch_delays(events).values() for d in delays), default=0)


def delay_summary(schedule: Schedule) -> dict[str, list[Any]]:
    """Delays of a schedule by enumeration of its events, one entry per stage, from the input side.

    optimizer_step_delay: largest; mean_delay: mean over the steady steps (exact fractions); backward_delay: largest of
    the backward; version_gap: largest between forward and backward; gap_microbatches: how many microbatches of a step
    have a gap, at most; by_microbatch: every delay, start-up first.
    """
    steps = schedule.start_up + 4  # several steady ones
    by_stage = microbatch_delays(simulate(schedule, steps))
    result: dict[str, list[Any]] = defaultdict(list)
    for delays in by_stage.values():
        steady = [d for d in delays if d.microbatch >= schedule.start_up * schedule.microbatches]
        with_gap: dict[int, int] = defaultdict(int)
        for d in delays:
            with_gap[d.step] += d.gap > 0
        result["optimizer_step_delay"].append(max(d.delay for d in delays))
        result["mean_delay"].append(Fraction(sum(d.delay for d in steady), len(steady)))
        result["backward_delay"].append(max(d.backward for d in delays))
        result["version_gap"].append(max(d.gap for d in delays))
        result["gap_microbatches"].append(max(with_gap.values()))
        result["by_microbatch"].append([d.delay for d in delays])
    return dict(result)


def delays_of(
    name: str, stages: int, microbatches: int | None = None, convention: str = DEFAULT_CONVENTION, **options: Any
) -> dict[str, Any]:
    """Delays of a schedule by enumeration of its events: name, stages, microbatches, both counts.

    options: see :func:`~pipeline.schedules.make_schedule`. ``block_update_delay`` is None but for PipeDream with a step
    after every microbatch. Raises InputError for what the schedule does not allow.
    """
    schedule = make_schedule(name, stages, microbatches, **options)
    result: dict[str, Any] = {"name": name, "stages": stages, "microbatches": schedule.microbatches}
    result |= delay_summary(schedule)
    result["block_update_delay"] = None
    if name == "pipedream" and schedule.microbatches == 1:
        events = simulate(schedule, 6 * stages)
        result["block_update_delay"] = block_update_delay(events, stages, convention)
    return result
