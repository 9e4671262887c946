"""Exact LDL^T: which matrices are positive semidefinite, by fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from theory.certificates.ldl import pivots


def fractions(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in rows]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[2, 1], [1, 2]], [2, Fraction(3, 2)]),
        ([[1, 1], [1, 1]], [1, 0]),
        ([[0, 0], [0, 3]], [0, 3]),
        ([[0, 1], [1, 5]], None),  # zero pivot, column not zero
        ([[1, 2], [2, 3]], None),
        ([[1, 0], [1, 5]], None),  # not symmetric
        ([[1, 0]], None),
        ([[-1]], None),
    ],
)
def test_ldl_of_small_matrices(matrix: list[list[int]], expected: list[Fraction] | None) -> None:
    assert pivots(fractions(matrix)) == expected


def test_ldl_agrees_with_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        root = rng.integers(-3, 4, (4, int(rng.integers(2, 5))))
        matrix = root @ root.T - np.diag(rng.integers(0, 2, 4)) * int(rng.integers(0, 2))
        smallest = np.linalg.eigvalsh(matrix.astype(float))[0]
        verdict = pivots(fractions(matrix.tolist())) is not None
        assert verdict == (smallest > -1e-9)  # integer matrices this small have no eigenvalue in (-1e-9, 0)
        seen.add(verdict)
    assert seen == {True, False}
