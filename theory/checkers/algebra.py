"""Exact rewriting: an expression is identically zero, a sum has a closed form, a coefficient has a sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import sympy as sp

from theory.checkers.flatten import Flattener
from theory.quantity import Domain
from theory.relation import Relation
from theory.symbols import QUANTITIES

Cases = Sequence[Mapping[sp.Symbol, sp.Expr]]
NATURALS = (0, 1, 2, 5)
FRACTIONS = (sp.Rational(2, 5), sp.Rational(3, 7), sp.Rational(9, 11))


def is_zero(expression: sp.Expr, cases: Cases = ({},)) -> bool:
    """Whether it is identically 0 in each case, as a rational function; cases must exhaust what the symbols can be."""
    return all(_zero(expression.xreplace(dict(case))) for case in cases)


def adds_up(premises: Sequence[Relation], conclusion: Relation) -> bool:
    """Whether the conclusion is the sum of the premises, after equalities for a single symbol are put in."""
    values = {p.left: p.right for p in premises if p.sense == "==" and p.left.is_Symbol and not p.right.has(p.left)}
    rest = [p for p in premises if values.get(p.left) != p.right]
    if any(premise.sense not in ("==", conclusion.sense) for premise in rest):
        return False
    total = sp.Add(*(premise.difference for premise in rest)) - conclusion.difference
    for _ in values:
        total = total.xreplace(values)
    return _zero(total.replace(_is_root, _split))


def _is_root(expression: sp.Expr) -> bool:
    return bool(expression.is_Pow and expression.exp.is_Rational and not expression.exp.is_Integer)


def _split(root: sp.Expr) -> sp.Expr:
    """The root of a quotient as the quotient of roots; what is below is positive wherever the quotient is defined."""
    top, bottom = sp.fraction(sp.factor(sp.together(root.base)))
    return top**root.exp * bottom ** (-root.exp) if bottom.is_nonnegative else root


def _zero(expression: sp.Expr) -> bool:
    flatten = Flattener()
    value = flatten(expression)
    squares = {}
    for base, root in flatten.roots.items():
        squares[root] = base
    top, _ = sp.fraction(sp.together(value))
    top = sp.expand(top)
    for root, base in squares.items():
        low = top.as_independent(root)[0] if not top.has(root) else None
        if low is None:
            poly = sp.Poly(top, root)
            top = sp.expand(sum(c * base ** (n // 2) * root ** (n % 2) for (n,), c in poly.terms()))
            top = sp.expand(sp.fraction(sp.together(top))[0])
    return bool(top == 0)


def spot_zero(expression: sp.Expr) -> bool:
    """A second witness: exactly 0 at a grid of naturals and fractions, evaluated without rewriting."""
    symbols = sorted(expression.free_symbols, key=lambda s: s.name)
    naturals = [s for s in symbols if s.is_integer]
    others = [s for s in symbols if not s.is_integer]
    for point in product(NATURALS, repeat=len(naturals)):
        at = dict(zip(naturals, point, strict=True))
        if any(s.is_positive and value == 0 for s, value in at.items()):
            continue
        at |= {s: FRACTIONS[i % len(FRACTIONS)] for i, s in enumerate(others)}
        if sp.simplify(expression.subs(at)) != 0:
            return False
    return True


def sign(expression: sp.Expr) -> int | None:
    """+1 if it is >= 0 for all admissible values, -1 if <= 0, None if that is not seen.

    A quantity in (0, 1] is written 1/(1 + r) with r >= 0, so that 1 - alpha shows its sign.
    """
    replaced = {}
    for symbol in expression.free_symbols:
        if symbol.name in QUANTITIES and QUANTITIES[symbol.name].domain == Domain(0.0, 1.0, open_low=True):
            replaced[symbol] = 1 / (1 + sp.Dummy("r", nonnegative=True))
    value = sp.together(expression.subs(replaced))
    if value.is_nonnegative:
        return 1
    return -1 if value.is_nonpositive else None
