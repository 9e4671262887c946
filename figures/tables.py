"""The tables of the report, each built from one section of the result files.

A builder returns None where its section is not available or has no rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from figures import tables_certified, tables_empirics, tables_proofs, tables_systems, tables_training
from figures import text as words
from figures.quadratic_curves import largest_deviation
from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Digits, Mark, Table

KINDS: dict[str, str] = {
    "equality": "must hold up to round-off",
    "certified": "must never be violated",
    "statistical": "an interval or test at a stated level",
    "report": "reported only, asserts nothing",
}
TONE = {"holds": "good", "fails": "bad", "missing": "warn", "report": "quiet"}


def claims(results: Results) -> list[Row]:
    """All claims, failing ones first (those that gate before the others), then missing ones; else as in the file."""
    order = {"fails": 0, "missing": 1}
    return sorted(
        rows(results.claims, "claims"),
        key=lambda claim: (
            order.get(text(claim, "outcome"), 2),
            text(claim, "outcome") == "fails" and not claim.get("gates"),
        ),
    )


def outcome_cell(claim: Row) -> Mark:
    """The outcome as a word with its tone."""
    outcome = text(claim, "outcome", "missing")
    return Mark(outcome, TONE.get(outcome, "warn"))


def value_and_limit(claim: Row) -> tuple[Cell, Cell]:
    """Value and limit with enough digits to tell them apart."""
    value, limit = number(claim.get("value")), number(claim.get("limit"))
    digits = words.split_apart(value, limit) if math.isfinite(value) and math.isfinite(limit) else 4
    return (
        None if claim.get("value") is None else Digits(value, digits),
        None if claim.get("limit") is None else Digits(limit, digits),
    )


def verdict(results: Results) -> Table | None:
    """Claims counted by kind and outcome."""
    found = rows(results.claims, "claims")
    if not found:
        return None
    kinds = list(dict.fromkeys([*KINDS, *(text(claim, "kind", "?") for claim in found)]))
    lines: list[tuple[Cell, ...]] = []
    for kind in kinds:
        mine = [claim for claim in found if text(claim, "kind", "?") == kind]
        counts = {o: sum(text(claim, "outcome", "missing") == o for claim in mine) for o in TONE}
        gating = sum(claim.get("gates") is True for claim in mine)
        fails: Cell = Mark(str(counts["fails"]), "bad") if counts["fails"] else 0
        missing: Cell = Mark(str(counts["missing"]), "warn") if counts["missing"] else 0
        lines.append((kind, KINDS.get(kind, ""), counts["holds"], fails, missing, counts["report"], gating))
    return Table(
        "verdict",
        "Verdict by kind of claim",
        "The four kinds are never mixed. A gating claim that fails or is missing decides the verdict.",
        (
            Column("kind"),
            Column("meaning"),
            Column("hold", "r"),
            Column("fail", "r"),
            Column("missing", "r"),
            Column("report only", "r"),
            Column("of these gating", "r"),
        ),
        tuple(lines),
    )


def all_claims(results: Results) -> Table | None:
    """Every claim with its numbers."""
    lines = tuple(
        (
            text(claim, "name"),
            text(claim, "kind"),
            outcome_cell(claim),
            text(claim, "statement"),
            *value_and_limit(claim),
            None if claim.get("tolerance") is None else number(claim.get("tolerance")),
            "yes" if claim.get("gates") else "no",
            text(claim, "place"),
        )
        for claim in claims(results)
    )
    if not lines:
        return None
    return Table(
        "claims",
        "All claims",
        "Failing claims come first. Value and limit carry enough digits to differ in print.",
        (
            Column("claim", "p", 0.13),
            Column("kind"),
            Column("outcome"),
            Column("statement", "p", 0.25),
            Column("value", "r"),
            Column("limit", "r"),
            Column("tolerance", "r"),
            Column("gates"),
            Column("place", "p", 0.10),
        ),
        lines,
    )


def delays(results: Results) -> Table | None:
    """Optimizer-step delays by three witnesses."""
    lines: list[tuple[Cell, ...]] = []
    for schedule in rows(results.section("delays"), "schedules"):
        witness = child(schedule, "optimizer_step_delay")
        lists = [witness.get(key) for key in ("closed_form", "enumeration", "trace")]
        known = [value for value in lists if isinstance(value, list)]
        agree = len(known) > 1 and all(value == known[0] for value in known)
        cells: list[Cell] = [" ".join(map(str, v)) if isinstance(v, list) else None for v in lists]
        word = Mark("agree", "good") if agree else Mark("differ" if len(known) > 1 else "one witness", "bad")
        lines.append(
            (
                text(schedule, "name"),
                whole(schedule, "stages"),
                whole(schedule, "microbatches"),
                *cells,
                word if len(known) != 1 else Mark("one witness", "warn"),
            )
        )
    if not lines:
        return None
    return Table(
        "delays",
        "Optimizer-step delay per stage",
        "Weight versions written between the point where a gradient is computed and the update it enters, stage 0 "
        "(input side) first: by closed form, by enumeration of the schedule, and from the trace of a real run.",
        (
            Column("schedule"),
            Column("stages", "r"),
            Column("microbatches", "r"),
            Column("closed form"),
            Column("enumeration"),
            Column("trace"),
            Column("witnesses"),
        ),
        tuple(lines),
    )


def quadratic(results: Results) -> Table | None:
    """Settings of the quadratic check and how plainly an off-by-one delay shows."""
    lines: list[tuple[Cell, ...]] = []
    for s in rows(results.section("quadratic"), "settings"):
        off = child(s, "off_by_one")
        lines.append(
            (
                text(s, "name"),
                text(s, "tau"),
                text(s, "beta"),
                number(s.get("eta")),
                text(s, "correction"),
                text(s, "form"),
                whole(s, "replicas"),
                largest_deviation(s),
                text(off, "tau"),
                number(off.get("max_standard_errors")),
            )
        )
    if not lines:
        return None
    return Table(
        "quadratic",
        "Noisy quadratics: settings and power",
        "Largest distance between measured and predicted expected loss in standard errors, with the right delay and "
        "with the delay off by one.",
        (
            Column("setting"),
            Column("tau", "r"),
            Column("beta", "r"),
            Column("eta", "r"),
            Column("correction"),
            Column("form"),
            Column("replicas", "r"),
            Column("deviation", "r"),
            Column("wrong tau", "r"),
            Column("its deviation", "r"),
        ),
        tuple(lines),
    )


def stability(results: Results) -> Table | None:
    """Stability limits with the real code just below and just above."""
    lines = tuple(
        (
            text(s, "name"),
            number(s.get("limit")),
            number(s.get("closed_form")),
            number(child(s, "below").get("h")),
            number(child(s, "below").get("growth")),
            number(child(s, "above").get("h")),
            number(child(s, "above").get("growth")),
        )
        for s in rows(results.section("quadratic"), "stability")
    )
    if not lines:
        return None
    return Table(
        "stability",
        "Stability limits on a quadratic",
        "Largest stable product h of step size and curvature, from the roots of the characteristic polynomial and in "
        "closed form; the real optimizer just below the limit shrinks, just above it grows.",
        (
            Column("method"),
            Column("limit h", "r"),
            Column("closed form", "r"),
            Column("h below", "r"),
            Column("growth", "r"),
            Column("h above", "r"),
            Column("growth", "r"),
        ),
        lines,
    )


Builder = Callable[[Results], Table | None]
BUILDERS: dict[str, Builder] = {
    "verdict": verdict,
    "delays": delays,
    "systems": tables_systems.systems,
    "quadratic": quadratic,
    "stability": stability,
    "proofs": tables_proofs.proofs,
    "ledger": tables_proofs.ledger,
    "certified": tables_certified.certified,
    "lemmas": tables_certified.lemmas,
    "theorems": tables_certified.theorems,
    "enumeration": tables_certified.enumeration,
    "tight": tables_certified.tight,
    "known_constants": tables_empirics.known_constants,
    "budget_levels": tables_empirics.budget_levels,
    "blocks": tables_empirics.blocks,
    "oracle": tables_training.oracle,
    "slack": tables_training.slack,
    "gap": tables_training.gap,
    "diagnostics": tables_training.diagnostics,
    "constants": tables_training.constants,
    "used": tables_empirics.used,
    "claims": all_claims,
}


def build(results: Results) -> dict[str, Table]:
    """All tables that the result files allow, by name."""
    found = {name: builder(results) for name, builder in BUILDERS.items()}
    return {name: table for name, table in found.items() if table is not None}
