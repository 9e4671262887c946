"""Functions that sympy prints and numpy evaluates, for sums whose closed form divides 0 by 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import ArgumentIndexError
from sympy.printing.precedence import PRECEDENCE

LARGEST = 1000  # exponents of numbers up to which a closed form is computed; beyond, it stands as it is


class GeometricSum(sp.Function):  # type: ignore[misc]
    """sum_{j<K} p^{K-1-j} q^j: (p^K - q^K)/(p - q), and K p^{K-1} where p = q. For p, q in [0, 1] and K >= 1."""

    nargs = (3,)

    @classmethod
    def eval(cls, p: sp.Expr, q: sp.Expr, K: sp.Expr) -> sp.Expr | None:
        """Where the sum is one plain expression."""
        if K == 1:
            return sp.S.One
        if K.is_number and not (K.is_comparable and abs(K) <= LARGEST):
            return None
        if p == q:
            return K * p ** (K - 1)
        if p.is_number and q.is_number:
            return (p**K - q**K) / (p - q)
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Derivative by p or q, as an expression for p != q."""
        p, q, K = self.args
        if argindex == 1:
            return (K * p ** (K - 1) - self) / (p - q)
        if argindex == 2:
            return (self - K * q ** (K - 1)) / (p - q)
        raise ArgumentIndexError(self, argindex)

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        """Where the closed form is too long to be written out: in floats, twice as many digits for the cancellation."""
        if not all(arg.is_number for arg in self.args):
            return None
        p, q, K = (arg._eval_evalf(2 * prec + 64) for arg in self.args)
        return (K * p ** (K - 1) if p == q else (p**K - q**K) / (p - q))._eval_evalf(prec)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        p, q = (printer.parenthesize(arg, PRECEDENCE["Pow"], strict=True) for arg in self.args[:2])
        K = printer._print(self.args[2])
        text = rf"\sum_{{j=0}}^{{{K} - 1}} {p}^{{{K} - 1 - j}} {q}^{{j}}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def geometric_sum(p: Any, q: Any, K: Any) -> Any:
    """`GeometricSum` at float arrays: no cancellation where p and q are close, no overflow, no 0/0."""
    p, q, K = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (p, q, K)))
    high, low = np.maximum(p, q), np.minimum(p, q)
    safe = np.where(high > 0, high, 1.0)
    gap = np.where(high > 0, (high - low) / safe, 0.0)  # 1 - low/high
    log = np.log1p(-np.minimum(gap, 1 - 2.0**-53))
    ratio = np.where(log == 0, K, np.expm1(K * log) / np.where(log == 0, 1.0, np.expm1(log)))
    ratio = np.where(gap >= 1, 1.0, ratio)
    return np.where(high > 0, safe ** (K - 1) * ratio, np.where(K == 1, 1.0, 0.0))


NUMPY = {"GeometricSum": geometric_sum}
