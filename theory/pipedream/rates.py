"""Tuned stepsizes and what they give. Kind: upper bound.

A bound a/gamma + b gamma + c gamma^2, valid for gamma <= gamma_max. With gamma = min(sqrt(a/b), gamma_max)
    value <= 2 sqrt(a b) + a/gamma_max + c a/b                                       (`rate`: leading, limit, delay),
as a/gamma <= sqrt(a b) + a/gamma_max and gamma <= sqrt(a/b) in the other terms. Where the condition is
gamma L + q gamma^2 L^2 <= 1, 1/gamma_max = L (1 + sqrt(1 + 4 q))/2. The last two parts are O(1/K), the first is
O(1/sqrt K); in Randomized PipeDream with delta = S^2 - S/2 the parts grow with S like
    row                 fixed            leading   limit    delay
    rpd-paper           G per block      S         S        S^4
    rpd-b               G per block      S         -        S^3
    rpd-a               B of the whole   S^1/2     -        S^4
    rpd-a-independent   B of the whole   S^1/2     -        S^7/2
    rpd-a-drift         B of the whole   S^1/2     -        S^3
    rpd-c               sigma whole      S^1/2     S^5/2    S^4
    rpd-d               sigma whole      S^1/2     S^2      S^2
    pipedream-exact     sigma whole      S^1/2     S^2      S^2       (M = K/S microbatches)
and sigma = sqrt S sigma_b or B = sqrt S G, fixed per block, changes the leading S^1/2 to S and nothing else.
`best_step` is the exact minimiser at given numbers: the positive root of 2 c g^3 + b g^2 = a, or gamma_max.
Checked by tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from theory.bound import Bound
from theory.errors import InputError
from theory.evaluation import checked_values, evaluate_expression
from theory.symbols import symbols

gamma, L, S, K, M, delta_max, block_age = symbols("gamma L S K M delta_max block_age")


def coefficients(bound: Bound) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """a, b, c of a bound a/gamma + b gamma + c gamma^2. Raises InputError for a bound that is none."""
    parts = sp.collect(sp.expand(bound.expression), gamma, evaluate=False)
    if bound.unit != "(f/x)^2" or set(parts) - {1 / gamma, gamma, gamma**2}:
        raise InputError(f"bound {bound.name}: not of the form a/gamma + b gamma + c gamma^2")
    zero = sp.S.Zero
    return parts.get(1 / gamma, zero), parts.get(gamma, zero), parts.get(gamma**2, zero)


def inverse_limit(bound: Bound) -> sp.Expr:
    """1/gamma_max by the conditions of the bound; 0 where any gamma will do."""
    on_step = [condition for condition in bound.conditions if condition.has(gamma)]
    if not on_step:
        return sp.S.Zero
    (condition,) = on_step
    q = sp.expand((condition.lts - gamma * L) / (gamma * L) ** 2)
    return L * (1 + sp.sqrt(1 + 4 * q)) / 2


def tuned_step(bound: Bound) -> sp.Expr:
    """min(sqrt(a/b), gamma_max)."""
    a, b, _ = coefficients(bound)
    inverse = inverse_limit(bound)
    return sp.sqrt(a / b) if inverse == 0 else sp.Min(sp.sqrt(a / b), 1 / inverse)


def rate(bound: Bound) -> dict[str, sp.Expr]:
    """leading, limit and delay, whose sum is at least the bound at `tuned_step`."""
    a, b, c = coefficients(bound)
    return {"leading": 2 * sp.sqrt(a * b), "limit": a * inverse_limit(bound), "delay": sp.cancel(c * a / b)}


def growth(expression: sp.Expr, delay: sp.Expr = S**2 - S / 2) -> sp.Expr:
    """The power of S with which an expression grows as S -> oo; -oo for 0. delta_max = `delay`, block_age = (S-1)/2,
    M = K/S; K and all else fixed.
    """
    large = sp.Symbol("large", positive=True)
    fixed = expression.subs(M, K / S).subs({delta_max: delay, block_age: (S - 1) / 2}).subs(S, large)
    fixed = fixed.subs({symbol: 1 for symbol in fixed.free_symbols - {large}})
    return -sp.oo if fixed == 0 else sp.limit(large * sp.diff(fixed, large) / fixed, large, sp.oo)


def best_step(bound: Bound, **values: object) -> float:
    """The gamma that minimises the bound at the given numbers. Raises InputError for a missing or bad value, or where
    every larger gamma is better and none is forbidden.
    """
    names = tuple(name for name in bound.symbols if name != "gamma")
    arrays = checked_values(names, values, f"bound {bound.name}")
    owner = f"bound {bound.name}"
    a, b, c, inverse = (
        float(evaluate_expression(part, arrays, owner)) for part in (*coefficients(bound), inverse_limit(bound))
    )
    roots = [r.real for r in np.roots([2 * c, b, 0.0, -a]) if abs(r.imag) <= 1e-9 * abs(r) and r.real > 0]
    candidates = roots + ([1 / inverse] if inverse else [])
    if not candidates:
        raise InputError(f"{owner}: no best gamma: a larger one is always better at the given values")
    return min(candidates)
