"""What the symbols and assumptions of a bound say, in words: for text output and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theory.bound import Bound


def in_words(bound: Bound) -> dict[str, Any]:
    """Symbols, assumptions and functions of a bound with what they mean, ready for JSON."""
    from theory.symbols import get_quantity

    meanings = {
        quantity.name: {
            "meaning": quantity.meaning,
            "unit": quantity.unit,
            "domain": quantity.domain.text,
            "estimator": quantity.estimator,
            "left_out": str(bound.optional[quantity.name]) if quantity.name in bound.optional else None,
        }
        for quantity in map(get_quantity, bound.symbols)
    }
    return {"meanings": meanings, "assumption_words": words_of(bound.assumptions), "functions": functions_of(bound)}


def words_of(assumptions: Iterable[str]) -> dict[str, str]:
    """Assumptions by name with their words; what is no assumption is left out."""
    from theory.assumptions import ASSUMPTIONS

    return {name: ASSUMPTIONS[name] for name in assumptions if name in ASSUMPTIONS}


def functions_of(bound: Bound) -> dict[str, str]:
    """The functions in the terms that are not of the usual mathematics: their definition."""
    from theory.functions import GeometricSum

    return {"GeometricSum(p, q, K)": str(GeometricSum.__doc__)} if bound.expression.has(GeometricSum) else {}


def meaning_lines(bound: Bound) -> str:
    """`in_words` as text."""
    found = in_words(bound)
    rows = [(name, f"[{said['unit']}]", _sentence(said)) for name, said in found["meanings"].items()]
    lines = ["symbols", *_columns(rows), "assumptions", *_columns(list(found["assumption_words"].items()))]
    if found["functions"]:
        lines += ["functions", *_columns(list(found["functions"].items()))]
    return "\n".join(lines)


def _sentence(said: dict[str, Any]) -> str:
    parts = [said["meaning"], said["domain"]]
    parts += [f"estimator {said['estimator']}"] if said["estimator"] else []
    parts += [f"may be left out: then {said['left_out']}"] if said["left_out"] else []
    return "; ".join(parts)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    starts = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) for row in rows)
    return [f"  {start}  {row[-1]}" for start, row in zip(starts, rows, strict=True)]
