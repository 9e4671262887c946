"""Whether a schedule is one: dependencies, gradients counted once, versions that exist, messages that cannot block."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.clock import simulate
from pipeline.delays import microbatch_delays
from pipeline.events import Event, Kind
from pipeline.memory import peak_memory
from pipeline.messages import SENDING, blocked, channels_out_of_order
from pipeline.schedules.base import Action, Schedule

Orders = list[list[Action]]


@dataclass(frozen=True)
class Validity:
    """problems: one line each; deadlocks: way of sending (see :mod:`pipeline.messages`) -> where it blocks, or None.

    Interleaved 1F1B with m > S deadlocks with ``paired`` sends too: it needs receives posted further ahead.
    """

    problems: list[str]
    deadlocks: dict[str, str | None]

    @property
    def faults(self) -> list[str]:
        """What makes the schedule invalid: its problems, and a deadlock where sends do not even block."""
        blocked = self.deadlocks["buffered"]
        return [*self.problems, *([] if blocked is None else [f"deadlock: {blocked}"])]

    @property
    def valid(self) -> bool:
        """No problem, and no deadlock as long as sends do not block."""
        return not self.faults


def check(schedule: Schedule, steps: int | None = None) -> Validity:
    """Every check over ``steps`` optimizer steps (None: enough to reach the steady state).

    Fewer steps than that can show fewer versions than the schedule states, which is then no problem.
    """
    steady = steps is None
    if steps is None:
        steps = schedule.start_up + 3
    orders = [list(schedule.actions(device, steps)) for device in range(schedule.devices)]
    problems = [
        *every_pass_once(schedule, orders, steps),
        *gradients_counted_once(schedule, orders),
        *versions_exist(schedule, orders),
        *replicas_averaged(schedule, orders, steps),
        *channels_out_of_order(schedule, orders),
    ]
    deadlocks = {sending: blocked(schedule, orders, sending) for sending in SENDING}
    if not problems and deadlocks["buffered"] is None:
        events = simulate(schedule, steps)
        problems += [*versions_kept(schedule, events, steady), *(delays_settle(schedule, steps) if steady else ())]
    return Validity(problems, deadlocks)


def every_pass_once(schedule: Schedule, orders: Orders, steps: int) -> Iterator[str]:
    """Every forward, backward (and weight gradient) once, after the one it needs, on the device that holds its copy."""
    kinds: tuple[Kind, ...] = ("forward", "backward", "weight") if schedule.splits_backward else ("forward", "backward")
    seen = Counter((a.kind, a.stage, a.microbatch) for order in orders for a in order if a.kind in kinds)
    for kind in kinds:
        for stage in range(schedule.model_stages):
            for j in range(schedule.microbatches * steps):
                count = seen.pop((kind, stage, j), 0)
                if count != 1:
                    yield f"{kind} of microbatch {j} at stage {stage} occurs {count} times"
    for kind, stage, j in seen:
        yield f"{kind} of microbatch {j} at stage {stage} belongs to no step"
    for device, order in enumerate(orders):
        done: set[tuple[Kind, int, int]] = set()
        for a in order:
            if schedule.device_of(*a.copy) != device:
                yield f"{a.kind} of microbatch {a.microbatch} at stage {a.stage} is on device {device}"
            if a.kind in kinds:
                before = kinds[max(kinds.index(a.kind) - 1, 0)]
                done.add((a.kind, a.stage, a.microbatch))
                if (before, a.stage, a.microbatch) not in done:
                    yield f"{a.kind} of microbatch {a.microbatch} at stage {a.stage} comes before its {before}"


def gradients_counted_once(schedule: Schedule, orders: Orders) -> Iterator[str]:
    """Every gradient enters the step it belongs to, once; where copies share their weights, through one reduction."""
    producer = "weight" if schedule.splits_backward else "backward"
    entered: Counter[tuple[int, int]] = Counter()
    for order in orders:
        pending: dict[tuple[int, int], list[Action]] = defaultdict(list)
        reduced: dict[tuple[int, int], list[Action]] = {}
        for a in order:
            if a.kind == producer:
                pending[a.copy].append(a)
            elif a.kind == "reduce" and schedule.shares_weights:
                if a.copy in reduced:
                    yield f"stage {a.stage} reduces twice before step {a.step}"
                reduced[a.copy] = pending.pop(a.copy, [])
            elif a.kind == "step":
                if schedule.shares_weights and a.copy not in reduced:
                    yield f"step {a.step} at stage {a.stage} comes without a reduction"
                for g in reduced.pop(a.copy, []) if schedule.shares_weights else pending.pop(a.copy, []):
                    entered[g.stage, g.microbatch] += 1
                    if g.step != a.step:
                        yield (
                            f"gradient of microbatch {g.microbatch} at stage {g.stage} belongs to step {g.step} and "
                            f"enters step {a.step}"
                        )
        for left in (*pending.values(), *reduced.values()):
            for g in left:
                yield f"gradient of microbatch {g.microbatch} at stage {g.stage} enters no step"
    for (stage, j), count in entered.items():
        if count != 1:
            yield f"gradient of microbatch {j} at stage {stage} is counted {count} times"


def versions_exist(schedule: Schedule, orders: Orders) -> Iterator[str]:
    """A copy reads a version after the step that wrote it, and the copies of a stage step together."""
    written: dict[tuple[int, int], int] = {}
    for device, order in enumerate(orders):
        newest = defaultdict(int, dict.fromkeys(schedule.copies(device), 0))
        for a in order:
            if a.kind == "step":
                if a.version != newest[a.copy] + 1:
                    yield f"step {a.step} at stage {a.stage} writes version {a.version} after {newest[a.copy]}"
                newest[a.copy] = a.version
            elif a.kind != "reduce" and not 0 <= a.version <= newest[a.copy]:
                yield (
                    f"{a.kind} of microbatch {a.microbatch} at stage {a.stage} reads version {a.version}; the newest "
                    f"there is {newest[a.copy]}"
                )
        written |= newest
    if len(set(written.values())) > 1:
        yield f"the copies end on different versions: {sorted(set(written.values()))}"


def replicas_averaged(schedule: Schedule, orders: Orders, steps: int) -> Iterator[str]:
    """Replicas with weights of their own average once a round: after all its steps, before the next one's forwards."""
    if schedule.pipelines == 1 or schedule.shares_weights:
        return
    for device, order in enumerate(orders):
        averaged = 0  # rounds
        newest = defaultdict(int, dict.fromkeys(schedule.copies(device), 0))
        for a in order:
            in_round = a.microbatch // schedule.microbatches
            if a.kind == "step":
                newest[a.copy] = a.version
            elif a.kind == "reduce":
                if in_round != averaged or set(newest.values()) != {a.version}:
                    yield (
                        f"device {device} averages at the end of round {in_round} after {averaged} averages, with "
                        f"versions {sorted(set(newest.values()))} instead of {a.version}"
                    )
                averaged += 1
            elif in_round > averaged:
                yield f"{a.kind} of microbatch {a.microbatch} at stage {a.stage} comes before the average of its round"
        if averaged != steps:
            yield f"device {device} averages its replicas {averaged} times in {steps} rounds"


def versions_kept(schedule: Schedule, events: list[Event], steady: bool) -> Iterator[str]:
    """No copy needs more versions at a time than the schedule states, and in a ``steady`` run it needs as many."""
    for device, peak in enumerate(peak_memory(events, schedule)):
        for stage, count in peak.versions.items():
            stated = schedule.versions_stored(stage)
            if count > stated or (steady and count < stated):
                yield f"device {device} holds up to {count} versions of stage {stage}; the schedule states {stated}"


def delays_settle(schedule: Schedule, steps: int) -> Iterator[str]:
    """After start-up, of whatever length, every step has the delays of the step before it."""
    unsettled: dict[int, str] = {}
    for length in (steps, 4 * steps):
        unsettled.clear()
        for stage, delays in microbatch_delays(simulate(schedule, length)).items():
            by_step: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for d in delays:
                by_step[d.step].append((d.forward, d.backward))
            before, last = (by_step[k] for k in sorted(by_step)[-2:])
            if before != last:
                unsettled[stage] = f"delays of stage {stage} do not settle: {before}, then {last}"
        if not unsettled:
            return
    yield from unsettled.values()
