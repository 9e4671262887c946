"""The table of all systems side by side."""

from __future__ import annotations

from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Digits, Table

COLUMNS = (
    Column("system"),
    Column("m", "r"),
    Column("bubble", "r"),
    Column("delay", "r"),
    Column("mean delay", "r"),
    Column("gap", "r"),
    Column("versions", "r"),
    Column("in flight", "r"),
    Column("bytes", "r"),
    Column("throughput", "r"),
)
CAPTION = (
    "m: microbatches per optimizer step. bubble: idle share of the steady state. delay, mean delay: age of the "
    "gradients in optimizer steps at the worst stage. gap: weight versions between a forward and its backward. "
    "versions, in flight: weight versions of a stage and microbatches on a device. bytes: of the device that needs "
    "most. throughput: relative to 1F1B. Everything is counted from the schedule's events on the clock; nothing is "
    "measured on hardware."
)


def systems_table(found: list[Row], stages: int, microbatches: int) -> Table:
    """One row per system that allows the numbers."""
    lines: list[tuple[Cell, ...]] = [
        (
            text(row, "name"),
            whole(row, "microbatches"),
            Digits(number(row.get("bubble")), 4),
            whole(row, "delay"),
            Digits(number(row.get("mean_delay")), 4),
            whole(row, "version_gap"),
            whole(row, "versions"),
            whole(row, "in_flight"),
            Digits(number(row.get("bytes")), 4),
            Digits(number(row.get("relative_throughput")), 4),
        )
        for row in found
        if row.get("note") is None
    ]
    refused = [f"{text(row, 'name')}: {text(row, 'note')}." for row in found if row.get("note") is not None]
    title = f"Systems at {stages} stages and {microbatches} microbatches"
    return Table("systems", title, " ".join([CAPTION, *refused]), COLUMNS, tuple(lines))


def systems(results: Results) -> Table | None:
    """The table of a result folder."""
    found = child(results.section("delays"), "systems")
    listed = rows(found, "systems")
    return systems_table(listed, whole(found, "stages"), whole(found, "microbatches")) if listed else None
