"""Period, bubble and fill of a schedule or of a run, read from its events.

The bubble is 1 - work/(devices x steady period). A flush is part of the period of schedules that flush; fill and drain
of the others happen once in a run and are reported apart, and so is what a synchronous start takes longer. Work is
forward and backward; an optimizer step, a reduction and a message are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.clock import UNIT, Costs, simulate
from pipeline.errors import InputError
from pipeline.events import Event, Time
from pipeline.schedules.base import Schedule

#: Patterns of up to so many steps are looked for, or as many as a stage has microbatches in flight: messages that take
#: time make an asynchronous pipeline repeat itself after as many steps.
LEAST_PATTERN = 8
#: Relative round-off between two periods that count as equal, for floating-point costs only.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Timing:
    """Times in the unit of the events, all per optimizer step (LocalSGD: per round) but the last.

    period: steady time of a step; work: forward and backward time of a step, summed over the devices; exact: whether
    the run repeats itself exactly (else the period is an average); fill_and_drain: what a whole run takes beyond its
    steps times the period.
    """

    devices: int
    microbatches: int
    period: Time
    work: Time
    exact: bool
    fill_and_drain: Time

    @property
    def bubble(self) -> Time:
        """Share of the devices' time without work, in the steady state."""
        room = self.devices * self.period
        return (room - self.work) / (Fraction(room) if not isinstance(room, float) else room) if room else 0

    @property
    def utilisation(self) -> Time:
        """1 - bubble."""
        return 1 - self.bubble

    def microbatches_per_time(self) -> Time:
        """Throughput in the steady state; 0 where nothing takes time."""
        return Fraction(self.microbatches) / self.period if self.period else 0


def timing_of_events(events: Sequence[Event], schedule: Schedule) -> Timing:
    """Timing of the events of whole steps, from the clock or from a run.

    Of a run with a synchronous start that of the steps behind it, if there are at least two.

    Raises InputError for fewer than two steps.
    """
    ends = _rounds(events, schedule)
    steps = len(ends[0])
    if steps < 2:
        raise InputError(f"steps = {steps}: a period needs at least 2")
    behind = _rounds(events, schedule, schedule.synchronous_steps)
    if len(behind[0]) > 1:
        ends = behind
    work = sum(e.end - e.start for e in events if e.kind in ("forward", "backward", "weight"))
    makespan = max(e.end for e in events) - min(e.start for e in events)
    # In the last steps no forwards are left to compete with the backwards.
    longest = longest_pattern(schedule)
    usable = max(2, len(ends[0]) - 1 - -(-2 * longest // schedule.microbatches))
    period = _pattern(ends, usable, longest)
    exact = period is not None
    if period is None:
        # The average over the later half, in whole patterns where they fit.
        last = usable - 1
        later = max(last - last // 2, 1)
        first = last - (later // longest * longest or later)
        period = _share(sum(times[last] - times[first] for times in ends), (last - first) * len(ends))
    extra = makespan - steps * period
    return Timing(schedule.devices, schedule.microbatches, period, _share(work, steps), exact, extra)


def timing(schedule: Schedule, costs: Costs = UNIT) -> Timing:
    """Timing of the schedule on the clock, long enough a run to reach the steady state.

    Raises InputError for costs that do not fit.
    """
    least = 8 + -(-12 * schedule.stages // schedule.microbatches)
    # Long enough for the longest pattern to show twice; uneven costs can take longer to settle.
    enough = least + 4 * longest_pattern(schedule) + 4
    for steps in (least, enough, 3 * enough):
        found = timing_of_events(simulate(schedule, schedule.synchronous_steps + steps, costs), schedule)
        if found.exact:
            break
    return found


def longest_pattern(schedule: Schedule) -> int:
    """Steps after which a schedule's steady state may repeat itself, at most."""
    return max(LEAST_PATTERN, *(schedule.in_flight(s) for s in range(schedule.model_stages)))


def _share(time: Time, parts: int) -> Time:
    return time / parts if isinstance(time, float) else Fraction(time) / parts


def _rounds(events: Sequence[Event], schedule: Schedule, first: int = 0) -> list[list[Time]]:
    """When each device ends each optimizer step (LocalSGD: each round) from step ``first`` on, by device."""
    last: dict[int, dict[int, Time]] = defaultdict(dict)
    for e in events:
        if e.kind in ("step", "reduce"):
            k = e.microbatch // schedule.microbatches
            last[e.device][k] = max(e.end, last[e.device].get(k, e.end))
    rounds = [[times[k] for k in sorted(times) if k >= first] for _, times in sorted(last.items())]
    if not rounds or len({len(times) for times in rounds}) > 1:
        raise InputError(f"events of {schedule.name}: every device must take the same number of optimizer steps")
    return rounds


def _pattern(ends: list[list[Time]], usable: int, longest: int) -> Time | None:
    """The period, if the second half of the usable steps repeats itself after 1, 2, ... steps."""
    for length in range(1, longest + 1):
        first = usable // 2
        if usable - first < 2 * length + 1:
            return None
        spans: list[Any] = [times[k + length] - times[k] for times in ends for k in range(first, usable - length)]
        # Floating-point costs leave round-off in the differences of large times.
        slack = ROUND_OFF * abs(spans[0]) if isinstance(spans[0], float) else 0
        if all(abs(span - spans[0]) <= slack for span in spans):
            return _share(spans[0], length)
    return None
