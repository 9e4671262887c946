"""The tables of the report's part on measurements: known constants, budgets, what each inequality used, old blocks.

A builder returns None where its section is not available or has no rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Estimate, Mark, Math, Table
from figures.waterfall import budgets_of, levels

SHORT = {
    "measured average": "measured",
    "momentum's errors as they were": "errors",
    "measured terms": "terms",
    "trajectory constants, finite sums": "finite sums",
    "trajectory constants": "trajectory",
    "worst-case constants": "worst case",
}


def known_constants(results: Results) -> Table | None:
    """Estimates on least squares against the closed form."""
    lines: list[tuple[Cell, ...]] = [
        (
            text(c, "norm"),
            text(c, "name"),
            number(c.get("truth")),
            Estimate(*(number(c.get(key)) for key in ("value", "low", "high"))),
            text(c, "how"),
            text(c, "method"),
        )
        for c in rows(results.section("empirics"), "constants")
    ]
    if not lines:
        return None
    return Table(
        "known_constants",
        "Estimators where the truth is known",
        "What an estimator finds on least squares without being told, against the closed form. For the smoothness the "
        "interval goes from what is attained to what is proved.",
        (
            Column("norm"),
            Column("constant"),
            Column("truth", "r"),
            Column("found", "r"),
            Column("how"),
            Column("method"),
        ),
        tuple(lines),
    )


def budget_levels(results: Results) -> Table | None:
    """Every budget's waterfall, one row a theorem and run."""
    runs = [(b, "least squares") for b in budgets_of(results, "empirics")]
    return levels_table(runs + [(b, "GPT") for b in budgets_of(results, "training")])


def levels_table(runs: Sequence[tuple[Row, str]]) -> Table | None:
    """Budgets of runs of that name, one a row."""
    names = list(dict.fromkeys(level for b, _ in runs for level, _, _, _ in levels(b)))
    lines: list[tuple[Cell, ...]] = []
    for b, where in runs:
        values = {level: value for level, value, _, _ in levels(b)}
        cells = [values[name] if math.isfinite(values.get(name, math.nan)) else None for name in names]
        lines.append((text(b, "theorem"), where, *cells))
    if not lines:
        return None
    return Table(
        "budget_levels",
        "Error budgets, level by level",
        "From the measured average through the momentum's errors as they were, measured terms and constants of the "
        "trajectory to constants that hold everywhere. A dash: no such level for the theorem, or a constant that "
        "holds everywhere is not known, or f is only a part of what the batches are drawn from.",
        (Column("theorem"), Column("run"), *(Column(SHORT.get(name, name), "r") for name in names)),
        tuple(lines),
    )


def used(results: Results) -> Table | None:
    """What each inequality of the proof used of its right side on the training run."""
    return used_table(child(results.section("training"), "budget"))


def used_table(budget: Row, name: str = "used") -> Table | None:
    """What each inequality of the proof used of its right side, one a row."""
    lines: list[tuple[Cell, ...]] = []
    for i in rows(budget, "inequalities"):
        if text(i, "kind") in ("equality", "definition"):
            continue
        kind = text(i, "kind") if i.get("evidence", True) or text(i, "kind") != "certified" else "of any vectors"
        broken = whole(i, "violations") > 0
        lines.append(
            (
                text(i, "place"),
                Math(text(i, "latex"), text(i, "statement")),
                kind,
                number(i.get("min")),
                number(i.get("median")),
                Mark(f"{number(i.get('max')):.10g}", "bad") if broken else number(i.get("max")),
            )
        )
    if not lines:
        return None
    return Table(
        name,
        f"What each step of the proof used: {text(budget, 'title', text(budget, 'theorem'))}",
        "Left side over right side at every step of the run, after what is progress was moved to the left. "
        "Certified: every constant is exact. By construction: its constant is the largest that a step used, so that "
        "none is violated by it. Of any vectors: a triangle inequality or a duality, which no run breaks. "
        f"{_evidence(budget)}The superscript t of a point is its place on the segment of its step.",
        (
            Column("step of the proof", "p", 0.16),
            Column("statement", "p", 0.38),
            Column("kind", "p", 0.1),
            Column("least", "r"),
            Column("median", "r"),
            Column("most", "r"),
        ),
        tuple(lines),
    )


def _evidence(budget: Row) -> str:
    """How many rows could have failed, as a sentence; nothing where the file does not say."""
    counts = child(budget, "counts")
    if not counts:
        return ""
    rest = f"equalities and definitions are not shown, {whole(counts, 'definition')} of them cannot fail"
    return f"Of {whole(counts, 'rows')} rows {whole(counts, 'evidence')} are evidence ({rest}). "


def blocks(results: Results) -> Table | None:
    """Each inequality about SGD with old blocks: the largest share used over the runs that it applies to."""
    found: dict[str, list[tuple[Row, Row]]] = {}
    for run in rows(child(results.section("empirics"), "blocks"), "runs"):
        for check in rows(run, "checks"):
            found.setdefault(text(check, "name", "?"), []).append((run, check))
    lines: list[tuple[Cell, ...]] = []
    for name, pairs in found.items():
        run, worst = max(pairs, key=lambda pair: x if (x := number(pair[1].get("utilisation"))) == x else math.inf)
        broken = sum(check.get("holds") is not True for _, check in pairs)
        cell: Cell = Mark(f"{broken} runs", "bad") if broken else "none"
        lines.append((name, len(pairs), number(worst.get("utilisation")), text(run, "name"), cell))
    if not lines:
        return None
    return Table(
        "blocks",
        "Randomized PipeDream, PipeDream and LocalSGD: every inequality",
        "Left side over right side on least squares, expectations over every draw and every sign of the noise. "
        "Progress of the objective is moved to the left, which may make it negative.",
        (
            Column("inequality"),
            Column("runs", "r"),
            Column("largest", "r"),
            Column("where", "p", 0.34),
            Column("violated"),
        ),
        tuple(lines),
    )
