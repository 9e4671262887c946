"""Peak memory of each device, counted from the events of a schedule or of a run.

What lives when: a weight version until the first step after the last action that reads it, and the newest always; a
gradient buffer of a copy from the first gradient of a batch to its step; a microbatch's activations from its forward to
its backward, or, with recomputation, its stage input alone until the backward has run the forward again. Where the
weight gradient is split off, activations and the gradient of the stage's output wait for it.

Where steps are put off, because they wait for a number of the whole model (a norm, the sum of a tied weight's
gradients, whether there is Inf or NaN), a step comes right before the first forward that reads what it writes: until
then the next batch adds up in a buffer of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from pipeline.clock import PerStage, simulate
from pipeline.correction_buffers import CorrectionBuffers
from pipeline.errors import InputError
from pipeline.events import Event
from pipeline.schedules.base import Schedule

Copy = tuple[int, int]  # (stage, pipeline)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the whole model (spread evenly over its stages) or, as a sequence, of each stage.

    weight_bytes: of one version; gradient_bytes: of one buffer; optimizer_bytes: of its state; activation_bytes: of one
    microbatch; boundary_bytes: of one microbatch's message between two stages, which is what recomputation keeps (a
    number, for every stage); correction_bytes: buffers of a correction, which are where the optimizer's state is, see
    :func:`with_correction`.
    Raises InputError, naming the field, for negative or non-finite values.
    """

    weight_bytes: PerStage = 1
    gradient_bytes: PerStage = 1
    optimizer_bytes: PerStage = 2
    activation_bytes: PerStage = 1
    boundary_bytes: float = 0
    correction_bytes: PerStage = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            for number in value if isinstance(value, Sequence) and not isinstance(value, str) else (value,):
                if isinstance(number, bool) or not (isinstance(number, int | float) and 0 <= number < float("inf")):
                    raise InputError(f"{field.name} = {number!r}: allowed are finite numbers of bytes, at least 0")

    def of_stage(self, field: str, stage: int, schedule: Schedule) -> float:
        """Bytes of one stage. Raises InputError for a sequence of the wrong length."""
        value = getattr(self, field)
        if not isinstance(value, Sequence):
            return float(value) / schedule.model_stages
        if len(value) != schedule.model_stages:
            raise InputError(
                f"{field} = {list(value)!r}: allowed are one number, or {schedule.model_stages} of them, one for each "
                f"stage of {schedule.name}"
            )
        return float(value[stage])


@dataclass(frozen=True)
class DeviceMemory:
    """Peaks of one device.

    versions: weight versions of one copy, by stage; in_flight: microbatches between forward and backward, by stage,
    over the copies of it that the device holds; in_flight_total: over all its stages; gradient_sets: batches whose
    gradients one copy holds, by stage. Each is a maximum over the run.
    weights, gradients, optimizer, activations, correction: bytes at the moment of the largest sum; total: that sum.
    """

    versions: dict[int, int]
    in_flight: dict[int, int]
    in_flight_total: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    correction: float
    gradient_sets: dict[int, int]

    @property
    def total(self) -> float:
        """Bytes at the peak."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.correction


#: One unit of weights, one of gradients, two of optimizer state (AdamW), one of activations, spread over the stages.
EVEN = Sizes()


def with_correction(sizes: Sizes, schedule: Schedule, delays: Sequence[int], kept: CorrectionBuffers) -> Sizes:
    """``sizes`` with what a correction keeps for the delay of each stage, in buffers as large as one of gradients: both
    have the precision of the weights that the optimizer works on."""
    buffers = [sizes.of_stage("gradient_bytes", stage, schedule) for stage in range(schedule.model_stages)]
    return replace(sizes, correction_bytes=[kept.count(tau) * b for tau, b in zip(delays, buffers, strict=True)])


def peak_memory(
    events: Sequence[Event],
    schedule: Schedule,
    sizes: Sizes = EVEN,
    recompute: bool = False,
    put_off: bool = False,
) -> list[DeviceMemory]:
    """Peaks of each device over the events of a run; with ``recompute`` activations are recomputed in the backward,
    with ``put_off`` steps come as late as they can.

    Raises InputError for sizes that do not fit the schedule, and where its steps cannot be put off.
    """
    if put_off:
        schedule.refuse_without_slack("put_off", True)
    by_device: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        by_device[event.device].append(event)
    orders = [sorted(by_device[device], key=lambda e: e.start) for device in range(schedule.devices)]
    return [
        _Ledger(schedule, device, sizes, recompute).read(_put_off(order) if put_off else order)
        for device, order in enumerate(orders)
    ]


def memory(
    schedule: Schedule, sizes: Sizes = EVEN, recompute: bool = False, put_off: bool = False
) -> list[DeviceMemory]:
    """Peaks of each device over a run on the clock that is long enough to reach the steady state."""
    return peak_memory(simulate(schedule, schedule.start_up + 3), schedule, sizes, recompute, put_off)


def _put_off(events: list[Event]) -> list[Event]:
    """A device's events with every step right before the first forward that reads what it writes, or at the end."""
    order: list[Event] = []
    waiting: list[Event] = []
    for event in events:
        if event.kind == "step":
            waiting.append(event)
            continue
        if event.kind == "forward":
            due = [step for step in waiting if step.copy == event.copy and step.version <= event.version]
            order += due
            waiting = [step for step in waiting if step not in due]
        order.append(event)
    return order + waiting


