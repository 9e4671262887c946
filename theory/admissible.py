"""Where one symbol may lie when the others are fixed, so that a refusal can name the admissible range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from theory.errors import InputError
from theory.evaluation import free_names
from theory.symbols import QUANTITIES, get_quantity, number_text


@dataclass(frozen=True)
class Interval:
    """From low to high; an end is open (not reached) or closed."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def contains(self, value: float) -> bool:
        """True if value lies in it."""
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def text(self) -> str:
        """In words, six digits, rounded inwards so that the printed number is itself admissible."""
        low, high = _rounded(self.low, ROUND_CEILING), _rounded(self.high, ROUND_FLOOR)
        if math.isinf(self.high):
            return f"{'>' if self.open_low else '>='} {low}"
        if math.isinf(self.low) or (self.low == 0 and self.open_low):
            return f"{'<' if self.open_high else '<='} {high}"
        return f"in {'(' if self.open_low else '['}{low}, {high}{')' if self.open_high else ']'}"


def _rounded(value: float, way: str) -> str:
    if math.isinf(value) or value == 0:
        return number_text(value)
    exact = Decimal(value)
    return number_text(float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 5), rounding=way)))


def admissible(
    conditions: tuple[Relational, ...], name: str, values: Mapping[str, object], owner: str
) -> tuple[Interval, ...]:
    """The intervals of `name` that its domain and all conditions admit, in order.

    `values` gives the other symbols of the conditions as scalars (more do no harm). Raises InputError for a missing
    one, or for a condition that is not rational in `name`.
    """
    quantity = get_quantity(name)
    x = quantity.symbol
    gaps = []
    for condition in conditions:
        needed = [other for other in free_names(condition) if other != name]
        missing = [other for other in needed if other not in values]
        if x not in condition.free_symbols:
            continue
        if missing:
            raise InputError(f"{owner}: missing {', '.join(missing)} for the admissible range of {name}")
        numbers = {QUANTITIES[other].symbol: sp.Rational(_scalar(other, values[other])) for other in needed}
        gaps.append(((condition.lts - condition.gts).subs(numbers), isinstance(condition, (sp.Lt, sp.Gt))))
    domain = quantity.domain
    cuts = {domain.low, domain.high}
    try:
        for gap, _ in gaps:
            for part in sp.fraction(sp.together(gap)):
                if part.has(x):
                    roots = np.roots([float(c) for c in sp.Poly(part, x).all_coeffs()])
                    cuts |= {float(r.real) for r in roots if abs(r.imag) <= 1e-9 * max(1, abs(r.real))}
    except (sp.PolynomialError, TypeError):
        raise InputError(f"{owner}: no closed form for the admissible range of {name}") from None
    ends = sorted(cut for cut in cuts if domain.low <= cut <= domain.high)
    out: list[Interval] = []
    strict = any(is_strict for _, is_strict in gaps)
    for low, high in zip(ends, ends[1:], strict=False):
        middle = _between(low, high)
        if all(gap.subs(x, sp.Rational(middle)) <= 0 for gap, _ in gaps):
            open_low = domain.open_low if low == domain.low else strict
            open_high = domain.open_high if high == domain.high else strict
            if out and out[-1].high == low:
                low, open_low = out.pop().low, False
            out.append(Interval(low, high, open_low, open_high))
    if domain.integer:
        out = [Interval(math.ceil(i.low - 1e-9), _floor(i.high)) for i in out]
        out = [i for i in out if i.low <= i.high]
    return tuple(out)


def refusal(condition: Relational, given: Mapping[str, float]) -> str:
    """Why a condition refuses the given values, and which values of one symbol at a time it would admit."""
    at = ", ".join(f"{name}={number_text(value)}" for name, value in given.items())
    ways = []
    for name in given if len(given) > 1 else ():
        try:
            found = admissible((condition,), name, given, "condition")
        except InputError:
            continue
        if found:
            ways.append(f"{name} must be " + " or ".join(interval.text() for interval in found))
    here = f"; here {', or '.join(ways[:3])}" if ways else ""
    return f"holds only for {sp.sstr(condition)}; given {at}{here}"


def _scalar(name: str, value: object) -> float:
    array = QUANTITIES[name].check(value)
    if array.ndim:
        raise InputError(f"{name}: an admissible range needs one number, not an array")
    return float(array)


def _between(low: float, high: float) -> float:
    if math.isinf(low):
        return high - 1 if math.isfinite(high) else 0.0
    return (low + high) / 2 if math.isfinite(high) else 2 * max(low, 0.5)


def _floor(value: float) -> float:
    return math.floor(value + 1e-9) if math.isfinite(value) else value
