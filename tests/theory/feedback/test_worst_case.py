"""Without momentum error feedback is strictly worse: exact runs on x^2/2 and the enumeration over all f."""

from __future__ import annotations

from fractions import Fraction

import pytest

from theory.errors import InputError
from theory.feedback.worst_case import quadratic_run, worst

AVERAGES = {
    ("none", 1): Fraction(5, 6),
    ("none", 2): Fraction(13, 10),
    ("none", 3): Fraction(25, 14),
    ("extrapolate", 1): Fraction(3, 2),
    ("extrapolate", 2): Fraction(5, 2),
    ("extrapolate", 3): Fraction(7, 2),
    ("telescoped", 1): Fraction(3, 2),
    ("telescoped", 2): Fraction(5, 2),
    ("telescoped", 3): Fraction(33, 10),
}


def averages(form: str, tau: int) -> set[Fraction]:
    """Averages over a period of the runs from 30 starts; no gradient is zero."""
    found = set()
    for numerator in range(1, 90, 3):
        run = quadratic_run(form, tau, Fraction(numerator, 3), 200)
        state = [tuple(run.x[k - 2 * tau : k + 1]) for k in range(100, 201)]
        period = next(p for p in range(1, 101) if state[0] == state[p])
        found.add(sum((abs(x) for x in run.x[100 : 100 + period]), Fraction(0)) / period)
    return found


@pytest.mark.parametrize("form, tau", AVERAGES)
def test_attained_on_the_quadratic_and_never_passed(form, tau):
    found = averages(form, tau)
    assert max(found) == AVERAGES[form, tau]
    if tau < 3:
        assert worst(form, tau).average == AVERAGES[form, tau]
    if form == "none":
        assert found == {AVERAGES[form, tau]}  # from every start
    else:
        assert max(found) > AVERAGES["none", tau]


def test_the_virtual_iterate():
    for form, tau in AVERAGES:
        run = quadratic_run(form, tau, Fraction(1, 3), 40)
        assert all(run.y[k + 1] - run.y[k] == run.updates[k] for k in range(1, 40))


def test_bad_input():
    for call in (
        lambda: worst("both", 1),
        lambda: worst("none", 0),
        lambda: quadratic_run("none", 1, Fraction(1), 0),
    ):
        with pytest.raises(InputError):
            call()
