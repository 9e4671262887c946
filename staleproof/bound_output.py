"""What `staleproof bound` prints about more than one number: expansions and comparisons."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from staleproof.errors import InputError
from staleproof.output import emit, emit_json

if TYPE_CHECKING:
    from theory.bound import Bound


def show_expansion(bound: Bound, args: argparse.Namespace) -> None:
    """Orders in K after tuning."""
    import sympy as sp

    names = tuple(name for name in ("eta", "gamma") if name in bound.symbols)[:1]
    expansion = bound.expand((*names, *(name for name in ("alpha",) if name in bound.symbols)))

    def plain(order: Any) -> dict[str, str] | None:
        return order and {"power": str(order.power), "coefficient": sp.sstr(order.coefficient), "latex": order.latex()}

    result = {
        **head(bound),
        "at": {name: plain(order) for name, order in expansion.at.items()},
        "terms": {name: plain(order) for name, order in expansion.terms.items()},
        "total": [plain(order) for order in expansion.total],
        "delay": plain(expansion.delay),
        "delay_relative": plain(expansion.delay_relative),
    }
    if args.json:
        emit_json(result)
    elif args.latex:
        emit(f"{bound.metric} \\lesssim " + " + ".join(order.latex() for order in expansion.total))
    else:
        emit(f"{bound.title}, {' and '.join(expansion.at)} tuned, K to infinity")
        rows = [*expansion.at.items(), *expansion.terms.items(), ("total", expansion.total[0])]
        rows += [("delay / total", expansion.delay_relative)]
        width = max(len(name) for name, _ in rows)
        for name, order in rows:
            if order is not None:
                emit(f"  {name:<{width}}  K^({order.power})  {sp.sstr(order.coefficient)}")


def show_comparison(first: Bound, second: Bound, values: dict[str, float], args: argparse.Namespace) -> None:
    """Term by term, with numbers where values are given."""
    from theory.comparison import comparison_json

    unknown = [name for name in values if name not in (*first.symbols, *second.symbols)]
    if unknown:
        raise InputError(f"set: neither bound has a symbol {unknown[0]!r}")
    comparison = first.compare(second)
    numbers: dict[str, dict[str, Any]] = {}
    for bound in (first, second) if values else ():
        here = {name: value for name, value in values.items() if name in bound.symbols}
        terms = {name: float(term) for name, term in bound.evaluate_terms(**here).items()}
        numbers[bound.name] = {"value": float(bound.evaluate(**here)), "terms": terms}
    if args.json:
        emit_json({**comparison_json(comparison), "values": values, "numbers": numbers})
        return
    if args.latex:
        emit(f"{first.latex()}\n{second.latex()}")
        return
    emit(f"{first.name} -> {second.name}")
    rows = []
    for term in (*comparison.terms, comparison.total):
        key = "value" if term.name == "total" else None
        cells = [n["value"] if key else n["terms"].get(term.name) for n in numbers.values()]
        shown = ["-" if cell is None else f"{cell:.6g}" for cell in cells]
        judged = "equal" if term.smaller == "equal" else f"smaller: {_who(term.smaller, first.name, second.name)}"
        rows.append((term.text, *shown, judged))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        emit("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    if not comparison.same_metric:
        emit("The metrics differ: compare terms, not totals.")
    emit("Both are upper bounds: their difference bounds no measured difference.")


def _who(smaller: str, first: str, second: str) -> str:
    for word, name in (("first", first), ("second", second)):
        if smaller.startswith(word):
            return name + smaller[len(word) :]
    return smaller


def head(bound: Bound) -> dict[str, Any]:
    """What every JSON of a bound begins with."""
    return {
        "name": bound.name,
        "title": bound.title,
        "kind": bound.kind,
        "origin": bound.origin,
        "reference": bound.reference,
        "symbols": list(bound.symbols),
        "conditions": [str(condition) for condition in bound.conditions],
    }
