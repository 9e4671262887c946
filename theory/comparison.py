"""Two bounds term by term: exact ratios, and which one is smaller where.

Both sides are upper bounds. A smaller bound promises more; their difference bounds no measured difference, and where
the metrics differ not even the totals compare. Bounds of different units are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.relational import Relational

from theory.assumptions import contradiction, exclusive
from theory.errors import InputError
from theory.evaluation import latex_of
from theory.symbols import QUANTITIES

if TYPE_CHECKING:
    from theory.bound import Bound

LONGEST = 90  # characters of a ratio or a condition that are worth printing
DIFFER = "metrics differ"  # in place of which total is smaller
EQUAL = 1e-12  # relative: numbers that differ by the round-off of their sums are equal
WORDS = {sp.Rational(1, 2): "halves", sp.Integer(2): "doubles", sp.Integer(1): "stays"}


@dataclass(frozen=True)
class TermComparison:
    """One term of both bounds; None where a bound has no such term.

    ratio: second / first, simplified, where both are there and not 0; smaller: "first", "second", "equal" for all
    admissible values, or the condition under which the second is smaller; DIFFER for the totals of two metrics; text:
    in words.
    """

    name: str
    first: sp.Expr | None
    second: sp.Expr | None
    ratio: sp.Expr | None
    smaller: str
    text: str


@dataclass(frozen=True)
class Comparison:
    """All terms; same_metric: whether the totals bound the same quantity; only_first, only_second: what one of the two
    rests on and the other does not, names of assumptions and conditions as text; exclusive: assumptions of the two that
    no run fulfils together, in words, or None.
    """

    first: str
    second: str
    same_metric: bool
    terms: tuple[TermComparison, ...]
    total: TermComparison
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    exclusive: str | None = None


def compare(first: Bound, second: Bound) -> Comparison:
    """The comparison, second against first. Raises InputError for what is no bound, and where the units differ."""
    from theory.bound import TERM_NAMES

    refuse_units((first, second))
    names = [name for name in TERM_NAMES if name in first.terms or name in second.terms]
    conditions = (*first.conditions, *second.conditions)
    terms = tuple(_term(name, first.terms.get(name), second.terms.get(name), conditions) for name in names)
    total = _term("total", first.expression, second.expression, conditions)
    same = first.metric == second.metric
    return Comparison(
        first.name,
        second.name,
        same,
        terms,
        total if same else replace(total, smaller=DIFFER),
        _only(first, second),
        _only(second, first),
        exclusive(first.assumptions, second.assumptions),
    )


def at_values(first: Bound, second: Bound, values: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """`numbers_at` of two bounds."""
    one, two = numbers_at((first, second), values)
    return one, two


def numbers_at(bounds: Sequence[Bound], values: Mapping[str, float]) -> list[dict[str, float]]:
    """The terms of each and their "total" at the same values, each bound at those that it has a symbol for.

    Raises InputError where the units differ, for a symbol that none has, for a value that contradicts an assumption of
    one of them, and for what `Bound.evaluate` refuses.
    """
    refuse_units(bounds)
    unknown = [name for name in values if all(name not in bound.symbols for bound in bounds)]
    if unknown:
        raise InputError(f"set: none of {', '.join(bound.name for bound in bounds)} has a symbol {unknown[0]!r}")
    out = []
    for bound in bounds:
        broken = contradiction(bound.assumptions, values)
        if broken:
            raise InputError(f"set: {broken}, which {bound.name} assumes; at these values they are not comparable")
        here = {name: value for name, value in values.items() if name in bound.symbols}
        terms = {name: float(term) for name, term in bound.evaluate_terms(**here).items()}
        out.append({**terms, "total": float(bound.evaluate(**here))})
    return out


def refuse_units(bounds: Sequence[Bound]) -> None:
    """Raises InputError for what is no bound, and for two whose left sides have different units."""
    from theory.bound import Bound

    for bound in bounds:
        if not isinstance(bound, Bound):
            raise InputError(f"compare: {bound!r} is not a bound; give one, e.g. get_bound('delayed-lmo')")
    one = bounds[0]
    for other in bounds:
        if other.unit != one.unit:
            raise InputError(
                f"compare: {one.name} bounds a quantity of unit {one.unit}, {other.name} one of {other.unit}; "
                "only bounds of one unit compare"
            )


def verdict(first: float, second: float) -> str:
    """What the second number is beside the first: "smaller", "equal" (but for round-off) or "larger"."""
    if math.isclose(first, second, rel_tol=EQUAL, abs_tol=0.0):
        return "equal"
    return "smaller" if second < first else "larger"


def verdicts(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, str]:
    """`verdict` of each term and of the total, as `at_values` gives them; a term that is not there is 0."""
    names = dict.fromkeys([*(name for name in (*first, *second) if name != "total"), "total"])
    return {name: verdict(first.get(name, 0.0), second.get(name, 0.0)) for name in names}


def _only(one: Bound, other: Bound) -> tuple[str, ...]:
    """Assumptions and conditions of `one` that `other` has not."""
    names = [name for name in one.assumptions if name not in other.assumptions]
    return (*names, *(sp.sstr(c) for c in one.conditions if c not in other.conditions))


def _term(
    name: str, first: sp.Expr | None, second: sp.Expr | None, conditions: tuple[Relational, ...]
) -> TermComparison:
    if first is None or second is None or first == 0 or second == 0:
        there = "first" if second in (None, sp.S.Zero) else "second"
        missing = "second" if there == "first" else "first"
        if first in (None, sp.S.Zero) and second in (None, sp.S.Zero):
            return TermComparison(name, first, second, None, "equal", f"{name}: in neither")
        return TermComparison(name, first, second, None, missing, f"{name}: in the {there} only")
    if first == second:
        return TermComparison(name, first, second, sp.S.One, "equal", f"{name}: stays")
    if name == "total":
        difference = sp.factor_terms(sp.expand(second - first))
        sign, test = _sign(difference, conditions), f"{sp.sstr(difference)} < 0"
        ratio, word = None, f"changes by {sp.sstr(difference)}"
    else:
        ratio = sp.factor(sp.cancel(sp.powsimp(sp.factor_terms(second / first))))
        sign, test = _sign(ratio**2 - 1, conditions), f"{sp.sstr(ratio)} < 1"
        word = WORDS.get(ratio, f"times {sp.sstr(ratio)}")
    smaller = {0: "equal", -1: "second", 1: "first", None: f"second where {test}"}[sign]
    if len(smaller) > LONGEST:
        smaller = "depends"
    if len(word) > LONGEST:
        word = "changes" if sign != 0 else "stays"
    return TermComparison(name, first, second, ratio, smaller, f"{name}: {word}")


def _sign(expression: sp.Expr, conditions: tuple[Relational, ...]) -> int | None:
    """-1 or 1 if no admissible values give the other sign, 0 if it vanishes, None if that is not seen.

    A symbol in (0, 1] is written 1/(1+z), a count 1+z, and r_lo <= r_hi as r_hi = r_lo + z, with z >= 0.
    """
    more = {c.gts: c.lts for c in conditions if c.lts.is_Symbol and c.gts.is_Symbol}
    for symbol in sorted(expression.free_symbols, key=str):
        domain = QUANTITIES[str(symbol)].domain
        z = sp.Symbol(f"z_{symbol}", nonnegative=True)
        if symbol in more:
            expression = expression.subs(symbol, more[symbol] + z)
        elif (domain.low, domain.high) == (0, 1) and not domain.open_high:
            expression = expression.subs(symbol, 1 / (1 + z))
        elif domain.low == 1:
            expression = expression.subs(symbol, 1 + z)
    numerator, denominator = (sp.expand(part) for part in sp.fraction(sp.together(expression)))
    if numerator == 0:
        return 0
    for sign in (1, -1):
        if denominator.is_nonnegative or (-denominator).is_nonnegative:
            way = 1 if denominator.is_nonnegative else -1
            if sp.expand(sign * way * numerator).is_nonnegative:
                return sign
    return None


def comparison_json(comparison: Comparison) -> dict[str, object]:
    """Names, ratios as text and LaTeX, and who is smaller, as plain values."""

    def row(term: TermComparison) -> dict[str, object]:
        latex = {
            key: None if value is None else latex_of(value)
            for key, value in (("first", term.first), ("second", term.second), ("ratio", term.ratio))
        }
        ratio = None if term.ratio is None else sp.sstr(term.ratio)
        return {"name": term.name, "ratio": ratio, "smaller": term.smaller, "text": term.text, "latex": latex}

    return {
        "first": comparison.first,
        "second": comparison.second,
        "same_metric": comparison.same_metric,
        "terms": [row(term) for term in comparison.terms],
        "total": row(comparison.total),
        "only_first": list(comparison.only_first),
        "only_second": list(comparison.only_second),
        "exclusive": comparison.exclusive,
    }
