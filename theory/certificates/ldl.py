"""Exact LDL^T: a proof, or a refutation, that a symmetric matrix of fractions is positive semidefinite."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def pivots(matrix: Sequence[Sequence[Fraction]]) -> list[Fraction] | None:
    """The diagonal D of A = L D L^T, L unit lower triangular; None if A is not positive semidefinite.

    Elimination without reordering: A is positive semidefinite iff every pivot is >= 0 and the rest of the column of
    a zero pivot is zero. The part above the diagonal must mirror the part below.
    """
    n = len(matrix)
    if any(len(row) != n for row in matrix) or any(
        matrix[i][j] != matrix[j][i] for i in range(n) for j in range(i)
    ):
        return None
    rest = [list(row[: i + 1]) for i, row in enumerate(matrix)]  # the lower triangle
    found: list[Fraction] = []
    for k in range(n):
        pivot = rest[k][k]
        column = [rest[i][k] for i in range(k + 1, n)]
        if pivot < 0 or (pivot == 0 and any(column)):
            return None
        found.append(pivot)
        if pivot == 0:
            continue
        for i in range(k + 1, n):
            if factor := column[i - k - 1] / pivot:
                row = rest[i]
                for j in range(k + 1, i + 1):
                    row[j] -= factor * column[j - k - 1]
    return found
