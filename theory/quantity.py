"""What a quantity of the theory is: a name with LaTeX, unit, domain, meaning and one sympy symbol.

The quantities themselves are in `theory.symbols`. Units are written in two base dimensions: f (the unit of the
objective) and x (the unit of the norm of the weights).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import sympy as sp

from theory.errors import InputError

UNITS: dict[str, tuple[int, int]] = {  # text -> (power of f, power of x)
    "1": (0, 0),
    "f": (1, 0),
    "x": (0, 1),
    "x^2": (0, 2),
    "f/x": (1, -1),
    "f/x^2": (1, -2),
    "x^2/f": (-1, 2),
    "(f/x)^2": (2, -2),
    "t": (0, 0),  # time on the clock of a schedule, which no bound contains
}


@dataclass(frozen=True)
class Domain:
    """An interval of real numbers or of integers. Raises InputError when it would be empty."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        empty = self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))
        if empty or math.isnan(self.low) or math.isnan(self.high):
            raise InputError(
                f"domain: low={self.low}, high={self.high} admits no number; low <= high is needed"
            )

    @property
    def text(self) -> str:
        """The domain in words, for messages and tables."""
        kind = "an integer" if self.integer else "a number"
        if math.isinf(self.low) and math.isinf(self.high):
            return "a finite number" if not self.integer else kind
        if math.isinf(self.high):
            return f"{kind} {'>' if self.open_low else '>='} {self.low:g}"
        if math.isinf(self.low):
            return f"{kind} {'<' if self.open_high else '<='} {self.high:g}"
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"{kind} in {left}{self.low:g}, {self.high:g}{right}"

    def admits(self, value: np.ndarray) -> np.ndarray:
        """Boolean array of value's shape: which entries lie in the domain. NaN and infinities never do."""
        inside = np.isfinite(value)
        inside &= (value > self.low) if self.open_low else (value >= self.low)
        inside &= (value < self.high) if self.open_high else (value <= self.high)
        if self.integer:
            inside &= value == np.floor(value)
        return inside


REAL = Domain()
POSITIVE = Domain(low=0.0, open_low=True)
NONNEGATIVE = Domain(low=0.0)
NATURAL = Domain(low=0.0, integer=True)
COUNT = Domain(low=1.0, integer=True)


@dataclass(frozen=True)
class Quantity:
    """One quantity of the theory.

    name: identifier in code; latex: how it is printed; unit: a key of UNITS; domain: admissible values;
    meaning: one sentence; estimator: name of the estimator that measures it on a run, or None if it is set,
    not measured.
    """

    name: str
    latex: str
    unit: str
    domain: Domain = field(repr=False)
    meaning: str = field(repr=False)
    estimator: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise InputError(f"quantity name: {self.name!r} is no identifier")
        if not self.latex or self.latex.count("{") != self.latex.count("}"):
            raise InputError(f"latex of {self.name}: {self.latex!r} is empty or has unbalanced braces")
        if self.unit not in UNITS:
            raise InputError(f"unit of {self.name}: {self.unit!r} is not one of {', '.join(UNITS)}")
        if not self.meaning:
            raise InputError(f"meaning of {self.name}: may not be empty")

    @cached_property
    def symbol(self) -> sp.Symbol:
        """The sympy symbol: real, with sign and integrality as the domain gives them."""
        facts: dict[str, bool] = {"real": True}
        if self.domain.integer:
            facts["integer"] = True
        if self.domain.low > 0 or (self.domain.low == 0 and self.domain.open_low):
            facts["positive"] = True
        elif self.domain.low == 0:
            facts["nonnegative"] = True
        return sp.Symbol(self.name, **facts)

    @property
    def dimension(self) -> tuple[int, int]:
        """(power of f, power of x)."""
        return UNITS[self.unit]

    def check(self, value: object) -> np.ndarray:
        """`value` as a float64 array of the same shape (scalars: shape ()).

        Integers are converted before any arithmetic, so that nothing wraps around. Raises InputError for
        text, truth values, complex numbers, NaN, infinities, integers beyond float64, and anything outside
        the domain.
        """
        try:
            raw = np.asarray(value, dtype=object if isinstance(value, (list, tuple)) else None)
            if raw.dtype.kind in "bcSUmMV" or (raw.dtype.kind == "O" and not _all_numbers(raw)):
                raise TypeError
            array = np.asarray(raw, dtype=np.float64)
            if raw.dtype.kind == "O" and any(v != 0 for v in raw[array == 0].flat):
                raise OverflowError  # an exact number so small that float64 has only 0 for it
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{self.name}={_short(value)} is not {self.domain.text}") from None
        good = self.domain.admits(array)
        if not good.all():
            bad = float(array.reshape(-1)[~good.reshape(-1)][0])
            raise InputError(
                f"{self.name}={number_text(bad)} is not allowed: {self.name} must be {self.domain.text}"
            )
        return array


def number_text(value: float) -> str:
    """The shortest decimal that reads back as the same float; whole numbers without a point."""
    return repr(float(value)).removesuffix(".0")


def _all_numbers(raw: np.ndarray) -> bool:
    return all(
        (isinstance(v, (int, float, Fraction, np.integer, np.floating)) and not isinstance(v, bool))
        or (isinstance(v, sp.Expr) and v.is_number)
        for v in raw.flat
    )


def _short(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 40 else text[:37] + "..."
