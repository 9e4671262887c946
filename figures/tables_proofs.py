"""The tables of the report's part on proofs: what was proved, and which axioms each theorem rests on."""

from __future__ import annotations

from figures.results import Results, Row, child, number, rows, text, whole
from figures.table import Cell, Column, Mark, Table


def proofs(results: Results) -> Table | None:
    """One row a proof: steps, counterexamples, time, what it uses."""
    lines: list[tuple[Cell, ...]] = []
    for proof in rows(results.section("proofs"), "proofs"):
        proved: Cell = "proved" if proof.get("proved") is True else Mark("not proved", "bad")
        lines.append(
            (
                text(proof, "name"),
                text(proof, "title"),
                proved,
                len(rows(proof, "steps")),
                whole(proof, "counterexamples"),
                number(proof.get("seconds")),
                ", ".join(str(name) for name in _names(proof, "rests_on")) or "-",
            )
        )
    if not lines:
        return None
    return Table(
        "proofs",
        "Proofs checked step by step",
        "Each step follows from its premises for all admissible values of every symbol. A step also counts only if "
        "each sharper constant, and the step without each of its premises, has a counterexample in exact numbers.",
        (
            Column("name"),
            Column("statement"),
            Column("outcome"),
            Column("steps", "r"),
            Column("counterexamples", "r"),
            Column("seconds", "r"),
            Column("uses"),
        ),
        tuple(lines),
    )


def ledger(results: Results) -> Table | None:
    """One row an axiom: the theorems that rest on it."""
    uses: dict[tuple[str, str], list[str]] = {}
    for proof in rows(results.section("proofs"), "proofs"):
        for kind in ("assumptions", "mathematics"):
            for axiom in child(child(proof, "ledger"), kind):
                uses.setdefault((kind, axiom), []).append(text(proof, "name"))
    if not uses:
        return None
    return Table(
        "ledger",
        "What the theorems rest on",
        "The axioms reached from each theorem through every step of its proof: those that it assumes, and facts of "
        "mathematics. Nothing else is unproved; without any of them some step has a counterexample.",
        (Column("kind"), Column("axiom"), Column("theorems and lemmas")),
        tuple((kind, axiom, ", ".join(names)) for (kind, axiom), names in sorted(uses.items())),
    )


def _names(proof: Row, key: str) -> list[object]:
    values = proof.get(key)
    return values if isinstance(values, list) else []
