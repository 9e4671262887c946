"""What `staleproof bound` prints about more than one number: expansions and comparisons."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from staleproof.output import emit, emit_json

if TYPE_CHECKING:
    import sympy as sp

    from theory.bound import Bound
    from theory.comparison import TermComparison


def show_expansion(bound: Bound, args: argparse.Namespace) -> None:
    """Orders in K, or M, after tuning."""
    import sympy as sp

    from theory.symbols import QUANTITIES

    expansion = bound.expand()

    def plain(order: Any) -> dict[str, str] | None:
        return order and {"power": str(order.power), "coefficient": sp.sstr(order.coefficient), "latex": order.latex()}

    result = {
        **head(bound),
        "horizon": expansion.horizon,
        "at": {name: plain(order) for name, order in expansion.at.items()},
        "terms": {name: plain(order) for name, order in expansion.terms.items()},
        "total": [plain(order) for order in expansion.total],
        "delay": plain(expansion.delay),
        "delay_relative": plain(expansion.delay_relative),
    }
    if args.json:
        emit_json(result)
    elif args.latex:
        best = [f"& {QUANTITIES[name].latex}^* \\sim {order.latex()}" for name, order in expansion.at.items()]
        parts = [part for order in expansion.total for part in order.latex_parts()]
        total = aligned(best, bound.metric, r"\lesssim", parts)
        emit(f"{commented(bound)}\n{total}")
    else:
        at = f"{' and '.join(expansion.at)} tuned" if expansion.at else "nothing to tune"
        emit(f"{bound.title}, {at}, {expansion.horizon} to infinity")
        rows = [*expansion.at.items(), *expansion.terms.items(), ("total", expansion.total[0])]
        rows += [("delay / total", expansion.delay_relative)]
        shown = [(name, order) for name, order in rows if order is not None]
        width = max(len(name) for name, _ in shown)
        powers = [f"{expansion.horizon}^({order.power})" for _, order in shown]
        wide = max(map(len, powers))
        for (name, order), power in zip(shown, powers, strict=True):
            emit(f"  {name:<{width}}  {power:<{wide}}  {sp.sstr(order.coefficient)}")


def show_comparison(
    first: Bound, second: Bound, values: dict[str, float], schedule: list[str], args: argparse.Namespace
) -> None:
    """Term by term, what only one of the two assumes, and the verdict at the values where they are given."""
    from theory.comparison import at_values, comparison_json, verdicts

    numbers = at_values(first, second, values) if values else ()
    judged = verdicts(*numbers) if numbers else {}
    comparison = first.compare(second)
    if args.json:
        by_name = {
            bound.name: {"value": here["total"], "terms": {name: x for name, x in here.items() if name != "total"}}
            for bound, here in zip((first, second), numbers, strict=False)
        }
        given = {"values": values, "schedule": schedule}
        emit_json({**comparison_json(comparison), **given, "numbers": by_name, "verdicts": judged})
        return
    if args.latex:
        from staleproof.statements import statement

        emit(f"{statement(first)}\n\n{statement(second)}")
        return
    emit("\n".join([f"{first.name} -> {second.name}", *(f"  with {line}" for line in schedule)]))
    rows = []
    for term in (*comparison.terms, comparison.total):
        shown = [f"{here[term.name]:.6g}" if term.name in here else "-" for here in numbers]
        words = _at_numbers(term, *(here.get(term.name) for here in numbers)) if numbers else term.text
        if numbers:
            who = {"equal": "equal", "smaller": f"smaller: {second.name}", "larger": f"smaller: {first.name}"}
            last = who[judged[term.name]]
        elif term.smaller in ("equal", "depends"):
            last = "equal" if term.smaller == "equal" else "depends on the values"
        else:
            last = f"smaller: {_who(term.smaller, first.name, second.name)}"
        rows.append((words, *shown, last))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        emit("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for name, only in ((first.name, comparison.only_first), (second.name, comparison.only_second)):
        if only:
            emit(f"only {name} assumes: {', '.join(only)}")
    if comparison.exclusive:
        emit(f"No run fulfils both {comparison.exclusive}.")
    if not comparison.same_metric:
        emit("The metrics differ: compare terms, not totals.")
    emit("Both are upper bounds: their difference bounds no measured difference.")


def _at_numbers(term: TermComparison, first: float | None, second: float | None) -> str:
    """The text of a term; where the first is 0 at the values there is no ratio to speak of."""
    if term.ratio is not None and first == 0 and term.smaller != "equal":
        return f"{term.name}: 0 in {'both' if second == 0 else 'the first'}"
    return term.text


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
        "metric": bound.metric,
        "unit": bound.unit,
        "assumptions": list(bound.assumptions),
        "optional": {name: str(best) for name, best in bound.optional.items()},
    }


def hypotheses(bound: Bound, schedule: Sequence[str] = ()) -> str:
    """Title, kind and reference; what is bounded; under which conditions and assumptions; the schedule whose delay is
    taken. For text output."""
    import sympy as sp

    lines = [bound.title, f"{bound.kind}; {bound.reference}", f"bounds {bound.metric}"]
    if bound.conditions:
        lines.append(f"if {' and '.join(sp.sstr(condition) for condition in bound.conditions)}")
    lines.append(f"assumes {', '.join(bound.assumptions)}")
    lines += [f"with {line}" for line in schedule]
    return "\n".join(lines)


def commented(bound: Bound) -> str:
    """`hypotheses` as comments of LaTeX, before a formula that is no statement of its own."""
    return "\n".join(f"% {line}" for line in ["needs amsmath, amssymb", *hypotheses(bound).splitlines()])


def tuned_latex(bound: Bound, formula: dict[str, sp.Expr]) -> str:
    """The best choices and the value there, a display of LaTeX."""
    from theory.evaluation import latex_of
    from theory.symbols import QUANTITIES

    *places, (_, value) = formula.items()
    best = [f"& {QUANTITIES[name].latex}^* = {latex_of(choice)}" for name, choice in places]
    return aligned(best, bound.metric, r"\le", [latex_of(term) for term in value.as_ordered_terms()])


def aligned(before: list[str], left: str, relation: str, terms: list[str]) -> str:
    """A display of LaTeX with a line each for `before`, the left side, and every term of the right side."""
    signs = [rf"& \quad {relation}{{}}", *[r"& \quad {}+"] * (len(terms) - 1)]
    bracketed = [rf"\left({term}\right)" if term.startswith("-") else term for term in terms]
    lines = [*before, f"& {left}", *(f"{sign} {term}" for sign, term in zip(signs, bracketed, strict=True))]
    return "\n".join([r"\begin{align*}", " \\\\\n".join(lines), r"\end{align*}"])
