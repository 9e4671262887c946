"""The table of all systems side by side."""

from __future__ import annotations

import math

from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Table

COLUMNS = (
    Column("system"),
    Column("m", "r"),
    Column("bubble", "r"),
    Column("delay", "r"),
    Column("mean delay", "r"),
    Column("gap", "r"),
    Column("versions", "r"),
    Column("in flight", "r"),
    Column("GB", "r"),
    Column("throughput", "r"),
)
CAPTION = (
    "m: microbatches per optimizer step; PipeDream steps after each. bubble: share of the steady state without a "
    "forward or backward. delay, mean delay: age of the gradients in optimizer steps at the worst stage. gap: weight "
    "versions between a forward and its backward. versions, in flight: weight versions of a stage and microbatches on "
    "a device. GB: of the device that needs most. throughput: relative to 1F1B. Everything is counted from the "
    "schedule's events on the clock; nothing is measured on hardware."
)
CSV_KEYS = (
    ("system", "name"),
    ("m", "microbatches"),
    ("bubble", "bubble"),
    ("period", "period"),
    ("period is exact", "period_is_exact"),
    ("fill and drain", "fill_and_drain"),
    ("delay", "delay"),
    ("mean delay", "mean_delay"),
    ("gap", "version_gap"),
    ("versions", "versions"),
    ("in flight", "in_flight"),
    ("bytes", "bytes"),
    ("weight bytes", "weight_bytes"),
    ("gradient bytes", "gradient_bytes"),
    ("optimizer bytes", "optimizer_bytes"),
    ("activation bytes", "activation_bytes"),
    ("correction bytes", "correction_bytes"),
    ("microbatches per time", "microbatches_per_time"),
    ("throughput", "relative_throughput"),
    ("note", "note"),
)


def _title(found: Row) -> str:
    return f"Systems at {whole(found, 'stages')} stages and {whole(found, 'microbatches')} microbatches"


def systems_table(found: Row) -> Table:
    """One row per system that allows the numbers; the others are named in the caption."""
    listed = rows(found, "systems")
    lines: list[tuple[Cell, ...]] = [
        (
            text(row, "name"),
            whole(row, "microbatches"),
            _fixed(row, "bubble"),
            whole(row, "delay"),
            _fixed(row, "mean_delay"),
            whole(row, "version_gap"),
            whole(row, "versions"),
            whole(row, "in_flight"),
            _fixed(row, "bytes", 2, 1e-9),
            _fixed(row, "relative_throughput"),
        )
        for row in listed
        if row.get("note") is None
    ]
    setting = f" Durations: {text(found, 'durations')}. Bytes of the model: {text(found, 'bytes')}."
    refused = [text(row, "name") for row in listed if row.get("note") is not None]
    left_out = f" Not defined for these numbers: {', '.join(refused)}." if refused else ""
    return Table("systems", _title(found), CAPTION + setting + left_out, COLUMNS, tuple(lines))


def systems_csv(found: Row) -> Table:
    """Every system at full precision, S and the durations in every row; what is refused has a note and no figures."""
    columns = (Column("S"), *(Column(header) for header, _ in CSV_KEYS), Column("durations"), Column("sizes"))
    lines: list[tuple[Cell, ...]] = [
        (
            whole(found, "stages"),
            *(row.get(key) for _, key in CSV_KEYS),
            text(found, "durations"),
            text(found, "bytes"),
        )
        for row in rows(found, "systems")
    ]
    return Table("systems", _title(found), CAPTION, columns, tuple(lines))


def _fixed(row: Row, key: str, decimals: int = 3, scale: float = 1.0) -> str | None:
    value = scale * number(row.get(key))
    return f"{value:.{decimals}f}" if math.isfinite(value) else None


def systems(results: Results) -> Table | None:
    """The table of a result folder."""
    found = child(results.section("delays"), "systems")
    return systems_table(found) if rows(found, "systems") else None
