"""A clock for schedules: every device does its actions in order, each as soon as its inputs are there.

Sends do not block the device. A message between two devices takes ``hop`` and, with a bandwidth, its bytes over it;
messages of one device to another follow each other. With integers and fractions the clock is exact.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipeline.errors import InputError
from pipeline.events import Event, Time
from pipeline.schedules.base import Action, Schedule

PerStage = Time | Sequence[Time]


@dataclass(frozen=True)
class Costs:
    """Durations in any one unit; the events carry the same.

    forward, backward: of one microbatch on an S-th of the model (a number), or on each model stage (a sequence).
    weight: the part of ``backward`` that is the gradient of the weights, for schedules that split it (default: half).
    recompute: whether every backward first runs its forward again, which takes ``forward`` more.
    hop, bandwidth, message: latency of a message, bytes per unit of time, bytes of a message.
    optimizer: time of an optimizer step on an S-th of the model, or on each stage; reduce: of a sum or average over
    the copies of a stage.

    Raises InputError, naming the field, for negative or non-finite values.
    """

    forward: PerStage = 1
    backward: PerStage = 1
    weight: PerStage | None = None
    hop: Time = 0
    bandwidth: Time | None = None
    message: Time = 0
    optimizer: PerStage = 0
    reduce: Time = 0
    recompute: bool = False

    def __post_init__(self) -> None:
        for field in ("forward", "backward", "weight", "hop", "message", "optimizer", "reduce"):
            value = getattr(self, field)
            for number in value if isinstance(value, Sequence) and not isinstance(value, str) else (value,):
                if field == "weight" and value is None:
                    continue
                if not _is_duration(number):
                    raise InputError(f"{field} = {number!r}: allowed are finite numbers of at least 0")
        if self.bandwidth is not None and not (_is_duration(self.bandwidth) and self.bandwidth > 0):
            raise InputError(f"bandwidth = {self.bandwidth!r}: allowed are finite numbers above 0")

    def on_stages(self, schedule: Schedule) -> dict[str, list[Time]]:
        """Duration of each kind of action by model stage. Raises InputError for sequences of the wrong length."""
        forward = _spread("forward", self.forward, schedule)
        backward = _spread("backward", self.backward, schedule)
        optimizer = _spread("optimizer", self.optimizer, schedule)
        weight: list[Time] = [Fraction(0)] * schedule.model_stages
        if schedule.splits_backward:
            if self.weight is None:
                weight = [_share(b, 1, 2) for b in backward]
            else:
                weight = _spread("weight", self.weight, schedule)
            for whole, part in zip(backward, weight, strict=True):
                if part > whole:
                    raise InputError(f"weight = {part}: allowed is at most backward = {whole}, of which it is a part")
            backward = [whole - part for whole, part in zip(backward, weight, strict=True)]
        if self.recompute:
            backward = [b + f for b, f in zip(backward, forward, strict=True)]
        return {"forward": forward, "backward": backward, "weight": weight, "step": optimizer}


def _is_duration(value: object) -> bool:
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0  # type: ignore[arg-type,operator]


def _share(value: Time, part: int, whole: int) -> Time:
    """value * part / whole, exact where value is."""
    if isinstance(value, float) or value * part % whole == 0:
        return value * part / whole if isinstance(value, float) else value * part // whole
    return Fraction(value) * part / whole


def _spread(field: str, value: PerStage, schedule: Schedule) -> list[Time]:
    if isinstance(value, Sequence):
        if len(value) != schedule.model_stages:
            raise InputError(
                f"{field} = {list(value)!r}: allowed are one number, or {schedule.model_stages} of them, one for each "
                f"stage of {schedule.name}"
            )
        return list(value)
    return [_share(value, schedule.devices, schedule.model_stages)] * schedule.model_stages


#: F = B = 1, nothing else takes time.
UNIT = Costs()


def simulate(schedule: Schedule, steps: int, costs: Costs = UNIT) -> list[Event]:
    """Events of ``steps`` optimizer steps, sorted by (start, device).

    Raises InputError for costs that do not fit the schedule, and for an order that no clock can run.
    """
    return _Clock(schedule, steps, costs).run()


#: What an action waits for: the end of a forward or backward, a reduced gradient, the step of the copy that owns it.
_Key = tuple[str, int, int]


class _Clock:
    def __init__(self, schedule: Schedule, steps: int, costs: Costs) -> None:
        self.schedule = schedule
        duration = costs.on_stages(schedule)
        transfer: Time = 0 if costs.bandwidth is None else costs.message / Fraction(costs.bandwidth)
        # Rational times are counted in whole units of 1/scale: exact, and faster than fractions.
        every = [transfer, costs.hop, costs.reduce, *(value for values in duration.values() for value in values)]
        exact = not any(isinstance(value, float) for value in every)
        self.scale = math.lcm(*(Fraction(value).denominator for value in every)) if exact else 1
        self.duration = {kind: [self._units(value) for value in values] for kind, values in duration.items()}
        self.transfer, self.hop, self.reduce = map(self._units, (transfer, costs.hop, costs.reduce))
        self.times: dict[Time, Time] = {}
        self.last = schedule.model_stages - 1
        self.orders = [schedule.actions(device, steps) for device in range(schedule.devices)]
        self.free: list[Time] = [0] * schedule.devices
        self.link: dict[tuple[int, int], Time] = {}
        self.known: dict[_Key, Time] = {}
        self.reduced: dict[tuple[int, int], list[Time]] = defaultdict(list)
        self.waiting: dict[_Key, list[int]] = defaultdict(list)
        self.ready: deque[int] = deque(range(schedule.devices))
        self.device_of = {
            (s, p): schedule.device_of(s, p) for s in range(schedule.model_stages) for p in range(schedule.pipelines)
        }

    def _units(self, value: Time) -> Time:
        return value if isinstance(value, float) or self.scale == 1 else int(value * self.scale)

    def _time(self, units: Time) -> Time:
        if self.scale == 1:
            return units
        if units not in self.times:
            whole, rest = divmod(units, self.scale)
            self.times[units] = int(whole) if rest == 0 else Fraction(int(units), self.scale)
        return self.times[units]

    def run(self) -> list[Event]:
        events: list[Event] = []
        heads: list[Action | None] = [next(order, None) for order in self.orders]
        while self.ready:
            d = self.ready.popleft()
            while (action := heads[d]) is not None:
                key = self._needs(action)
                arrived = 0 if key is None else self.known.get(key)
                if arrived is None:
                    assert key is not None
                    self.waiting[key].append(d)
                    break
                start = max(self.free[d], arrived)
                end = start + self._length(action)
                events.append(
                    Event(
                        action.kind,
                        action.stage,
                        action.microbatch,
                        action.step,
                        action.version,
                        self._time(start),
                        self._time(end),
                        action.pipeline,
                        d,
                    )
                )
                self.free[d] = end
                heads[d] = next(self.orders[d], None)
                self._tell(action, d, end)
        stuck = {d: head for d, head in enumerate(heads) if head is not None}
        if stuck:
            raise InputError(f"schedule {self.schedule.name!r} cannot run: these actions wait for ever: {stuck}")
        # Stable: actions of zero duration stay in the order of their device.
        return sorted(events, key=lambda event: (event.start, event.device))

    def _needs(self, action: Action) -> _Key | None:
        """The one event on another device, or the forward on this one, that ``action`` must wait for."""
        kind, j, k, s = action[:4]
        if kind == "forward":
            return ("forward", s, j) if s > 0 else None
        if kind == "backward":
            return ("backward", s, j)
        if kind == "step" and self.schedule.shares_weights:
            return ("reduced" if action.pipeline == 0 else "stepped", s, k)
        return None

    def _length(self, action: Action) -> Time:
        if action.kind == "reduce":
            return 0 if self.schedule.shares_weights else self.reduce
        if action.kind == "step" and self.schedule.shares_weights and action.pipeline > 0:
            return 0
        return self.duration[action.kind][action.stage]

    def _tell(self, action: Action, d: int, end: Time) -> None:
        """Deliver what ``action`` produced, and wake who waits for it."""
        kind, j, k, s, _, pipeline = action
        if kind == "forward":
            if s == self.last:
                self._deliver(("backward", s, j), end)
            else:
                self._deliver(("forward", s + 1, j), self._arrival(d, self.device_of[s + 1, pipeline], end))
        elif kind == "backward" and s > 0:
            self._deliver(("backward", s - 1, j), self._arrival(d, self.device_of[s - 1, pipeline], end))
        elif kind == "reduce" and self.schedule.shares_weights:
            contributed = self.reduced[s, k]
            contributed.append(end)
            if len(contributed) == self.schedule.pipelines:
                self._deliver(("reduced", s, k), max(contributed) + self.reduce)
        elif kind == "step" and self.schedule.shares_weights and pipeline == 0:
            self._deliver(("stepped", s, k), end)

    def _arrival(self, source: int, target: int, end: Time) -> Time:
        if source == target:
            return end
        if self.transfer:
            end = self.link[source, target] = max(end, self.link.get((source, target), 0)) + self.transfer
        return end + self.hop

    def _deliver(self, key: _Key, at: Time) -> None:
        self.known[key] = at
        self.ready.extend(self.waiting.pop(key, ()))
