"""Generalised power series in a small t > 0 of the expressions that bounds are made of: exact coefficients, cut off.

A series is a dict power -> coefficient; its symbols are positive and generic (no coefficient is 0 by chance). A power
whose logarithm goes to minus infinity, such as (1-alpha)^K, is below all powers of t: it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

Series = dict[sp.Rational, sp.Expr]
KEPT = 4  # powers of t kept beyond the lowest
ONE: Series = {sp.S.Zero: sp.S.One}


class NoSeries(Exception):
    """The expression has no series in powers of t; the message is the part that has none."""


def series_of(expression: sp.Expr, known: Mapping[sp.Symbol, Series]) -> Series:
    """The series of an expression whose small or large symbols are `known`; the others are fixed. Raises NoSeries."""
    if not expression.free_symbols & set(known):
        return trimmed({sp.S.Zero: expression})
    if expression.is_Symbol:
        return known[expression]
    if expression.is_Add:
        return added(*(series_of(part, known) for part in expression.args))
    if expression.is_Mul:
        out = ONE
        for part in expression.args:
            out = multiplied(out, series_of(part, known))
        return out
    if expression.is_Pow or isinstance(expression, sp.exp):
        base, exponent = expression.as_base_exp()
        if not exponent.free_symbols & set(known):
            return power(series_of(base, known), exponent)
        return exponential(multiplied(series_of(exponent, known), logarithm(series_of(base, known))), expression)
    if isinstance(expression, sp.log):
        return logarithm(series_of(expression.args[0], known))
    if isinstance(expression, (sp.Max, sp.Min)):
        parts = [series_of(part, known) for part in expression.args]
        sign = 1 if isinstance(expression, sp.Max) else -1
        best = parts[0]
        for part in parts[1:]:
            best = part if sign * _sign(added(part, scaled(best, -1)), expression) > 0 else best
        return best
    if isinstance(expression, sp.Abs):
        inner = series_of(expression.args[0], known)
        return scaled(inner, _sign(inner, expression))
    raise NoSeries(sp.sstr(expression))


def trimmed(series: Series) -> Series:
    """Without zeros and without what lies more than `KEPT` beyond the lowest power."""
    expanded = {p: sp.expand(c) for p, c in series.items()}
    whole = {p: c for p, c in expanded.items() if c != 0}
    low = min(whole, default=sp.S.Zero)
    return {p: whole[p] for p in sorted(whole) if p <= low + KEPT}


def shortened(series: Series, kept: int) -> Series:
    """What lies no more than `kept` beyond the lowest power."""
    return {p: c for p, c in series.items() if p <= min(series) + kept}


def added(*parts: Series) -> Series:
    """The sum."""
    out: Series = {}
    for part in parts:
        for p, c in part.items():
            out[p] = out.get(p, sp.S.Zero) + c
    return trimmed(out)


def scaled(series: Series, factor: sp.Expr | int) -> Series:
    """The product with something fixed."""
    return trimmed({p: factor * c for p, c in series.items()})


def multiplied(first: Series, second: Series) -> Series:
    """The product."""
    if not first or not second:
        return {}
    low = min(first) + min(second)
    out: Series = {}
    for p, c in first.items():
        for q, d in second.items():
            if p + q <= low + KEPT:
                out[p + q] = out.get(p + q, sp.S.Zero) + c * d
    return trimmed(out)


def power(series: Series, exponent: sp.Expr) -> Series:
    """The series to a fixed exponent; a number where the lowest power is not 0."""
    if not series or (min(series) != 0 and not exponent.is_Rational):
        raise NoSeries(f"a power {sp.sstr(exponent)}")
    low, lead, rest = _split(series)
    out = _composed([sp.binomial(exponent, k).expand(func=True) for k in range(KEPT + 1)], rest)
    return {low * exponent + p: sp.expand(lead**exponent * c) for p, c in out.items()}


def logarithm(series: Series) -> Series:
    """The logarithm of a series whose lowest power is 0."""
    if not series or min(series) != 0:
        raise NoSeries("a logarithm")
    _, lead, rest = _split(series)
    terms = [sp.S.Zero] + [sp.Rational((-1) ** (k + 1), k) for k in range(1, KEPT + 1)]
    return added({sp.S.Zero: sp.log(lead)}, _composed(terms, rest))


def exponential(series: Series, expression: sp.Expr) -> Series:
    """e to a series: 0 where that goes to minus infinity. `expression` is what an error names."""
    if series and min(series) < 0:
        if _falls(series[min(series)]):
            return {}
        raise NoSeries(sp.sstr(expression))
    fixed = series.get(sp.S.Zero, sp.S.Zero)
    rest = {p: c for p, c in series.items() if p > 0}
    return scaled(_composed([1 / sp.factorial(k) for k in range(KEPT + 1)], rest), sp.exp(fixed))


def _split(series: Series) -> tuple[sp.Rational, sp.Expr, Series]:
    """Lowest power p, its coefficient c, and the rest r of series = c t^p (1 + r)."""
    low = min(series)
    lead = sp.factor_terms(series[low])
    return low, lead, {p - low: sp.cancel(sp.together(c / lead)) for p, c in series.items() if p != low}


def _composed(terms: list[sp.Expr], inner: Series) -> Series:
    """sum_k terms[k] inner^k, inner small."""
    out: Series = {sp.S.Zero: terms[0]}
    factor = ONE
    for term in terms[1:]:
        factor = {p: c for p, c in multiplied(factor, inner).items() if p <= KEPT}
        if not factor:
            break
        out = added(out, scaled(factor, term))
    return {p: c for p, c in trimmed(out).items() if p <= KEPT}


def _sign(series: Series, expression: sp.Expr) -> int:
    """1 or -1: the sign of the lowest coefficient; raises NoSeries where it depends on the values."""
    lead = series[min(series)] if series else sp.S.One
    if lead.is_nonnegative:
        return 1
    if lead.is_nonpositive:
        return -1
    raise NoSeries(sp.sstr(expression))


def _falls(lead: sp.Expr) -> bool:
    """True for a negative number of positive symbols, and for log(1 - p) times one: p is a share."""
    shares = [part for part in lead.atoms(sp.log) if (1 - part.args[0]).is_positive]
    return bool(lead.subs({part: -sp.S.One for part in shares}).is_negative)
