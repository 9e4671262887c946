"""Counterexamples, in exact numbers and without a solver: admissible, every premise holds, the conclusion does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import sympy as sp

from theory.quantity import REAL, Domain
from theory.relation import Relation
from theory.symbols import QUANTITIES


def domain_of(symbol: sp.Symbol) -> Domain:
    """The domain of a symbol: of the quantity of its name (NAME@3 is NAME at another step), else its assumptions."""
    name = symbol.name.partition("@")[0]
    if name in QUANTITIES and not isinstance(symbol, sp.Dummy):
        return QUANTITIES[name].domain
    if symbol.is_nonnegative:
        return Domain(low=0.0, open_low=bool(symbol.is_positive), integer=bool(symbol.is_integer))
    return REAL


def refutes(
    values: Mapping[sp.Symbol, sp.Expr], premises: Iterable[Relation], conclusion: Relation
) -> bool:
    """Exactly, without the solver: the values are admissible, every premise holds and the conclusion does not."""
    for symbol, value in values.items():
        if not _admits(domain_of(symbol), value):
            return False
    return all(_holds(premise, values) for premise in premises) and not _holds(conclusion, values)


def _holds(relation: Relation, values: Mapping[sp.Symbol, sp.Expr]) -> bool:
    difference = relation.difference.xreplace(dict(values))
    if not difference.is_Rational:
        difference = sp.simplify(difference)
    if not difference.is_finite:
        return False
    return bool(difference <= 0) if relation.sense == "<=" else bool(difference == 0)


def _admits(domain: Domain, value: sp.Expr) -> bool:
    if domain.integer and not value.is_integer:
        return False
    low, high = sp.Rational(*_ratio(domain.low)), sp.Rational(*_ratio(domain.high))
    above = domain.low == -float("inf") or (value > low if domain.open_low else value >= low)
    below = domain.high == float("inf") or (value < high if domain.open_high else value <= high)
    return bool(above) and bool(below)


def _ratio(number: float) -> tuple[int, int]:
    return (0, 1) if number in (float("inf"), -float("inf")) else Fraction(number).as_integer_ratio()
