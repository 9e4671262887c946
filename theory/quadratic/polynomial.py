"""Linear methods on one mode of a quadratic: the characteristic polynomial and its slow root. Kind: exact.

Mode with curvature lam, h = eta lam, update U_k = beta U_{k-1} - gain h x_{k-tau}, correction coefficient c
with lag l: x_{k+1} = x_k + U_k + c (U_k - U_{k-l}). EMA momentum has gain = 1 - beta, heavy ball gain = 1.

    (z - 1)(z - beta) z^{tau+l} + gain h N(z) ((1 + c) z^l - c) = 0      (l = 0, c = 0 without correction)

with N = z, or N = (1 + beta) z - beta with Nesterov momentum, divided by the powers of z that all terms share. Gradient
extrapolation and weight prediction have the same polynomial, l = 1. For EMA momentum the root near 1 is
    z = 1 - h - (g1 + tau - c l) h^2 + O(h^3),   g1 = beta/(1-beta), with Nesterov beta^2/(1-beta):
the correction removes exactly c l h^2, which is tau h^2 in both forms, for every beta. Without momentum and
with tau = l = 1 it is 1 - h + (c - 1) h^2 + (4 c - 2 - c^2) h^3 + O(h^4); without correction the Catalan
numbers. Checked by tests/theory/test_quadratic_theory.py (against det(z I - A) of the method's own matrix).
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from theory.errors import InputError
from theory.symbols import symbols

h, beta, c = symbols("h beta c")
z = sp.Symbol("z")


def _counts(tau: int, lag: int) -> None:
    for name, value in (("tau", tau), ("lag", lag)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{name}={value!r} is not allowed: {name} must be an integer >= 0")


def numerator(momentum: sp.Expr = beta, nesterov: bool = False) -> sp.Expr:
    """N of the update's filter gain N(z)/(z - momentum)."""
    return (1 + momentum) * z - momentum if nesterov else z


def characteristic(
    tau: int,
    lag: int = 0,
    coefficient: sp.Expr = sp.S.Zero,
    momentum: sp.Expr = beta,
    gain: sp.Expr | None = None,
    nesterov: bool = False,
) -> sp.Expr:
    """Characteristic polynomial in z and h, expanded; `gain` defaults to 1 - momentum (EMA).

    lag = 0 means no correction. Raises InputError for a negative tau or lag.
    """
    _counts(tau, lag)
    factor = 1 - momentum if gain is None else gain
    weight = sp.sympify(coefficient) if lag else sp.S.Zero
    top = numerator(momentum, nesterov)
    full = sp.expand(
        (z - 1) * (z - momentum) * z ** (tau + lag) + factor * h * top * ((1 + weight) * z**lag - weight)
    )
    shared = min(monomial[0] for monomial in sp.Poly(full, z).monoms())
    return sp.expand(full / z**shared)


@cache
def slow_root(
    tau: int,
    lag: int = 0,
    coefficient: sp.Expr = sp.S.Zero,
    momentum: sp.Expr = beta,
    order: int = 2,
    nesterov: bool = False,
) -> sp.Expr:
    """The root near 1 as a polynomial in h up to h^order, EMA momentum. Raises InputError for order < 1.

    Solved by z = 1 - h F(z): each pass makes one more power of h right.
    """
    _counts(tau, lag)
    if order < 1:
        raise InputError(f"order={order} is not allowed: order must be an integer >= 1")
    weight = sp.sympify(coefficient) if lag else sp.S.Zero
    w = sp.Symbol("w")  # z = 1 - w
    response = (1 - momentum) * numerator(momentum, nesterov).subs(z, 1 - w) / (1 - w - momentum)
    ratio = response * (1 - w) ** (-tau) * (1 + weight - weight * (1 - w) ** (-lag))
    series = sp.series(ratio, w, 0, order).removeO()
    root = sp.S.Zero
    for _ in range(order):
        grown = sp.expand(h * series.subs(w, root))
        root = sum(
            (sp.simplify(grown.coeff(h, power)) * h**power for power in range(1, order + 1)), sp.S.Zero
        )
    return sp.expand(1 - root)
