"""The worst case of delayed gradient descent as inequalities between numbers: what a certificate combines.

Setting, in units L = 1, Delta0 = 1, h = L gamma: f has a 1-Lipschitz gradient in the Euclidean norm (f need not
be convex), x_{k+1} = x_k - h g_{(k-tau)+} with g_k = grad f(x_k), f(x_0) - f_* <= 1, f_* any lower bound of f.
The worst case is V(tau, N, h) = sup min_{k<N} ||g_k||^2; for other units it is V L Delta0.

Facts used, for all i, j (both follow from smoothness alone):
  I_ij = f_i - f_j - <g_i + g_j, x_i - x_j>/2 - ||g_i - g_j||^2/4 + ||x_i - x_j||^2/4 >= 0,
  J_i  = f_i - f_* - ||g_i||^2/2 >= 0.
They are also sufficient: numbers and vectors that satisfy all of them belong to a function of the class. With
u_i = x_i - g_i, p_i = f_i - ||g_i||^2/2 and a over the simplex, it is
  f(y) = min_a ||y - u_a||^2/2 + (sum_i a_i ||u_i||^2 - ||u_a||^2)/4 + sum_i a_i p_i,  u_a = sum_i a_i u_i:
f + ||.||^2/2 is the convex hull of parabolas, hence convex and 2-smooth; I_ij >= 0 makes it interpolate, and every
term shows f >= min_i p_i >= f_*. So V is the value of a semidefinite program in f and the Gram matrix of the g_k.

Reference: Taylor, Hendrickx, Glineur 2017 (arXiv 1502.05666), Theorem 4, applied to f + ||.||^2/2; Drori and Shamir
2020 (arXiv 1910.01845) for the lower bound f_*. Tests: tests/theory/test_certificates.py.
Standard library only; every number is a Fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from theory.errors import InputError

Matrix = list[list[Fraction]]
N_MAX = 64


@dataclass(frozen=True)
class WorstCase:
    """min_{k<N} ||grad f(x_k)||^2 of x_{k+1} = x_k - h grad f(x_{(k-tau)+})."""

    tau: int
    N: int
    h: Fraction

    def __post_init__(self) -> None:
        for name, value, low in (("tau", self.tau, 0), ("N", self.N, 1)):
            if type(value) is not int or not low <= value <= N_MAX:
                raise InputError(f"{name}: {value!r} is not a whole number from {low} to {N_MAX}")
        if type(self.h) is not Fraction or self.h <= 0:
            raise InputError(f"h: {self.h!r} is not a positive Fraction (h = L gamma)")

    @property
    def same(self) -> WorstCase:
        """The same problem with the smallest delay: before step tau + 1 every update is the first gradient's."""
        return WorstCase(min(self.tau, max(self.N - 2, 0)), self.N, self.h)

    def points(self) -> Matrix:
        """T with x_k = sum_j T[k][j] g_j, from x_0 = 0."""
        rows = [[Fraction(0)] * self.N]
        for k in range(self.N - 1):
            row = list(rows[-1])
            row[max(k - self.tau, 0)] -= self.h
            rows.append(row)
        return rows

    def quadratic(self, lam: Mapping[tuple[int, int], Fraction]) -> Matrix:
        """The symmetric Q with sum_ij lam_ij (I_ij - f_i + f_j) = - sum_kl Q_kl <g_k, g_l>."""
        n, T = self.N, self.points()
        xx, xg, gg = ([[Fraction(0)] * n for _ in range(n)] for _ in range(3))
        for (i, j), value in lam.items():
            quarter = value / 4
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                gg[a][b] += sign * quarter
                xx[a][b] -= sign * quarter
            for a, b, sign in ((i, i, 1), (i, j, 1), (j, i, -1), (j, j, -1)):  # <x_i - x_j, g_i + g_j>/4, twice
                xg[a][b] += sign * quarter
        # Q = gg + T' xg + xg' T + T' xx T
        zero = Fraction(0)
        bent = [[sum((xx[k][m] * T[m][l] for m in range(n)), zero) for l in range(n)] for k in range(n)]
        inner = [[xg[k][l] + bent[k][l] / 2 for l in range(n)] for k in range(n)]
        half = [[sum((T[m][k] * inner[m][l] for m in range(n)), zero) for l in range(n)] for k in range(n)]
        return [[gg[k][l] + half[k][l] + half[l][k] for l in range(n)] for k in range(n)]

    def interpolation(self, f: Sequence[Fraction], gram: Matrix) -> dict[tuple[int, int], Fraction]:
        """I_ij at given values and Gram matrix, from the definition."""
        n, T = self.N, self.points()
        xg = [[sum(T[i][k] * gram[k][j] for k in range(n)) for j in range(n)] for i in range(n)]  # <x_i, g_j>
        xx = [[sum(xg[i][k] * T[j][k] for k in range(n)) for j in range(n)] for i in range(n)]  # <x_i, x_j>

        def value(i: int, j: int) -> Fraction:
            cross = xg[i][i] + xg[i][j] - xg[j][i] - xg[j][j]
            gradients = gram[i][i] - 2 * gram[i][j] + gram[j][j]
            distance = xx[i][i] - 2 * xx[i][j] + xx[j][j]
            return Fraction(f[i] - f[j] - cross / 2 - gradients / 4 + distance / 4)

        return {(i, j): value(i, j) for i in range(n) for j in range(n) if i != j}