class _Ledger:
    """What one device holds, action by action."""

    def __init__(self, schedule: Schedule, device: int, sizes: Sizes, recompute: bool) -> None:
        self.copies = schedule.copies(device)
        self.recompute = recompute
        self.frees = "weight" if schedule.splits_backward else "backward"

        def bytes_of(field: str) -> dict[Copy, float]:
            return {copy: sizes.of_stage(field, copy[0], schedule) for copy in self.copies}

        self.weights, self.gradients, self.activations = map(
            bytes_of, ("weight_bytes", "gradient_bytes", "activation_bytes")
        )
        self.boundary = float(sizes.boundary_bytes)
        # Where copies share their weights, one of them steps and the others receive.
        owned = [copy for copy in self.copies if copy[1] == 0 or not schedule.shares_weights]
        self.optimizer, self.correction = (
            sum(bytes_of(field)[copy] for copy in owned) for field in ("optimizer_bytes", "correction_bytes")
        )

    def read(self, events: list[Event]) -> DeviceMemory:
        passes = ("forward", "backward", "weight")
        last_read = {(e.copy, e.version): n for n, e in enumerate(events) if e.kind in passes}
        held: dict[Copy, set[int]] = {copy: {0} for copy in self.copies}
        buffers: dict[Copy, set[int]] = {copy: set() for copy in self.copies}
        versions = dict.fromkeys((stage for stage, _ in self.copies), 1)
        flying, in_flight, sets = (dict.fromkeys(versions, 0) for _ in range(3))
        together = most_together = 0
        weights, gradients, activations = sum(self.weights.values()), 0.0, 0.0
        best = (weights, 0.0, 0.0)
        for n, event in enumerate(events):
            copy, stage = event.copy, event.stage
            full, waiting = self.activations[copy], self.boundary if self.frees == "weight" else 0.0
            kept = self.boundary if self.recompute else full
            if event.kind == "forward":
                flying[stage] += 1
                together += 1
                activations += kept
            elif event.kind == "backward":
                activations += full - kept  # what recomputation brings back, until the microbatch is done with
            if event.kind == self.frees and event.step not in buffers[copy]:
                buffers[copy].add(event.step)
                gradients += self.gradients[copy]
                sets[stage] = max(sets[stage], len(buffers[copy]))
            if event.kind == "step":
                alive = {v for v in held[copy] if last_read.get((copy, v), -1) > n} | {event.version}
                weights += (len(alive) - len(held[copy])) * self.weights[copy]
                held[copy] = alive
            versions[stage] = max(versions[stage], len(held[copy]))
            in_flight[stage] = max(in_flight[stage], flying[stage])
            most_together = max(most_together, together)
            best = max(best, (weights, gradients, activations), key=sum)
            if event.kind == "backward":
                activations += waiting  # the gradient of the output, for the weight gradient to come
            if event.kind == self.frees:
                flying[stage] -= 1
                together -= 1
                activations -= full + waiting
            elif event.kind == "step" and event.step in buffers[copy]:
                buffers[copy].discard(event.step)
                gradients -= self.gradients[copy]
        return DeviceMemory(
            versions, in_flight, most_together, best[0], best[1], self.optimizer, best[2], self.correction, sets
        )
