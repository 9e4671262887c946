"""Certified worst cases against the bounds, and the table of them in the documentation."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from theory.certificates.table import Row, digits, markdown, rows

DOCS = Path(__file__).resolve().parents[2] / "docs" / "tightness.md"


@pytest.fixture(scope="module")
def found() -> list[Row]:
    return rows()


def test_the_bounds_hold_and_each_is_sharper_than_the_one_before(found: list[Row]) -> None:
    inside = 0
    for row in found:
        values = [value for value in row.bounds if value is not None]
        if len(values) == 3:
            inside += 1
            assert row.lower <= values[2] <= values[1] <= values[0]
            assert row.N < 12 or row.lower > values[1] * Fraction(2, 3)
            assert row.lower > values[2] * Fraction(89, 100)
        elif values:  # only the last one has the wider condition
            assert row.bounds[:2] == (None, None) and row.lower <= values[0]
    assert inside > 80


def test_a_smaller_constant_is_refuted_by_an_instance(found: list[Row]) -> None:
    """delayed-gd at tau = 1, h = 1/2: the factor 2 could at best be 2 * .813 for N = 12."""
    row = next(row for row in found if (row.tau, row.N, row.h) == (1, 12, Fraction(1, 2)))
    assert row.bounds[0] == Fraction(4, 15)
    assert row.lower > Fraction(4, 15) * Fraction(8, 10) and row.upper < Fraction(4, 15) * Fraction(82, 100)


def test_the_bounds_of_the_known_case(found: list[Row]) -> None:
    values = {row.N: row.bounds[0] for row in found if (row.tau, row.h) == (1, Fraction(1, 2))}
    assert [values[N] for N in range(1, 6)] == [Fraction(16, 5) / N for N in range(1, 6)]


def test_outside_the_condition_there_is_no_bound(found: list[Row]) -> None:
    for row in found:
        outside = row.h + (row.tau * row.h) ** 2 > 1
        assert [value is None for value in row.bounds[:2]] == [outside, outside]


def test_the_documentation_shows_this_table(found: list[Row]) -> None:
    assert markdown(found) in DOCS.read_text(encoding="utf-8")


def test_every_digit_shown_is_certified(found: list[Row]) -> None:
    shown = [row for row in found if row.h == Fraction(1, 2) or row.N == 12]
    assert len(shown) == 60 + 5
    for row in shown:
        assert digits(row.lower) == digits(row.upper), row
