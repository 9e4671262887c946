"""Where theory and schedule meet: every closed form of a schedule against the enumeration of its events."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

#: Quantities of theory's ClosedForm against keys of pipeline's delay_summary.
DELAYS = {
    "delay": "optimizer_step_delay",
    "mean_delay": "mean_delay",
    "backward_delay": "backward_delay",
    "version_gap": "version_gap",
    "gap_microbatches": "gap_microbatches",
}


class Difference(NamedTuple):
    """A closed form and an enumeration that are not equal; ``where`` names the schedule, its stage or durations."""

    quantity: str
    where: str
    stated: Any
    counted: Any

    def __str__(self) -> str:
        return f"{self.quantity} of {self.where}: closed form {self.stated}, enumeration {self.counted}"


def describe(schedule: Any) -> str:
    """The schedule in words."""
    return f"{schedule.name} with {schedule.stages} stages and {schedule.microbatches} microbatches"


def closed_form_of(schedule: Any) -> Any | None:
    """theory's closed forms for this schedule and its options, or None."""
    from theory.delays import closed_form

    return closed_form(schedule.name, getattr(schedule, "policy", "refuse"))


def values_of(schedule: Any) -> dict[str, int]:
    """The schedule's numbers under theory's symbols."""
    names = {"v": "chunks", "R": "replicas", "tau": "tau"}
    options = {symbol: getattr(schedule, name, None) for symbol, name in names.items()}
    given = {symbol: value for symbol, value in options.items() if value is not None}
    return {"S": schedule.stages, "m": schedule.microbatches, **given}


def options_of(schedule: Any) -> dict[str, Any]:
    """What the schedule was made with beside S and m."""
    from dataclasses import fields

    return {f.name: getattr(schedule, f.name) for f in fields(schedule)[2:]}


def block_differences(where: str, stages: int, counted: dict[str, Any]) -> Iterator[Difference]:
    """PipeDream's block-update delays as enumerated, under the convention they name: every entry and every summary."""
    from theory.delays import block_update_delay

    stated = block_update_delay(stages, counted["convention"])
    for key, value in counted.items():
        if stated[key] != value:
            yield Difference(f"block_update_delay {key}", f"{where}, {counted['convention']}", stated[key], value)


def delay_differences(schedule: Any, summary: dict[str, list[Any]] | None = None) -> Iterator[Difference]:
    """Delays by stage, start-up included in the maxima. summary: pipeline's ``delay_summary``, if it is there."""
    from pipeline.delays import delay_summary

    form, values = closed_form_of(schedule), values_of(schedule)
    if form is None:
        return
    counted = delay_summary(schedule) if summary is None else summary
    for quantity, key in DELAYS.items():
        for stage, found in enumerate(counted[key]):
            stated = form.evaluate(quantity, **values, stage=stage)
            if stated != found:
                yield Difference(quantity, f"{describe(schedule)}, stage {stage}", stated, found)


def memory_differences(schedule: Any) -> Iterator[Difference]:
    """Weight versions and microbatches in flight: by stage, and in total by device."""
    from pipeline.memory import memory

    form, values = closed_form_of(schedule), values_of(schedule)
    if form is None:
        return
    for device, peak in enumerate(memory(schedule)):
        places = [("versions", "stage", stage, count) for stage, count in peak.versions.items()]
        if form.in_flight is not None:
            places += [("in_flight", "stage", stage, count) for stage, count in peak.in_flight.items()]
        for quantity, kind, place, found in (*places, ("in_flight_total", "device", device, peak.in_flight_total)):
            stated = form.evaluate(quantity, **values, **{kind: place})
            if stated != found:
                yield Difference(quantity, f"{describe(schedule)}, {kind} {place}", stated, found)


def has_closed_times(
    schedule: Any, t_f: int | Fraction, t_b: int | Fraction, t_w: int | Fraction | None = None
) -> bool:
    """Whether the closed form's conditions admit these durations."""
    form = closed_form_of(schedule)
    return form is not None and form.missed("period", **_times(schedule, t_f, t_b, t_w)) is None


def time_differences(
    schedule: Any, t_f: int | Fraction, t_b: int | Fraction, t_w: int | Fraction | None = None
) -> Iterator[Difference]:
    """Period, fill and drain, and bubble for these durations (t_w: half of t_b), where the closed form admits them."""
    from pipeline.clock import Costs
    from pipeline.timing import timing

    form = closed_form_of(schedule)
    if form is None or not has_closed_times(schedule, t_f, t_b, t_w):
        return
    values = _times(schedule, t_f, t_b, t_w)
    found = timing(schedule, Costs(t_f, t_b, values["t_w"] if schedule.splits_backward else None))
    for quantity in ("period", "fill_and_drain", "bubble"):
        if getattr(form, quantity) is None:
            continue
        stated, counted = form.evaluate(quantity, **values), getattr(found, quantity)
        if stated != counted or not found.exact:
            where = f"{describe(schedule)}, t_f = {t_f}, t_b = {t_b}, t_w = {values['t_w']}"
            yield Difference(quantity, where, stated, counted)


def _times(schedule: Any, t_f: Any, t_b: Any, t_w: Any) -> dict[str, Any]:
    return {**values_of(schedule), "t_f": t_f, "t_b": t_b, "t_w": Fraction(t_b) / 2 if t_w is None else t_w}
