"""The tables of the report's certified part: runs, further theorems, enumerated expectations, tight instances.

A builder returns None where its section is not available or has no rows.
"""

from __future__ import annotations

import math

from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Mark, Math, Table


def _bound_cells(holder: Row) -> tuple[Cell, Cell, Cell]:
    """Measured value, bound and their ratio."""
    bound, measured = number(holder.get("bound")), number(holder.get("measured"))
    ratio = measured / bound if bound else math.nan
    word: Cell = Mark(f"{ratio:.4g}", "bad") if ratio > 1 + 1e-9 else ratio
    return measured, bound, word


def _theorem_name(theorem: Row) -> str:
    return text(theorem, "name") or text(theorem, "title")


def certified(results: Results) -> Table | None:
    """Bound, measurement and the tightest step of each certified run."""
    lines: list[tuple[Cell, ...]] = []
    for run in rows(results.section("certified"), "runs"):
        theorem = child(run, "theorem")
        worst = max((number(i.get("max")) for i in rows(run, "inequalities")), default=math.nan)
        used: Cell = Mark(f"{worst:.10g}", "bad") if worst > 1 + 1e-9 else worst
        lines.append(
            (
                text(run, "name"),
                text(run, "tau"),
                number(run.get("sigma")),
                _theorem_name(theorem),
                text(theorem, "kind"),
                *_bound_cells(theorem),
                used,
            )
        )
    if not lines:
        return None
    return Table(
        "certified",
        "Certified runs: bound, measurement and the tightest step",
        "Measured average, the bound with exact constants, their ratio, and the largest utilisation (left divided by "
        "right) of any pathwise inequality at any step. With noise the measured average is one run, so the "
        "theorem, a statement in expectation, is reported only.",
        (
            Column("run"),
            Column("tau", "r"),
            Column("sigma", "r"),
            Column("theorem"),
            Column("kind"),
            Column("measured", "r"),
            Column("bound", "r"),
            Column("ratio", "r"),
            Column("max utilisation", "r"),
        ),
        tuple(lines),
    )


def lemmas(results: Results) -> Table | None:
    """Each pathwise inequality once: its statement and its largest utilisation over the runs."""
    found: dict[str, list[tuple[Row, Row]]] = {}
    for run in rows(results.section("certified"), "runs"):
        for inequality in rows(run, "inequalities"):
            found.setdefault(text(inequality, "name", "?"), []).append((run, inequality))
    lines: list[tuple[Cell, ...]] = []
    for name, pairs in found.items():
        run, worst = max(pairs, key=lambda pair: x if (x := number(pair[1].get("max"))) == x else -math.inf)
        used = number(worst.get("max"))
        cell: Cell = Mark(f"{used:.10g}", "bad") if used > 1 + 1e-9 else used
        statement = Math(text(worst, "latex"), text(worst, "title", name))
        lines.append((text(worst, "title", name), statement, len(pairs), cell, text(run, "name")))
    if not lines:
        return None
    return Table(
        "lemmas",
        "The inequalities checked at every step",
        "Largest left side divided by right side over all steps of all runs, and the run where it was found.",
        (
            Column("inequality", "p", 0.2),
            Column("statement"),
            Column("runs", "r"),
            Column("largest", "r"),
            Column("where", "p", 0.14),
        ),
        tuple(lines),
    )


def theorems(results: Results) -> Table | None:
    """The further theorems that apply to the certified runs."""
    lines: list[tuple[Cell, ...]] = [
        (text(run, "name"), _theorem_name(theorem), text(theorem, "kind"), *_bound_cells(theorem))
        for run in rows(results.section("certified"), "runs")
        for theorem in rows(run, "further_theorems")
    ]
    if not lines:
        return None
    return Table(
        "theorems",
        "Further theorems on the certified runs",
        "Each theorem bounds its own metric (gradient at the iterate, where it was taken, or the momentum), so the "
        "measured values differ between theorems.",
        (
            Column("run"),
            Column("theorem"),
            Column("kind"),
            Column("measured", "r"),
            Column("bound", "r"),
            Column("ratio", "r"),
        ),
        tuple(lines),
    )


def enumeration(results: Results) -> Table | None:
    """Theorems with noise against expectations over all paths."""
    lines: list[tuple[Cell, ...]] = [
        (text(case, "setting"), text(case, "name"), text(case, "tau"), whole(case, "paths"), *_bound_cells(case))
        for case in rows(results.section("certified"), "enumeration")
    ]
    if not lines:
        return None
    return Table(
        "enumeration",
        "Theorems with noise, expectation computed exactly",
        "The noise takes two values a step, so the expectation is a finite sum over all paths and the comparison is "
        "certified, not statistical.",
        (
            Column("setting"),
            Column("theorem"),
            Column("tau", "r"),
            Column("paths", "r"),
            Column("expectation", "r"),
            Column("bound", "r"),
            Column("ratio", "r"),
        ),
        tuple(lines),
    )


def tight(results: Results) -> Table | None:
    """Instances where a lemma is nearly tight, and the mutated constants they refute."""
    lines: list[tuple[Cell, ...]] = []
    for case in rows(results.section("certified"), "tight"):
        refuted = case.get("refuted") is True
        lines.append(
            (
                text(case, "lemma"),
                text(case, "instance"),
                number(case.get("utilisation")),
                text(case, "mutation"),
                number(case.get("mutated_utilisation")),
                Mark("refuted", "good") if refuted else Mark("not refuted", "bad"),
            )
        )
    if not lines:
        return None
    return Table(
        "tight",
        "Mutated constants are refuted",
        "On these small exact instances each lemma is tight or nearly so; with the constant changed as named, left "
        "divided by right passes 1 and the changed lemma is refuted.",
        (
            Column("lemma", "p", 0.14),
            Column("instance", "p", 0.28),
            Column("utilisation", "r"),
            Column("mutation", "p", 0.18),
            Column("mutated", "r"),
            Column("outcome"),
        ),
        tuple(lines),
    )
