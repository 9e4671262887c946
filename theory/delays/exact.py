"""Formulas in integers and fractions evaluated without rounding, and fast enough for tables of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any

import sympy as sp
from sympy.printing.pycode import PythonCodePrinter

Number = int | Fraction


class _Printer(PythonCodePrinter):
    """Python source whose operations on fractions are exact."""

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"Fraction({expr.p}, {expr.q})"

    def _print_floor(self, expr: sp.floor) -> str:
        return f"Fraction(floor({self._print(expr.args[0])}))"

    def _print_ceiling(self, expr: sp.ceiling) -> str:
        return f"Fraction(ceil({self._print(expr.args[0])}))"


@lru_cache(maxsize=512)
def _compiled(formula: sp.Basic) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(str(symbol) for symbol in formula.free_symbols))
    printer = _Printer({"fully_qualified_modules": False, "strict": True})
    source = f"lambda {', '.join(names)}: {printer.doprint(formula)}"
    return names, eval(source, {"Fraction": Fraction, "floor": floor, "ceil": ceil})


def evaluate(formula: sp.Basic, **values: Number) -> Number | bool:
    """The value of a formula (or the truth of a condition) at integers and fractions, exactly.

    values: at least the formula's symbols, by name. Whole results are integers.
    """
    names, function = _compiled(formula)
    result = function(*(Fraction(values[name]) for name in names))
    if isinstance(result, bool):
        return result
    exact = Fraction(result)
    return exact.numerator if exact.denominator == 1 else exact
