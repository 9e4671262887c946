"""Where the terms of a tuned bound go as K -> oo: leading order and coefficient of each, and of the whole.

In the step x a bound is A/x + B + C x + R(x), R of order x^2, and V = B + 2 sqrt(A C) + R(x*) at x* = sqrt(A/C), to the
orders kept. If alpha is tuned too, alpha = u K^{-1/2} and with t = K^{-1/4}
    V = t g1(u) + t^2 g2(u) + t^3 g3(u) + ...,   g1 = P/sqrt(u) + Q sqrt(u),   u0 = P/Q minimises g1,
    min V = t g1(u0) + t^2 g2(u0) + t^3 [g3(u0) - g2'(u0)^2/(2 g1''(u0))] + O(t^4).
`total` are these three; `terms` is the leading order of each named term at the tuned step and alpha = u0 K^{-1/2}.
`delay`: what of the total depends on tau or delta_max, to its leading order, and relative to the leading term.

A reference index that is left out is the median age n + tau, taken as a real number: E|A - s| is least there, so that
rounding changes it by O(alpha), which is beyond the orders kept. Bounds in M microbatches are expanded in M.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from theory.errors import InputError
from theory.readable import coefficient_latex, coefficient_parts
from theory.series import NoSeries, Series, added, multiplied, power, scaled, series_of, shortened
from theory.symbols import QUANTITIES
from theory.tuning import DELAYS, STEPS

if TYPE_CHECKING:
    from theory.bound import Bound

t, u = sp.Symbol("t", positive=True), sp.Symbol("u", positive=True)
ORDERS = 4  # orders of t kept: K^{-1/4} to K^{-1}
HORIZONS = ("K", "M")
HALF = sp.Rational(1, 2)


@dataclass(frozen=True)
class Order:
    """coefficient * K^power; horizon: the name of K."""

    power: sp.Rational
    coefficient: sp.Expr
    horizon: str = "K"

    def expression(self) -> sp.Expr:
        """As one expression in K."""
        return self.coefficient * QUANTITIES[self.horizon].symbol ** self.power

    def latex(self) -> str:
        """coefficient K^{power}."""
        return self._with_power(coefficient_latex(self.coefficient))

    def latex_parts(self) -> list[str]:
        """`latex` in summands for a line each where it fills more than a line."""
        return [self._with_power(part) for part in coefficient_parts(self.coefficient)]

    def _with_power(self, coefficient: str) -> str:
        return rf"{coefficient} \, {self.horizon}^{{{sp.sstr(self.power)}}}"


class Sums:
    """Letters for the sums among the coefficients, which make roots and quotients of series monomials."""

    def __init__(self) -> None:
        self._meaning: dict[sp.Symbol, sp.Expr] = {}

    def named(self, series: Series) -> Series:
        """The series with a letter in place of every sum that stands before a power of u."""
        low = min(series, default=sp.S.Zero)
        return {
            p: sp.Add(*(v * self._letter(part, p == low) for v, part in sp.collect(c, u, evaluate=False).items()))
            for p, c in series.items()
        }

    def _letter(self, part: sp.Expr, positive: bool) -> sp.Expr:
        if not part.is_Add:
            return part
        letter = sp.Dummy(positive=True) if positive else sp.Dummy(real=True)
        self._meaning[letter] = sp.factor_terms(part)
        return letter

    def written_out(self, expression: sp.Expr) -> sp.Expr:
        """A coefficient in the symbols of the bound."""
        return sp.factor_terms(sp.powsimp(sp.expand(expression)).xreplace(self._meaning))


@dataclass(frozen=True)
class Expansion:
    """Leading orders of a tuned bound; at: the tuned symbols to leading order, as expressions in K."""

    bound: str
    horizon: str
    at: dict[str, Order]
    terms: dict[str, Order | None]
    total: tuple[Order, ...]
    delay: Order | None
    delay_relative: Order | None


def expand(bound: Bound, tune: tuple[str, ...] | None = None) -> Expansion:
    """The expansion after tuning `tune`: a step size, alpha, or both; None: those of them that the bound has.

    Raises InputError where the bound is not A/x + B + C x + R(x) in its step, or has no expansion in powers of
    K^{-1/4}; the message names the part that has none.
    """
    owner = f"bound {bound.name}"
    if not (tune is None or (isinstance(tune, (tuple, list)) and all(isinstance(name, str) for name in tune))):
        raise InputError(f"{owner}: tuned {tune!r} is not allowed; give a tuple of names, e.g. ('eta',), or None")
    has = tuple(name for name in (*STEPS, "alpha") if name in bound.symbols)
    names = has if tune is None else tune
    steps = [name for name in names if name in STEPS]
    least = has[:1] if has and has[0] in STEPS else ()
    if len(set(names)) != len(names) or set(names) - set(has) or set(least) - set(names):
        allowed = " or ".join(", ".join(has[:count]) for count in range(len(least), len(has) + 1) if count or not has)
        raise InputError(f"{owner}: tuned {', '.join(names) or 'nothing'}; an expansion is one after tuning {allowed}")
    horizon = next((name for name in HORIZONS if name in bound.symbols), None)
    if horizon is None:
        raise InputError(f"{owner}: has no {' or '.join(HORIZONS)} to go to infinity")
    try:
        return _expanded(bound, steps[0] if steps else None, "alpha" in names, horizon)
    except NoSeries as error:
        raise InputError(f"{owner}: has no expansion in powers of {horizon}: {error} has none") from None


def _expanded(bound: Bound, step: str | None, both: bool, horizon: str) -> Expansion:
    known: dict[sp.Symbol, Series] = {QUANTITIES[horizon].symbol: {sp.Integer(-4): sp.S.One}}
    if both:
        known[QUANTITIES["alpha"].symbol] = {sp.Integer(2): u}
    terms = {name: term.subs(_choices(bound) if both else {}) for name, term in bound.terms.items()}
    sums = Sums()
    if step is None:
        value = sums.named(added(*(series_of(term, known) for term in terms.values())))
    else:
        value, known[QUANTITIES[step].symbol] = _tuned(bound, terms, step, known, sums, horizon)
    orders = {p: value.get(sp.Integer(p), sp.S.Zero) for p in range(ORDERS + 1)}
    if any(p < 0 or not p.is_Integer for p in value if p <= ORDERS):
        raise NoSeries("its value")
    u0 = u
    if both:
        orders, u0 = _minimum(orders, f"bound {bound.name}", horizon)

    def order(series: Series) -> Order:
        return Order(-min(series) / 4, sums.written_out(series[min(series)].subs(u, u0)), horizon)

    at = {} if step is None else {step: order(known[QUANTITIES[step].symbol])}
    at |= {"alpha": Order(-HALF, sums.written_out(u0), horizon)} if both else {}
    total = tuple(Order(-sp.Rational(p, 4), sums.written_out(c), horizon) for p, c in orders.items() if c != 0)
    series = {name: series_of(term, known) for name, term in terms.items()}
    leading = {name: order(found) if found else None for name, found in series.items()}
    delay = _delay(bound, total)
    relative = None
    if delay is not None:
        ratio = sp.simplify(delay.coefficient / total[0].coefficient)
        relative = Order(delay.power - total[0].power, ratio, horizon)
    return Expansion(bound.name, horizon, at, leading, total, delay, relative)


def _choices(bound: Bound) -> dict[sp.Symbol, sp.Expr]:
    """The best choices that are whole numbers, as real ones."""
    return {
        QUANTITIES[name].symbol: best.replace(sp.ceiling, lambda inside: inside)
        for name, best in bound.optional.items()
        if best.has(sp.ceiling)
    }


def _tuned(
    bound: Bound, terms: dict[str, sp.Expr], step: str, known: dict[sp.Symbol, Series], sums: Sums, horizon: str
) -> tuple[Series, Series]:
    """The value at the best step, and that step."""
    x = QUANTITIES[step].symbol
    none = f"bound {bound.name}: has no best {step} that falls like a power of {horizon}, so nothing to expand"
    parts = {-1: sp.S.Zero, 0: sp.S.Zero, 1: sp.S.Zero}
    rest, odd = sp.S.Zero, ""
    for name, piece in ((name, piece) for name, term in terms.items() for piece in _pieces(term, x)):
        factor, inner = piece.as_independent(x, as_Add=False)
        which = next((p for p in parts if inner == x**p), None)
        if which is not None:
            parts[which] += factor
        elif min(series_of(inner, {x: {sp.S.One: sp.S.One}})) >= 2:
            rest += piece
        else:
            odd = odd or f"; its term {name} is no sum of powers of {step}"
    missing = f": missing is a term in 1/{step}" if parts[-1] == 0 else ""
    missing = missing or (f": missing is a term in {step}" if parts[1] == 0 else "")
    if missing or odd:
        raise InputError(f"{none}{missing}{odd}")
    A, B, C = (sums.named(shortened(series_of(parts[p], known), ORDERS - 1)) for p in (-1, 0, 1))
    falling, growing = power(A, HALF), power(C, HALF)
    best = multiplied(falling, power(growing, sp.S.NegativeOne))
    value = added(B, scaled(multiplied(falling, growing), 2), series_of(rest, {**known, x: best}))
    return value, best


def _pieces(term: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, ...]:
    whole = term.as_independent(x, as_Add=False)[1] in (1 / x, 1, x)
    return (term,) if whole else sp.Add.make_args(sp.expand(term))


def _minimum(orders: dict[int, sp.Expr], owner: str, horizon: str) -> tuple[dict[int, sp.Expr], sp.Expr]:
    """Orders 1 to 3 of the minimum over u, and the leading minimiser."""
    first = sp.expand(orders[1])
    P, Q = first.coeff(1 / sp.sqrt(u)), first.coeff(sp.sqrt(u))
    if P == 0 or Q == 0 or sp.expand(first - P / sp.sqrt(u) - Q * sp.sqrt(u)) != 0:
        raise InputError(f"{owner}: has no best alpha of size {horizon}^(-1/2)")
    u0 = P / Q
    third = orders[3] - sp.diff(orders[2], u) ** 2 / (2 * sp.diff(orders[1], u, 2))
    found = {1: orders[1], 2: orders[2], 3: third}
    return {p: g.subs(u, u0) for p, g in found.items()}, u0


def _delay(bound: Bound, total: tuple[Order, ...]) -> Order | None:
    """What of the first order that depends on a delay depends on it."""
    absent = {QUANTITIES[name].symbol: 0 for name in DELAYS if name in bound.symbols}
    for order in (order for order in total if order.coefficient.free_symbols & set(absent)):
        part = sp.simplify(order.coefficient - order.coefficient.subs(absent))
        if part != 0:
            return Order(order.power, part, order.horizon)
    return None
