"""A periodic orbit of the delayed LMO method on a quadratic, and its exact check. Kind: exact.

x_{k+1} = x_k - eta d_k, alpha = 1, no noise, f = x'Hx/2, eta = 1; d_k is an LMO direction of the gradient H x_{k-tau},
for all k of one period, indices modulo the period. If no step is wrong, dn(grad f(x_k)) / L, averaged over a period, is
attained by the method, so no delay constant of that norm can be below it. Where a gradient has ties (a zero coordinate
under sign descent, two steepest coordinates in l_1) the LMO has several answers, and the orbit takes one of them.

The orbit is the method's run from the history x_0, ..., x_tau, and Theorems 1, 1s and 1m hold from any history whose
steps have norm <= eta. theory.tightness.clock leads the method's own start (all of the first tau + 1 gradients at x_0)
to it. Checked by tests/theory/tightness/test_orbits.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from theory.errors import InputError

NORMS = ("l_1", "l_inf")
MAX_DIMENSION = 16  # sign vectors are enumerated
Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class PeriodicOrbit:
    """norm: of the weights, l_1 (coordinate descent) or l_inf (sign descent); H: symmetric, rows of exact numbers;
    points: x_0, ..., x_{period-1}. Raises InputError for other norms, shapes, or an H that is not symmetric.
    """

    norm: str
    tau: int
    H: tuple[Vector, ...]
    points: tuple[Vector, ...]

    def __post_init__(self) -> None:
        n = len(self.H)
        if self.norm not in NORMS:
            raise InputError(f"norm={self.norm!r} is not one of {', '.join(NORMS)}")
        if not 1 <= n <= MAX_DIMENSION or any(len(row) != n for row in (*self.H, *self.points)):
            raise InputError(f"H and points: {n} rows do not fit; one dimension from 1 to {MAX_DIMENSION} is needed")
        if any(self.H[i][j] != self.H[j][i] for i in range(n) for j in range(i)):
            raise InputError("H is not symmetric; the Hessian of a quadratic is needed")

    def gradient(self, k: int) -> Vector:
        """grad f(x_k), k modulo the period."""
        return times(self.H, self.points[k % len(self.points)])

    def step(self, k: int) -> Vector:
        """x_{k+1} - x_k."""
        following, here = self.points[(k + 1) % len(self.points)], self.points[k % len(self.points)]
        return tuple(a - b for a, b in zip(following, here, strict=True))

    @property
    def smoothness(self) -> Fraction:
        """L of f in the norm, exact: l_1: max |H_ij|; l_inf: max over sign vectors s of ||Hs||_1."""
        if self.norm == "l_1":
            return max(abs(entry) for row in self.H for entry in row)
        scale = math.lcm(*(entry.denominator for row in self.H for entry in row))
        whole = [[int(entry * scale) for entry in row] for row in self.H]
        if sum(map(abs, itertools.chain.from_iterable(whole))) >= 2**62:
            raise InputError("H: entries with a common denominator leave 64 bits; smaller denominators are needed")
        n = len(whole)
        signs = 1 - 2 * (np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1)  # s and -s give the same
        return Fraction(int(np.abs(signs @ np.array(whole)).sum(axis=1).max()), scale)

    def dual_norm(self, vector: Sequence[Fraction]) -> Fraction:
        """l_1: the largest |v_i|; l_inf: their sum."""
        return max(map(abs, vector)) if self.norm == "l_1" else sum(map(abs, vector), Fraction(0))

    def wrong_steps(self) -> list[int]:
        """The k whose step is no LMO step of the gradient tau steps ago: empty for an orbit of the method."""
        wrong = []
        for k in range(len(self.points)):
            step, stale = self.step(k), self.gradient(k - self.tau)
            length = sum(map(abs, step), Fraction(0)) if self.norm == "l_1" else max(map(abs, step))
            descent = -sum((a * b for a, b in zip(step, stale, strict=True)), Fraction(0))
            if length > 1 or descent != self.dual_norm(stale):
                wrong.append(k)
        return wrong

    def gradient_norms(self) -> list[Fraction]:
        """dn(grad f(x_k)) / (L eta) over one period. Raises InputError if a step is no LMO step."""
        if wrong := self.wrong_steps():
            raise InputError(f"points: step {wrong[0]} is not an LMO step of the gradient {self.tau} steps ago")
        L = self.smoothness
        return [self.dual_norm(self.gradient(k)) / L for k in range(len(self.points))]


def times(H: Sequence[Sequence[Fraction]], x: Sequence[Fraction | int]) -> Vector:
    """H x."""
    return tuple(sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in H)
