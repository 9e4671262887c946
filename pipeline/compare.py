"""All systems side by side at one depth, one number of microbatches and one set of costs and sizes."""

from __future__ import annotations

from typing import Any

from pipeline.clock import UNIT, Costs
from pipeline.correction_buffers import CorrectionBuffers
from pipeline.delays import delay_summary
from pipeline.errors import InputError
from pipeline.events import plain_number
from pipeline.memory import EVEN, Sizes, memory, with_correction
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.base import Schedule, positive_integer
from pipeline.timing import timing
from pipeline.validity import check

#: The synchronous schedule that throughput is compared with.
BASELINE = "1f1b"


def compare(
    stages: int, microbatches: int, costs: Costs = UNIT, sizes: Sizes = EVEN, kept: CorrectionBuffers | None = None
) -> list[dict[str, Any]]:
    """One row per system, see :func:`row`; a system that does not allow the numbers has a ``note`` and no figures.

    Schedules that step after every microbatch by default (PipeDream, with and without vertical sync) are compared so,
    whatever ``microbatches`` says. PipeDream-2BW with fewer than S - 1 has a row for each policy. Raises InputError
    for numbers that the baseline, 1F1B, does not allow.
    """
    positive_integer("stages", stages)
    positive_integer("microbatches", microbatches)
    baseline = timing(make_schedule(BASELINE, stages, microbatches), costs).microbatches_per_time()
    rows: list[dict[str, Any]] = []
    for name, cls in SCHEDULES.items():
        m = cls.default_microbatches or microbatches
        options: list[dict[str, Any]] = [{}]
        if name == "pipedream-2bw" and microbatches < stages - 1:
            options = [{"policy": "stall"}, {"policy": "uniform"}]
        for chosen in options:
            label = f"{name} ({chosen['policy']})" if chosen else name
            try:
                schedule = make_schedule(name, stages, m, **chosen)
                if faults := check(schedule).faults:
                    raise InputError(f"not valid: {faults[0]}")
                found = row(schedule, costs, sizes, kept)
            except InputError as error:
                rows.append({"name": label, "title": cls.title, "reference": cls.reference, "note": str(error)})
                continue
            relative = found["microbatches_per_time"] / baseline if baseline else None
            rows.append({**found, "name": label, "relative_throughput": None if relative is None else float(relative)})
    for entry in rows:
        if "microbatches_per_time" in entry:
            entry["microbatches_per_time"] = float(entry["microbatches_per_time"])
    return rows


def row(
    schedule: Schedule, costs: Costs = UNIT, sizes: Sizes = EVEN, kept: CorrectionBuffers | None = None
) -> dict[str, Any]:
    """The figures of one schedule; with ``kept`` its memory has the buffers of that correction.

    microbatches: m per optimizer step; bubble, period, fill_and_drain, whether they are exact: see
    :mod:`pipeline.timing`; delay, mean_delay, version_gap: the largest over the stages; versions: most versions of a
    stage's weights; in_flight: most microbatches on a device; bytes and its parts: of the device that needs most;
    note: None.
    """
    time, delays = timing(schedule, costs), delay_summary(schedule)
    if kept is not None:
        sizes = with_correction(sizes, schedule, delays["optimizer_step_delay"], kept)
    devices = memory(schedule, sizes, costs.recompute)
    largest = max(devices, key=lambda device: device.total)
    return {
        "name": schedule.name,
        "title": schedule.title,
        "reference": schedule.reference,
        "microbatches": schedule.microbatches,
        "bubble": float(time.bubble),
        "period_is_exact": time.exact,
        "period": plain_number(time.period),
        "fill_and_drain": plain_number(time.fill_and_drain),
        "delay": max(delays["optimizer_step_delay"]),
        "mean_delay": float(max(delays["mean_delay"])),
        "version_gap": max(delays["version_gap"]),
        "versions": max(max(device.versions.values()) for device in devices),
        "in_flight": max(device.in_flight_total for device in devices),
        "bytes": largest.total,
        "weight_bytes": largest.weights,
        "gradient_bytes": largest.gradients,
        "optimizer_bytes": largest.optimizer,
        "activation_bytes": largest.activations,
        "correction_bytes": largest.correction,
        "microbatches_per_time": time.microbatches_per_time(),
        "note": None,
    }
