"""From a sympy expression to numbers, safely.

All values become float64 arrays of one shape before any arithmetic: integers cannot wrap around, Min and Max
see equal shapes, and an array gives what a loop over scalars gives. A result that is not finite is refused,
never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import sympy as sp

from theory.errors import InputError
from theory.functions import NUMPY
from theory.symbols import QUANTITIES, latex_names, number_text


def free_names(*expressions: sp.Basic) -> tuple[str, ...]:
    """Names of the quantities in the expressions, in the order of the table of quantities.

    Raises InputError if an expression has a symbol that is not the one of the table (unknown, or other
    assumptions).
    """
    found = set().union(*(expression.free_symbols for expression in expressions)) if expressions else set()
    for symbol in sorted(found, key=str):
        name = str(symbol)
        if name not in QUANTITIES or QUANTITIES[name].symbol != symbol:
            raise InputError(
                f"symbol {name!r} is not a quantity of theory.symbols (or has other assumptions)"
            )
    return tuple(name for name in QUANTITIES if QUANTITIES[name].symbol in found)


def checked_values(names: tuple[str, ...], values: Mapping[str, object], owner: str) -> dict[str, np.ndarray]:
    """float64 arrays of one common shape for the names. Raises InputError (missing, domain, shapes)."""
    missing = [name for name in names if name not in values]
    if missing:
        raise InputError(f"{owner}: missing {', '.join(missing)}; needed: {', '.join(names)}")
    arrays = [QUANTITIES[name].check(values[name]) for name in names]
    try:
        return dict(zip(names, np.broadcast_arrays(*arrays), strict=True))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
        raise InputError(f"{owner}: shapes do not broadcast: {shapes}") from None


@cache
def compiled(expression: sp.Expr, names: tuple[str, ...]) -> Callable[..., object]:
    """A numpy function of the named quantities, in that order; unguarded (`evaluate_expression` guards)."""
    return sp.lambdify([QUANTITIES[name].symbol for name in names], expression, modules=[NUMPY, "numpy"])


def _once(array: np.ndarray) -> np.ndarray | np.float64:
    """One number for an array that `broadcast_arrays` made from a scalar, else the array."""
    repeated = array.size > 0 and not any(array.strides)
    return np.float64(array.flat[0]) if repeated else array[()]


def evaluate_expression(
    expression: sp.Expr, arrays: Mapping[str, np.ndarray], owner: str
) -> float | np.ndarray:
    """The expression at float64 arrays of one common shape: a float for shape (), else an array of that
    shape.

    Raises InputError when the result overflows or is undefined.
    """
    names = free_names(expression)
    shape = next(iter(arrays.values())).shape if arrays else ()
    # A value repeated over the whole shape enters once, except where Min and Max compare equal shapes.
    whole = expression.has(sp.Min, sp.Max)
    arguments = [arrays[name][()] if whole else _once(arrays[name]) for name in names]
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
            result = compiled(expression, names)(*arguments)
    except (FloatingPointError, ZeroDivisionError, OverflowError):
        given = ", ".join(
            f"{name}={number_text(arrays[name].flat[0])}" for name in names if arrays[name].size
        )
        raise InputError(f"{owner}: not a finite number at {given}{' ...' if shape else ''}") from None
    array = np.array(np.broadcast_to(np.asarray(result, dtype=np.float64), shape))
    return array if shape else float(array[()])


def latex_of(expression: sp.Basic) -> str:
    """LaTeX with the names of the table of quantities."""
    free_names(expression)
    return str(sp.latex(expression, symbol_names=latex_names()))
