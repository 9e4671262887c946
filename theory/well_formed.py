"""What a bound must be made of: exact, real, finite expressions in the quantities, each term in the metric's unit."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.relational import Relational

from theory.errors import InputError
from theory.quantity import UNITS
from theory.symbols import QUANTITIES

if TYPE_CHECKING:
    from theory.bound import Bound

Dimension = tuple[Any, Any]  # powers of f and x: int or Fraction, an expression where an exponent has symbols
_NONE: Dimension = (0, 0)


def check_form(bound: Bound) -> None:
    """Refuse (InputError) fields of another kind than `Bound` says, before anything is read from them."""
    owner = f"bound {bound.name}"
    for key in ("name", "title", "metric", "reference", "kind", "origin", "unit"):
        if not isinstance(getattr(bound, key), str):
            raise InputError(f"{owner}: {key} {getattr(bound, key)!r} is not text")
    for key in ("terms", "optional"):
        if not isinstance(getattr(bound, key), Mapping):
            raise InputError(f"{owner}: {key} {getattr(bound, key)!r} is not a dict of name: expression")
    names = bound.assumptions
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{owner}: assumptions {names!r} is not a tuple of names, as in ('lmo',)")
    if not isinstance(bound.conditions, tuple):
        raise InputError(f"{owner}: conditions {bound.conditions!r} is not a tuple of relations, as in (L*eta <= 1,)")


def exact(expression: object, owner: str) -> sp.Expr:
    """The expression, if it is exact, real and finite: no float, no text, no nan, oo, zoo or I. Raises InputError."""
    if isinstance(expression, (int, Fraction)) and not isinstance(expression, bool):
        expression = sp.sympify(expression)
    if isinstance(expression, float) or (isinstance(expression, sp.Basic) and expression.has(sp.Float)):
        raise InputError(f"{owner}: {expression!s} holds a float; exact numbers only, as in sympy.Rational(1, 2)")
    if not isinstance(expression, (sp.Expr, Relational)):
        raise InputError(f"{owner}: {expression!r} is not a sympy expression")
    if expression.has(sp.nan, sp.oo, -sp.oo, sp.zoo, sp.I):
        raise InputError(f"{owner}: {sp.sstr(expression)} is not a finite real expression")
    return expression


def check_units(bound: Bound) -> None:
    """Refuse (InputError) a term in another unit than the bound's, and anything that adds or compares two units."""
    owner = f"bound {bound.name}"
    for name, term in bound.terms.items():
        found = _dimension(term, f"{owner}: term {name}")
        if found is not None and found != UNITS[bound.unit]:
            raise InputError(f"{owner}: term {name} = {sp.sstr(term)} has unit {_text(found)}, not {bound.unit}")
    for condition in bound.conditions:
        _same((condition.lhs, condition.rhs), f"{owner}: condition {sp.sstr(condition)}")
    for name, best in bound.optional.items():
        _same((QUANTITIES[name].symbol, best), f"{owner}: optional {name}")


def _dimension(expression: sp.Expr, owner: str) -> Dimension | None:
    """(power of f, power of x); None for 0, which fits every unit. The symbols are quantities (see `free_names`)."""
    if expression is sp.S.Zero:
        return None
    if isinstance(expression, sp.Symbol):
        return QUANTITIES[expression.name].dimension
    if expression.is_Number:
        return _NONE
    if isinstance(expression, (sp.Add, sp.Min, sp.Max)):
        return _same(expression.args, owner)
    if isinstance(expression, sp.Abs):
        return _dimension(expression.args[0], owner)
    if isinstance(expression, sp.Mul):
        parts = [_dimension(arg, owner) or _NONE for arg in expression.args]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)
    if isinstance(expression, sp.Pow):
        base = _dimension(expression.base, owner) or _NONE
        if base == _NONE:
            _same((expression.exp, sp.S.One), owner)
            return _NONE
        power = expression.exp
        if isinstance(power, sp.Rational):
            power = Fraction(int(power.p), int(power.q))
        return base[0] * power, base[1] * power
    for argument in expression.args:  # of log, exp, ceiling, a geometric sum: pure numbers
        _same((argument, sp.S.One), owner)
    return _NONE


def _same(parts: Any, owner: str) -> Dimension | None:
    """The unit that all parts share."""
    found: Dimension | None = None
    for part in parts:
        unit = _dimension(part, owner)
        if found is not None and unit is not None and unit != found:
            raise InputError(f"{owner} brings together {_text(found)} and {_text(unit)}, in {sp.sstr(part)}")
        found = unit if found is None else found
    return found


def _text(dimension: Dimension) -> str:
    """As a name of `UNITS` where there is one."""
    for name, powers in UNITS.items():
        if powers == dimension:
            return name
    return f"f^{dimension[0]} x^{dimension[1]}"
