"""Intervals: against formulas written out, against their level, and on bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from empirics.errors import InputError
from empirics.statistics import (
    BCA_LEAST,
    Interval,
    bca_interval,
    fieller_ratio,
    log_jackknife_interval,
    paired_interval,
    student_interval,
)


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


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e9])
def test_equal_samples_have_no_interval(shift):
    """Up to round-off of what they were computed from: a spread of 0 is no evidence of a width of 0."""
    x = shift + np.array([0.1 + 0.2, 0.3, 0.3])
    with pytest.raises(InputError, match="all 3 samples are .*equal samples say nothing about their spread"):
        student_interval(x)
    with pytest.raises(InputError, match="all 3 samples are"):  # differences of 1e-16 of numbers of size 1
        paired_interval(shift + np.array([1.0, 2.0, 3.0]), shift + np.array([1.0, 2.0, 3.0]) * (1 + 2e-16))
    assert paired_interval([1.0, 2.0, 3.0], [1.0, 2.0, 3.0 + 1e-12]).low < 0


def test_a_ratio_of_pairs_that_are_proportional_has_no_interval():
    for numerator, denominator in (([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]), ([0.1, 0.2, 0.3], [0.3, 0.6, 0.9])):
        ratio = fieller_ratio(numerator, denominator)
        assert not ratio.defined and ratio.value is None and "all 3 pairs have the ratio" in ratio.note
    assert fieller_ratio([1.0, 1.1, 0.9], [2.0, 2.0, 2.0]).defined  # a number that is known, as denominator
    assert fieller_ratio([1.0, 1.0, 1.0], [2.0, 2.1, 1.9]).defined
    assert "covers 0" in fieller_ratio([1.0, 1.1, 0.9], [0.0, 0.0, 0.0]).note


def test_bad_level_pairs_and_interval():
    with pytest.raises(InputError, match="level"):
        student_interval([1.0, 2.0], 1.0)
    with pytest.raises(InputError, match="pairs"):
        paired_interval([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="outside"):
        Interval(3.0, 0.0, 1.0, 0.95, "Student", 2)


def test_jackknife_of_a_logarithm_by_hand():
    """The geometric mean's logarithm is a mean, so its pseudo-values are the logarithms and the kurtosis theirs."""
    x = np.array([1.0, 2.0, 4.0, 4.5, 0.5])
    out = [stats.gmean(np.delete(x, i)) for i in range(5)]
    logs = np.log(x)
    freedom = 5 / (stats.kurtosis(logs, fisher=False) - 1)
    assert 1 < freedom / 3 < freedom
    for caution, df in ((1.0, min(freedom, 4)), (3.0, freedom / 3), (100.0, 1.0)):
        found = log_jackknife_interval(out, float(stats.gmean(x)), 0.9, caution)
        half = stats.t.ppf(0.95, df) * logs.std(ddof=1) / math.sqrt(5)
        assert (math.log(found.low), math.log(found.high)) == pytest.approx((logs.mean() - half, logs.mean() + half))


@pytest.mark.parametrize(
    ("left_out", "value", "said"),
    [([1.0, 2.0], 0.0, "allowed are numbers > 0"), ([0.0, 2.0], 1.0, "least"), ([2.0, 2.0, 2.0], 2.0, "all 3 samples")],
)
def test_logarithms_that_say_nothing(left_out, value, said):
    with pytest.raises(InputError, match=said):
        log_jackknife_interval(left_out, value)


def test_an_end_beyond_all_numbers_is_open():
    assert log_jackknife_interval([1e-9, 1.0], 1.0, 0.999).high == math.inf


def test_bca_equals_the_formula_written_out():
    """Efron 1987: the ends are quantiles moved by z0 (bias) and a (acceleration), with the same resamples."""
    x, n, B = np.random.default_rng(0).exponential(size=90), 90, 999
    rows = np.random.default_rng(4)
    found = bca_interval(x, resamples=B, seed=4)
    means = np.concatenate([x[rows.integers(0, n, (B, n))].mean(axis=1)])
    z0 = stats.norm.ppf((np.sum(means < x.mean()) + np.sum(means <= x.mean())) / (2 * B))
    out = (x.sum() - x) / (n - 1)
    d = out.mean() - out
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    ends = []
    for q in (0.025, 0.975):
        z = z0 + stats.norm.ppf(q)
        ends.append(np.quantile(means, stats.norm.cdf(z0 + z / (1 - a * z))))
    assert (found.low, found.high) == pytest.approx(tuple(ends), rel=0.01)
    assert (found.value, found.n, found.method) == (pytest.approx(x.mean()), 90, "bootstrap, BCa")


@pytest.mark.parametrize(("n", "holds"), [(10, False), (BCA_LEAST, True)])
def test_bca_covers_skewed_samples_from_its_least_number_on(n, holds):
    """Means of exponential samples (skewness 2): below that number it covers too seldom, from it on within 2 %."""
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(1000, n))
    found = stats.bootstrap(
        (x,), np.mean, axis=-1, n_resamples=600, method="BCa", random_state=rng, batch=100
    ).confidence_interval
    coverage = np.mean((found.low <= 1.0) & (found.high >= 1.0))
    assert (coverage >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 1000)) == holds, coverage
    assert coverage <= 0.97


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([[1.0] * 100], "all 100 are equal"),
        ([[1.0]], "at least 2"),
        ([list(range(10))], "10 of them; the BCa interval holds from 80 on"),
        ([list(range(90)), list(range(91))], "90, 91 of them; allowed are pairs"),
        ([[math.nan] * 90], "finite"),
    ],
)
def test_bca_refuses_where_it_does_not_hold(samples, said):
    with pytest.raises(InputError, match=said):
        bca_interval(*samples)


def test_bca_of_a_statistic_that_no_resample_moves_is_refused():
    with pytest.raises(InputError, match="degenerate"):
        bca_interval(np.arange(90.0), statistic=lambda x, axis: np.zeros(np.shape(x)[:-1]), resamples=99)
