"""The smallest value of a bound over its step size, its momentum, or both.

Closed form: as a function of the step x a bound is often A/x + B + C x; then x* = sqrt(A/C) and the value is
B + 2 sqrt(A C). Two names: the step by its closed form, what is left numerically. Everything else is numeric: a grid
over the whole domain, its best minima polished. Each result is checked: no point of the grid is lower, and the value is
stationary there unless an end of the domain or a condition stops it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from theory.admissible import Interval, admissible
from theory.assumptions import tied
from theory.errors import InputError
from theory.search import GRID, falls, function_of, search
from theory.symbols import QUANTITIES

if TYPE_CHECKING:
    from theory.bound import Bound

STEPS = ("eta", "gamma")  # symbols in which a bound may be A/x + B + C x
CHOICES = (*STEPS, "alpha", "beta", "b", "c", "theta")  # set by the method or the analysis
DELAYS = ("tau", "delta_max")  # symbols of a delay that may be 0


@dataclass(frozen=True)
class Tuned:
    """The smallest value and where it is.

    value, terms: at the minimiser `at` (name -> number); method: "closed form" or "numeric"; check: what was checked;
    limited_by: the condition or end of a domain that stops the minimiser, or None; formula: the minimiser and value as
    expressions where there is a closed form; relative_price: by how much the delay raises the part that the step tunes
    (None without a delay or a closed form); relative_price_total: the tuned value over that of the same bound tuned at
    delay 0, minus 1; relative_price_note: why it is None, or None.
    """

    bound: str
    value: float
    at: dict[str, float]
    terms: dict[str, float]
    method: str
    check: str
    limited_by: str | None
    formula: dict[str, sp.Expr]
    relative_price: float | None
    relative_price_total: float | None
    relative_price_note: str | None = None


def split(expression: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """(A, B, C) with expression = A/x + B + C x, or None if it is not of that form."""
    parts = [sp.S.Zero, sp.S.Zero, sp.S.Zero]
    for term in sp.Add.make_args(sp.sympify(expression)):
        pieces = [term] if term.as_independent(x)[1] in (1 / x, 1, x) else sp.Add.make_args(sp.expand(term))
        for piece in pieces:
            factor, rest = piece.as_independent(x, as_Add=False)
            if rest not in (1 / x, sp.S.One, x):
                return None
            parts[(1 / x, sp.S.One, x).index(rest)] += factor
    return parts[0], parts[1], parts[2]


def tune(bound: Bound, names: tuple[str, ...], values: Mapping[str, object]) -> Tuned:
    """Minimise `bound` over `names`; `values` are scalars for the other symbols. Raises InputError (see `Bound`)."""
    fixed = _fixed(bound, names, values)
    result = _minimise(bound, names, fixed)
    delay = next((name for name in DELAYS if name in bound.symbols), None)
    given = [n for n, best in bound.optional.items() if n in fixed and str(delay) in map(str, best.free_symbols)]
    note: str | None
    if delay is None:
        note = f"{bound.name} has no symbol of a delay that may be 0 ({', '.join(DELAYS)})"
    elif given:
        note = f"{given[0]} is given, whose best choice depends on {delay}"
    else:
        undelayed = {**fixed, delay: 0.0}
        price = _price(bound, names, fixed, undelayed, result)
        total, note = _ratio(bound, names, undelayed, result.value, delay)
        parts = {"relative_price": price, "relative_price_total": total, "relative_price_note": note}
        return Tuned(**{**vars(result), **parts})
    return Tuned(**{**vars(result), "relative_price_note": note})


def _fixed(bound: Bound, names: tuple[str, ...], values: Mapping[str, object]) -> dict[str, float]:
    """The values as floats, checked: what is tuned is left out, what is not optional is there."""
    owner = f"bound {bound.name}"
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{owner}: tune {names!r} is not allowed; give a tuple of names, e.g. ('alpha',)")
    tunable = [name for name in bound.symbols if name in CHOICES]
    if not tunable:
        raise InputError(f"{owner}: nothing to tune; its symbols are {', '.join(bound.symbols)}, none of them a choice")
    if not names or len(set(names)) != len(names) or any(name not in tunable for name in names):
        raise InputError(f"{owner}: tune {', '.join(names) or 'nothing'}; allowed are {', '.join(tunable)}, each once")
    why_not = tied(bound.assumptions, names)
    if why_not:
        raise InputError(f"{owner}: {why_not}")
    for name in values:
        if name in names:
            raise InputError(f"{owner}: {name} is tuned; leave its value out, or do not tune it")
        if name not in bound.symbols:
            raise InputError(f"{owner}: unknown symbol {name!r}; allowed: {', '.join(bound.symbols)}")
    needed = [name for name in bound.symbols if name not in names and name not in bound.optional]
    missing = [name for name in needed if name not in values]
    if missing:
        raise InputError(f"{owner}: missing {', '.join(missing)}; needed: {', '.join(needed)}")
    out = {}
    for name, value in values.items():
        array = QUANTITIES[name].check(value)
        if array.ndim:
            raise InputError(f"{owner}: {name} is an array; tuning needs one number")
        out[name] = float(array)
    return out


def _total(bound: Bound, fixed: Mapping[str, float]) -> sp.Expr:
    """The right side, with what is optional and not given replaced by what `Bound.optional` has."""
    best = {QUANTITIES[name].symbol: choice for name, choice in bound.optional.items() if name not in fixed}
    return sp.Add(*(term.subs(best) for term in bound.terms.values()))


def _minimise(bound: Bound, names: tuple[str, ...], fixed: Mapping[str, float]) -> Tuned:
    total = _total(bound, fixed)
    step = next((name for name in names if name in STEPS), None)
    parts = split(total, QUANTITIES[step].symbol) if step else None
    if len(names) == 1:
        return _one(bound, names[0], fixed, total, parts)
    if len(names) > 2 or step is None or parts is None:
        raise InputError(f"bound {bound.name}: {', '.join(names)} cannot be tuned together; a step and one more can")
    other = next(name for name in names if name != step)
    x, y = QUANTITIES[step].symbol, QUANTITIES[other].symbol
    stops = [c for c in bound.conditions if x in c.free_symbols or y in c.free_symbols]
    if stops:
        raise InputError(f"bound {bound.name}: {sp.sstr(stops[0])} holds {step} or {other}: tune one at a time")
    A, B, C = parts
    coefficients = [function_of(bound, part, other, fixed) for part in parts]

    def at_best_step(points: np.ndarray) -> np.ndarray:
        a, b, c = (part(points) for part in coefficients)
        if not (np.all(a > 0) and np.all(c > 0)):
            raise InputError(falls(bound, step, bool(np.all(a > 0))))
        return b + 2 * np.sqrt(a * c)

    best, check, limited = search(bound, other, at_best_step, (_domain(other),))
    a, _, c = (float(part(np.array([best]))[0]) for part in coefficients)
    at = {step: math.sqrt(a / c), other: best}
    formula = {step: sp.sqrt(A / C), "value": B + 2 * sp.sqrt(A * C)}
    return _result(bound, at, fixed, "numeric", f"{step} in closed form; {other}: {check}", limited, formula)


def _one(
    bound: Bound,
    name: str,
    fixed: Mapping[str, float],
    total: sp.Expr,
    parts: tuple[sp.Expr, sp.Expr, sp.Expr] | None,
) -> Tuned:
    intervals = admissible(bound.conditions, name, fixed, f"bound {bound.name}")
    if not intervals:
        raise InputError(f"bound {bound.name}: no {name} fulfils its conditions at these values")
    if parts is None:
        best, check, limited = search(bound, name, function_of(bound, total, name, fixed), intervals)
        return _result(bound, {name: best}, fixed, "numeric", check, _stop(bound, name, best, intervals) or limited, {})
    a, _, c = (float(function_of(bound, part, name, fixed)(np.ones(1))[0]) for part in parts)
    free = all(math.isinf(i.high) for i in intervals)
    if a < 0 or c < 0 or a == 0 or (c == 0 and free):
        raise InputError(falls(bound, name, a > 0))
    best = math.sqrt(a / c) if c else math.inf
    limited = None
    if not any(interval.contains(best) for interval in intervals):
        ends = [end for interval in intervals for end in _ends(interval) if end > 0]
        best = min(ends, key=lambda end: a / end + c * end)
        limited = _conditions(bound, name)
    A, B, C = parts
    formula = {name: sp.sqrt(A / C), "value": B + 2 * sp.sqrt(A * C)} if limited is None else {}
    around = best * np.geomspace(1e-3, 1e3, GRID)
    around = around[[any(i.contains(point) for i in intervals) for point in around]]
    if np.any(a / around + c * around < (a / best + c * best) * (1 - 1e-12)):
        raise InputError(f"bound {bound.name}: the closed form of {name} is not the minimum")  # never: a safeguard
    check = f"convex in {name}; no lower point among {len(around)} from {around[0]:.3g} to {around[-1]:.3g}"
    return _result(bound, {name: best}, fixed, "closed form", check, limited, formula)


def _result(
    bound: Bound,
    at: dict[str, float],
    fixed: Mapping[str, float],
    method: str,
    check: str,
    limited: str | None,
    formula: dict[str, sp.Expr],
) -> Tuned:
    terms = bound.evaluate_terms(**fixed, **at)
    numbers = {name: float(term) for name, term in terms.items()}
    return Tuned(bound.name, sum(numbers.values()), at, numbers, method, check, limited, formula, None, None)


def _domain(name: str) -> Interval:
    domain = QUANTITIES[name].domain
    return Interval(domain.low, domain.high, domain.open_low, domain.open_high)


def _ends(interval: Interval) -> list[float]:
    low = math.nextafter(interval.low, math.inf) if interval.open_low else interval.low
    high = math.nextafter(interval.high, 0) if interval.open_high else interval.high
    return [end for end in (low, high) if math.isfinite(end)]


def _conditions(bound: Bound, name: str) -> str:
    symbol = QUANTITIES[name].symbol
    return "; ".join(sp.sstr(c) for c in bound.conditions if symbol in c.free_symbols)


def _stop(bound: Bound, name: str, best: float, intervals: tuple[Interval, ...]) -> str | None:
    at_end = any(abs(best - end) <= 1e-9 * end for i in intervals for end in _ends(i) if end > 0)
    return (_conditions(bound, name) or None) if at_end else None


def _price(
    bound: Bound, names: tuple[str, ...], fixed: Mapping[str, float], undelayed: Mapping[str, float], result: Tuned
) -> float | None:
    """sqrt(A C) with the delay over sqrt(A C) without, minus 1."""
    step = names[0]
    if len(names) != 1 or step not in STEPS or not result.formula:
        return None
    parts = split(_total(bound, fixed), QUANTITIES[step].symbol)
    assert parts is not None  # it has a formula
    product, one = parts[0] * parts[2], np.ones(1)
    with_delay, without = (float(function_of(bound, product, step, at)(one)[0]) for at in (fixed, undelayed))
    return math.sqrt(with_delay / without) - 1 if without > 0 else None


def _ratio(
    bound: Bound, names: tuple[str, ...], undelayed: Mapping[str, float], value: float, delay: str
) -> tuple[float | None, str | None]:
    """The whole tuned value over that without delay, minus 1; or why there is none."""
    try:
        least = _minimise(bound, names, undelayed).value
    except InputError:
        return None, f"the bound has no tuned value at {delay} = 0"
    if not least > 0:
        return None, f"the bound tuned at {delay} = 0 is {least:g}"
    return value / least - 1, None
