"""Where the terms of a tuned bound go as K -> oo: leading order and coefficient of each, and of the whole.

The step by its closed form (the bound is A/x + B + C x), so V = B + 2 sqrt(A C). If alpha is tuned too,
alpha = u K^{-1/2} and with t = K^{-1/4}
    V = t g1(u) + t^2 g2(u) + t^3 g3(u) + ...,   g1 = P/sqrt(u) + Q sqrt(u),   u0 = P/Q minimises g1,
    min V = t g1(u0) + t^2 g2(u0) + t^3 [g3(u0) - g2'(u0)^2/(2 g1''(u0))] + O(t^4).
`total` are these three; `terms` is the leading order of each named term at the tuned step and alpha = u0 K^{-1/2}.
`delay`: what of the total depends on tau, to its leading order, and relative to the leading term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from theory.errors import InputError
from theory.evaluation import latex_of
from theory.symbols import QUANTITIES, symbols
from theory.tuning import STEPS, split

if TYPE_CHECKING:
    from theory.bound import Bound

t, u = sp.Symbol("t", positive=True), sp.Symbol("u", positive=True)
ORDERS = 4  # orders of t kept: K^{-1/4} to K^{-1}


@dataclass(frozen=True)
class Order:
    """coefficient * K^power."""

    power: sp.Rational
    coefficient: sp.Expr

    def expression(self) -> sp.Expr:
        """As one expression in K."""
        return self.coefficient * QUANTITIES["K"].symbol ** self.power

    def latex(self) -> str:
        """coefficient K^{power}."""
        text = latex_of(self.coefficient)
        if self.coefficient.is_Add:
            text = rf"\left({text}\right)"
        return rf"{text} \, K^{{{sp.sstr(self.power)}}}"


@dataclass(frozen=True)
class Expansion:
    """Leading orders of a tuned bound; at: the tuned symbols to leading order, as expressions in K."""

    bound: str
    at: dict[str, Order]
    terms: dict[str, Order | None]
    total: tuple[Order, ...]
    delay: Order | None
    delay_relative: Order | None


def expand(bound: Bound, tune: tuple[str, ...]) -> Expansion:
    """The expansion after tuning `tune`: a step size alone, or a step size and alpha.

    Raises InputError where the bound is not A/x + B + C x in its step, holds a choice of whole numbers, or has no
    expansion in powers of K^{-1/4}.
    """
    owner = f"bound {bound.name}"
    step = next((name for name in tune if name in STEPS), None)
    if step is None or step not in bound.symbols or set(tune) - {step, "alpha"} or "K" not in bound.symbols:
        raise InputError(f"{owner}: tuned {', '.join(tune)}; an expansion in K needs a step, alone or with alpha")
    if bound.optional:
        raise InputError(f"{owner}: has no expansion while {', '.join(bound.optional)} is a choice")
    x, K, alpha, tau = QUANTITIES[step].symbol, *symbols("K alpha tau")
    parts = split(bound.expression, x)
    if parts is None or parts[0] == 0 or parts[2] == 0:
        raise InputError(f"{owner}: is not A/{step} + B + C {step} with A, C > 0; no closed form to expand")
    both = "alpha" in tune
    small = {K: t**-4, alpha: u * t**2} if both else {K: t**-4}
    A, B, C = (sp.cancel(sp.together(part.subs(small))) if part else part for part in parts)
    product = sp.cancel(sp.together(A * C))
    value = _series(B, owner) + _series(_root(product), owner)
    orders = {power: sp.simplify(value.coeff(t, power)) for power in range(1, ORDERS + 1)}
    at: dict[str, Order] = {}
    if both:
        orders, u0 = _minimum(orders, owner)
        at["alpha"] = Order(sp.Rational(-1, 2), u0)
    else:
        u0 = u
    ratio = sp.cancel(sp.together(A / C))
    best = _root(ratio) / 2
    at = {step: _leading(best, u0), **at}
    terms = {
        name: _leading(_at_step(term, x, best, small), u0) if term != 0 else None for name, term in bound.terms.items()
    }
    total = tuple(Order(sp.Rational(-p, 4), c) for p, c in orders.items() if c != 0)
    delay = next((Order(o.power, _part(o.coefficient, tau)) for o in total if o.coefficient.has(tau)), None)
    relative = None
    if delay is not None and total:
        relative = Order(delay.power - total[0].power, sp.simplify(delay.coefficient / total[0].coefficient))
    return Expansion(bound.name, at, terms, total, delay, relative)


def _root(expression: sp.Expr) -> sp.Expr:
    """2 sqrt(expression) with its leading power of t taken out of the root."""
    numerator, denominator = sp.fraction(sp.together(expression))
    power = _low(numerator) - _low(denominator)
    rest = sp.cancel(sp.together(expression / t**power))
    return 2 * t ** sp.Rational(power, 2) * sp.sqrt(rest)


def _low(polynomial: sp.Expr) -> int:
    return min(monomial[0] for monomial in sp.Poly(polynomial, t).monoms())


def _series(expression: sp.Expr, owner: str) -> sp.Expr:
    if not expression.has(t):
        return expression
    try:
        out = sp.series(expression, t, 0, ORDERS + 1).removeO()
    except (ValueError, NotImplementedError, sp.PoleError):
        raise InputError(f"{owner}: has no expansion in powers of K^(-1/4)") from None
    return sp.expand(out)


def _minimum(orders: dict[int, sp.Expr], owner: str) -> tuple[dict[int, sp.Expr], sp.Expr]:
    """Orders 1 to 3 of the minimum over u, and the leading minimiser."""
    P = sp.simplify((orders[1] * sp.sqrt(u)).subs(u, 0))
    Q = sp.simplify((orders[1] * sp.sqrt(u) - P) / u)
    if P == 0 or Q == 0 or Q.has(u) or P.has(u):
        raise InputError(f"{owner}: has no best alpha of size K^(-1/2)")
    u0 = sp.simplify(P / Q)
    bend = sp.diff(orders[1], u, 2)
    third = orders[3] - sp.diff(orders[2], u) ** 2 / (2 * bend)
    found = {1: orders[1], 2: orders[2], 3: third}
    return {p: sp.expand(sp.powsimp(sp.simplify(g.subs(u, u0)))) for p, g in found.items()}, u0


def _at_step(term: sp.Expr, x: sp.Symbol, best: sp.Expr, small: dict[sp.Symbol, sp.Expr]) -> sp.Expr:
    return term.subs(small).subs(x, best)


def _leading(expression: sp.Expr, u0: sp.Expr) -> Order:
    """The lowest power of t of an expression, as a power of K."""
    coefficient, power = sp.simplify(expression).as_leading_term(t).as_coeff_exponent(t)
    return Order(-sp.Rational(power) / 4, sp.simplify(coefficient.subs(u, u0)))


def _part(coefficient: sp.Expr, tau: sp.Symbol) -> sp.Expr:
    """What of a coefficient depends on tau."""
    return sp.simplify(coefficient - coefficient.subs(tau, 0))
