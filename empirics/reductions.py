"""Rows of numbers along a run in bounded memory: sums and extremes over all of them, and the rows themselves thinned.

Up to `capacity` rows are kept as they are. Beyond that every second one goes, again and again: what is left is an even
sample of the run, `stride` rows apart, while counts, sums, minima and maxima stay exact over all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from empirics.errors import InputError


@dataclass
class Total:
    """Of one quantity: how many, their sum, the extremes; NaN stays NaN."""

    n: int = 0
    sum: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, value: float) -> None:
        self.n += 1
        self.sum += value
        if value != value:
            self.low = self.high = value
        elif self.low == self.low:
            self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def mean(self) -> float:
        return self.sum / self.n if self.n else math.nan


@dataclass
class Rows:
    """See the module. A row may lack what is not defined at its step; it then counts as NaN in `column`."""

    capacity: int = 4096
    stride: int = 1
    totals: dict[str, Total] = field(default_factory=dict)
    kept: list[dict[str, float]] = field(default_factory=list)
    seen: int = 0
    last: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.capacity < 2:
            raise InputError(f"capacity: {self.capacity!r}; allowed is an integer >= 2")

    def add(self, row: dict[str, float]) -> None:
        """One more row."""
        for name, value in row.items():
            self.totals.setdefault(name, Total()).add(value)
        if self.seen % self.stride == 0:
            if len(self.kept) == self.capacity:
                self.kept = self.kept[::2]
                self.stride *= 2
            if self.seen % self.stride == 0:
                self.kept.append(row)
        self.seen, self.last = self.seen + 1, row

    def column(self, name: str) -> np.ndarray:
        """What is kept of one quantity, in the order of the run."""
        return np.array([row.get(name, math.nan) for row in self.kept])

    def mean(self, name: str) -> float:
        """Over all rows that had it."""
        return self.totals[name].mean if name in self.totals else math.nan
