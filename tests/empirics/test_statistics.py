"""Intervals: against formulas written out, against their level, and on bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from empirics.errors import InputError
from empirics.statistics import Interval, fieller_ratio, paired_interval, student_interval


def test_student_interval_by_hand():
    interval = student_interval([1.0, 2.0, 4.0], 0.9)
    mean, sd = 7 / 3, math.sqrt(((1 - 7 / 3) ** 2 + (2 - 7 / 3) ** 2 + (4 - 7 / 3) ** 2) / 2)
    half = 2.919985580355516 * sd / math.sqrt(3)  # t quantile 0.95, 2 degrees of freedom
    assert interval.value == pytest.approx(mean)
    assert (interval.low, interval.high) == pytest.approx((mean - half, mean + half))
    assert interval.as_dict()["n"] == 3


def test_paired_interval_removes_what_the_pairs_share():
    shared = np.array([0.0, 100.0, -50.0, 7.0])
    interval = paired_interval(shared + [1.0, 1.1, 0.9, 1.0], shared)
    assert interval.value == pytest.approx(1.0)
    assert interval.high - interval.low < 0.5


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_coverage_is_the_level(level):
    rng = np.random.default_rng(0)
    trials, truth, hits, ratio_hits = 2000, 0.4, 0, 0
    for _ in range(trials):
        b = rng.normal(5.0, 1.0, 5)
        a = truth * b + rng.normal(0.0, 0.5, 5)
        hits += student_interval(b, level).covers(5.0)
        ratio = fieller_ratio(a, b, level)
        assert ratio.defined and ratio.low is not None and ratio.high is not None
        ratio_hits += ratio.low <= truth <= ratio.high
    error = math.sqrt(level * (1 - level) / trials)
    assert abs(hits / trials - level) < 5 * error
    assert abs(ratio_hits / trials - level) < 5 * error


def test_fieller_ends_are_just_significant():
    """At each end q the paired test of numerator - q denominator has exactly the p-value 1 - level."""
    a, b = np.array([1.0, 2.0, 1.5, 1.2]), np.array([4.0, 5.0, 4.2, 4.9])
    ratio = fieller_ratio(a, b, 0.95)
    for q in (ratio.low, ratio.high):
        assert stats.ttest_1samp(a - q * b, 0.0).pvalue == pytest.approx(0.05, rel=1e-9)


def test_fieller_is_undefined_where_the_denominator_covers_zero():
    ratio = fieller_ratio([1.0, 1.1, 0.9], [0.1, -0.2, 0.15])
    assert not ratio.defined
    assert (ratio.value, ratio.low, ratio.high) == (None, None, None)
    assert "covers 0" in ratio.note
    assert ratio.as_dict()["defined"] is False


@pytest.mark.parametrize("bad", [[1.0], [], [[1.0, 2.0]], [1.0, float("nan")], [1.0, float("inf")]])
def test_bad_samples(bad):
    with pytest.raises(InputError, match="samples|numerator"):
        student_interval(bad)
    with pytest.raises(InputError):
        fieller_ratio(bad, bad)


def test_bad_level_pairs_and_interval():
    with pytest.raises(InputError, match="level"):
        student_interval([1.0, 2.0], 1.0)
    with pytest.raises(InputError, match="pairs"):
        paired_interval([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="outside"):
        Interval(3.0, 0.0, 1.0, 0.95, "Student", 2)
