"""One constant of a theorem, with how it is known.

how         means
exact       computed from the problem itself, to round-off
bound       a proved bound, or a bracket [low, high] that is proved; `note` says which side
estimated   measured on samples or points; [low, high] is an interval at `level`, or what `note` says
assumed     put in by the user or by an assumption of the theorem
Where there is no value, `reason` says why in one line: a number is never made up.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from empirics.errors import InputError
from empirics.statistics import Interval, Samples, student_interval, unfit

HOWS = ("exact", "bound", "estimated", "assumed")


@dataclass(frozen=True)
class Constant:
    """name as in theory.symbols; value None: not applicable, for `reason`; low, high: None where there is no interval,
    infinite where one side is open; level: None for a bracket that is proved; n: samples or points; where: at which
    weights, on which data."""

    name: str
    value: float | None
    how: str
    where: str
    low: float | None = None
    high: float | None = None
    level: float | None = None
    method: str = ""
    n: int | None = None
    note: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.how not in HOWS:
            raise InputError(f"how: {self.how!r}; allowed are {', '.join(HOWS)}")
        if (self.value is None) == (not self.reason):
            raise InputError(f"{self.name}: value {self.value} with reason {self.reason!r}; one of the two is needed")
        if self.value is not None and not math.isfinite(self.value):
            raise InputError(f"{self.name}: value {self.value}; allowed is a finite number, or None with a reason")
        if (self.low is None) != (self.high is None):
            raise InputError(f"{self.name}: one end of [{self.low}, {self.high}]; allowed are both or none")
        if self.value is not None and self.low is not None and self.high is not None:
            if not self.low <= self.value <= self.high:
                raise InputError(f"{self.name}: value {self.value} outside [{self.low}, {self.high}]")

    @property
    def applicable(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def covers(self, x: float) -> bool:
        """Whether x lies in [low, high]; False without an interval."""
        return self.low is not None and self.high is not None and self.low <= x <= self.high

    def as_dict(self) -> dict[str, Any]:
        """The fields, for a result file."""
        return asdict(self)


def exact(name: str, value: float, where: str, note: str = "") -> Constant:
    """A value known to round-off."""
    return Constant(name, float(value), "exact", where, float(value), float(value), method="closed form", note=note)


def not_applicable(name: str, reason: str, where: str = "", how: str = "estimated", n: int | None = None) -> Constant:
    """No value, and why; the reason is put on one line."""
    return Constant(name, None, how, where, n=n, reason=" ".join(reason.split()))


def from_interval(name: str, interval: Interval, where: str, note: str = "") -> Constant:
    """A mean with its interval."""
    i = interval
    return Constant(name, i.value, "estimated", where, i.low, i.high, i.level, i.method, i.n, note)


def mean_of(name: str, samples: Samples, where: str, level: float = 0.95, note: str = "") -> Constant:
    """Mean of independent samples with Student's interval.

    Not applicable, with the reason, for fewer than 2 samples, for numbers that are not finite, and for samples that are
    all equal: a spread of 0 is no evidence of a width of 0.
    """
    array = np.asarray(samples, dtype=float)
    if (why := unfit(array)) is not None:
        return not_applicable(name, why, where, n=array.size)
    return from_interval(name, student_interval(array, level), where, note)
