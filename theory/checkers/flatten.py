"""From sympy to rational functions: powers with symbolic exponents, roots, minima, maxima and sums become symbols.

(1-alpha)^{2k+1} becomes (1-alpha) p^2 with p for (1-alpha)^k, p >= 0 where the base is seen to be >= 0; sqrt(x) becomes
s with s >= 0, s^2 = x; min(x, y) becomes n with n <= x, n <= y and n = x or n = y, max likewise; a `GeometricSum`
becomes a number of which nothing is known. One expression gives one symbol, everywhere in one `Flattener`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import sympy as sp

from theory.errors import InputError
from theory.functions import GeometricSum


@dataclass
class Flattener:
    """Keeps the symbols that stand for powers, roots, minima, maxima and sums.

    positive, nonnegative: tell which expressions are;
    powers: (base, exponent) -> symbol; roots: base -> symbol; minima, maxima, sums: arguments -> symbol.
    """

    positive: Callable[[sp.Expr], bool] = lambda base: bool(base.is_positive)
    nonnegative: Callable[[sp.Expr], bool] = lambda base: bool(base.is_nonnegative)
    powers: dict[tuple[sp.Expr, sp.Expr], sp.Symbol] = field(default_factory=dict)
    roots: dict[sp.Expr, sp.Symbol] = field(default_factory=dict)
    minima: dict[frozenset[sp.Expr], sp.Symbol] = field(default_factory=dict)
    sums: dict[tuple[sp.Expr, ...], sp.Symbol] = field(default_factory=dict)
    maxima: dict[frozenset[sp.Expr], sp.Symbol] = field(default_factory=dict)

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        """The expression as a rational function of symbols. Raises InputError for functions it does not know."""
        e = expression
        if e.is_Rational or e.is_Symbol:
            return e
        if e.is_Add or e.is_Mul:
            return e.func(*(self(argument) for argument in e.args))
        if isinstance(e, (sp.Min, sp.Max)):
            kept, name = (self.minima, "min") if isinstance(e, sp.Min) else (self.maxima, "max")
            key = frozenset(self(argument) for argument in e.args)
            return kept.setdefault(key, sp.Dummy(f"{name}{len(kept)}", real=True))
        if isinstance(e, GeometricSum):
            return self.sums.setdefault(tuple(map(sp.expand, e.args)), sp.Dummy(f"sum{len(self.sums)}", real=True))
        if e.is_Pow:
            return self._power(self(e.base), e.exp)
        raise InputError(f"expression {e}: {type(e).__name__} is not allowed in a step that a solver checks")

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        if exponent.is_Integer:
            return base**exponent
        if exponent.is_Rational:
            if exponent.q == 4:  # the root of the root
                return self._power(self._power(base, sp.Rational(1, 2)), 2 * exponent)
            if exponent.q != 2:
                raise InputError(f"expression {base}**{exponent}: of roots only square roots are allowed")
            if base not in self.roots:
                sign = {"positive": True} if self.positive(base) else {"nonnegative": True}
                self.roots[base] = sp.Dummy(f"root{len(self.roots)}", **sign)
            root = self.roots[base]
            return root**exponent.p
        result: sp.Expr = sp.Integer(1)
        constant, rest = sp.expand(exponent).as_coeff_Add()
        if not constant.is_Integer:
            raise InputError(f"expression {base}**({exponent}): exponents are sums of natural numbers")
        for term in sp.Add.make_args(rest):
            factor, part = term.as_coeff_Mul()
            # a negative one would divide by 0 at alpha = 1
            if not factor.is_Integer or factor < 0 or not part.is_integer or not part.is_nonnegative:
                raise InputError(f"expression {base}**({exponent}): exponents are sums of natural numbers")
            if (base, part) not in self.powers:
                sign = {"nonnegative": True} if self.nonnegative(base) else {"real": True}
                self.powers[base, part] = sp.Dummy(f"power{len(self.powers)}", **sign)
            result *= self.powers[base, part] ** factor
        return result * base**constant
