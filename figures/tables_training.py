"""The tables of the report's training part: oracle check, gap, diagnostics, constants.

A builder returns None where its section is not available or has no rows.
"""

from __future__ import annotations

import math

from figures.results import Results, child, number, rows, text, whole
from figures.table import Cell, Column, Estimate, Mark, Math, Table, estimate


def oracle(results: Results) -> Table | None:
    """Largest difference between the engine and the single-process oracle."""
    lines: list[tuple[Cell, ...]] = []
    for check in rows(results.section("training"), "oracle_check"):
        difference = number(check.get("max_abs_diff"))
        lines.append(
            (
                text(check, "optimizer"),
                text(check, "correction"),
                text(check, "schedule"),
                whole(check, "steps"),
                text(check, "dtype"),
                difference,
                Mark("bit for bit", "good") if difference == 0.0 else Mark("differs", "bad"),
            )
        )
    if not lines:
        return None
    return Table(
        "oracle",
        "Engine against oracle",
        "Largest absolute difference of any parameter at any step between the pipeline on real processes and an "
        "independently written single-process program.",
        (
            Column("optimizer"),
            Column("correction"),
            Column("schedule"),
            Column("steps", "r"),
            Column("dtype"),
            Column("max |difference|", "r"),
            Column("outcome"),
        ),
        tuple(lines),
    )


def gap(results: Results) -> Table | None:
    """Gap, corrected gap and share recovered, with intervals."""
    lines: list[tuple[Cell, ...]] = []
    for g in rows(results.section("training"), "gaps"):
        share = child(g, "share_recovered")
        defined = share.get("defined") is not False
        percent = estimate(share)
        share_cell: Cell = Mark("undefined", "quiet")
        if defined and percent is not None:
            share_cell = Estimate(100 * percent.value, 100 * percent.low, 100 * percent.high)
        gap_interval = child(g, "gap")
        lines.append(
            (
                text(g, "optimizer"),
                estimate(gap_interval),
                estimate(child(g, "gap_corrected")),
                share_cell,
                whole(gap_interval, "n"),
                number(gap_interval.get("level")),
                text(share, "note"),
            )
        )
    if not lines:
        return None
    return Table(
        "gap",
        "Loss gap to the synchronous run",
        "Mean over paired seeds with its interval. The share recovered is a ratio of two such means; it is undefined "
        "where the interval of the gap covers zero.",
        (
            Column("optimizer"),
            Column("gap"),
            Column("gap with error feedback"),
            Column("share recovered (%)"),
            Column("seeds", "r"),
            Column("level", "r"),
            Column("note", "p", 0.2),
        ),
        tuple(lines),
    )


def diagnostics(results: Results) -> Table | None:
    """Drift, momentum lag and delay bias of the real run."""
    lines = tuple(
        (
            text(d, "optimizer"),
            text(d, "correction"),
            estimate(child(d, "drift")),
            estimate(child(d, "momentum_lag")),
            estimate(child(d, "delay_bias")),
            text(d, "note"),
        )
        for d in rows(results.section("training"), "diagnostics")
    )
    if not lines:
        return None
    return Table(
        "diagnostics",
        "What the delay does to the gradients",
        "Drift of the updates, lag of the momentum and bias of the delayed gradient, measured on the training run.",
        (
            Column("optimizer"),
            Column("correction"),
            Column("drift"),
            Column("momentum lag"),
            Column("delay bias"),
            Column("note", "p", 0.2),
        ),
        lines,
    )


def constants(results: Results) -> Table | None:
    """Constants that went into the training run's bound."""
    lines: list[tuple[Cell, ...]] = []
    for c in rows(child(results.section("training"), "bound"), "constants"):
        low, high = number(c.get("low")), number(c.get("high"))
        value = number(c.get("value"))
        known = not (math.isfinite(low) and math.isfinite(high)) or low == high  # exact: no interval to show
        shown: Cell = value if known else Estimate(value, low, high)
        lines.append(
            (
                Math(text(c, "latex"), text(c, "symbol")),
                text(c, "symbol"),
                shown,
                text(c, "how"),
                text(c, "where"),
            )
        )
    if not lines:
        return None
    return Table(
        "constants",
        "Constants of the training run's bound",
        "Each constant with the way it was obtained: exact, estimated on this run, or assumed.",
        (
            Column("symbol"),
            Column("name"),
            Column("value"),
            Column("how", "p", 0.22),
            Column("where", "p", 0.28),
        ),
        tuple(lines),
    )


def slack(results: Results) -> Table | None:
    """Utilisation of the lemmas on the training run."""
    lines: list[tuple[Cell, ...]] = [
        (
            text(i, "title", text(i, "name")),
            number(i.get("min")),
            number(i.get("median")),
            number(i.get("max")),
            text(i, "worst_step"),
        )
        for i in rows(child(results.section("training"), "bound"), "inequalities")
    ]
    if not lines:
        return None
    return Table(
        "slack",
        "The lemmas on the training run",
        "Left divided by right at the sampled steps, with constants estimated on the run: reported only.",
        (
            Column("inequality", "p", 0.4),
            Column("min", "r"),
            Column("median", "r"),
            Column("max", "r"),
            Column("worst step", "r"),
        ),
        tuple(lines),
    )
