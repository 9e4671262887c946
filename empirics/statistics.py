"""Intervals for means, paired differences and ratios of means over independent runs.

Student's t for means and paired differences; Fieller's theorem (Fieller 1954, JRSS B 16, 175-185) for a ratio of
means of paired samples, which also knows when no finite interval exists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from empirics.errors import InputError

Samples = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Interval:
    """value with [low, high] at a confidence level in (0, 1), the method's name and the number of samples."""

    value: float
    low: float
    high: float
    level: float
    method: str
    n: int

    def __post_init__(self) -> None:
        _check_level(self.level)
        if not self.low <= self.value <= self.high:
            raise InputError(f"interval: value {self.value} outside [{self.low}, {self.high}]")

    def covers(self, x: float) -> bool:
        """True if x lies in [low, high]."""
        return self.low <= x <= self.high

    def as_dict(self) -> dict[str, Any]:
        """The fields, for a result file."""
        return asdict(self)


@dataclass(frozen=True)
class Ratio:
    """A ratio of means. Where `defined` is False there is no finite interval: value, low, high are None."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n: int
    defined: bool
    note: str = ""

    def __post_init__(self) -> None:
        _check_level(self.level)
        if self.defined:
            if self.value is None or self.low is None or self.high is None:
                raise InputError("ratio: None is not allowed where the ratio is defined")
            if not self.low <= self.value <= self.high:
                raise InputError(f"ratio: value {self.value} outside [{self.low}, {self.high}]")

    def as_dict(self) -> dict[str, Any]:
        """The fields, for a result file."""
        return asdict(self)


def _check_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InputError(f"level: {level!r}; allowed is 0 < level < 1")
    return level


def _samples(values: Samples, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size < 2:
        raise InputError(f"{name}: shape {array.shape}; allowed is one list of at least 2 numbers")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(f"{name}: sample {bad[0]} is {array[bad[0]]}; allowed are finite numbers")
    return array


def _pair(x: Samples, y: Samples, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    a, b = _samples(x, names[0]), _samples(y, names[1])
    if a.size != b.size:
        raise InputError(f"{names[1]}: {b.size} samples for {a.size} of {names[0]}; allowed are pairs")
    return a, b


def student_interval(samples: Samples, level: float = 0.95) -> Interval:
    """Mean and Student interval of independent samples, shape [n], n >= 2. Raises InputError otherwise."""
    array = _samples(samples, "samples")
    half = stats.t.ppf(0.5 + _check_level(level) / 2, array.size - 1) * array.std(ddof=1) / math.sqrt(array.size)
    mean = float(array.mean())
    return Interval(mean, mean - float(half), mean + float(half), level, "Student", array.size)


def paired_interval(x: Samples, y: Samples, level: float = 0.95) -> Interval:
    """Mean of x - y over pairs and its Student interval; x, y of shape [n], n >= 2."""
    a, b = _pair(x, y, ("x", "y"))
    difference = student_interval(a - b, level)
    return Interval(difference.value, difference.low, difference.high, level, "Student, paired", difference.n)


def fieller_ratio(numerator: Samples, denominator: Samples, level: float = 0.95) -> Ratio:
    """mean(numerator)/mean(denominator) over pairs with Fieller's interval; shapes [n], n >= 2.

    The interval holds every q for which mean(numerator - q denominator) is not significantly different from 0.
    It is finite only if the denominator's own Student interval excludes 0; else `defined` is False.
    """
    a, b = _pair(numerator, denominator, ("numerator", "denominator"))
    n, t = a.size, float(stats.t.ppf(0.5 + _check_level(level) / 2, a.size - 1))
    covariance = np.cov(a, b, ddof=1) / n
    A, B = float(a.mean()), float(b.mean())
    lead = B**2 - t**2 * float(covariance[1, 1])  # q^2 lead - 2 q middle + last <= 0
    own = student_interval(b, level)
    if lead <= 0 or own.covers(0.0):
        note = f"the denominator's interval [{own.low:.6g}, {own.high:.6g}] covers 0"
        return Ratio(None, None, None, level, "Fieller", n, False, note)
    middle = A * B - t**2 * float(covariance[0, 1])
    last = A**2 - t**2 * float(covariance[0, 0])
    root = math.sqrt(max(middle**2 - lead * last, 0.0))
    low, high, value = (middle - root) / lead, (middle + root) / lead, A / B
    return Ratio(value, min(low, value), max(high, value), level, "Fieller", n, True)
