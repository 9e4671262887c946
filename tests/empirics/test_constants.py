"""A constant with how it is known: no number without one, no missing number without a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from empirics.constants import Constant, exact, mean_of, not_applicable
from empirics.errors import InputError


def test_mean_is_students():
    found = mean_of("sigma", [1.0, 2.0, 4.0], "here", 0.9)
    assert (found.value, found.n, found.how, found.method) == (pytest.approx(7 / 3), 3, "estimated", "Student")
    assert found.covers(2.0) and not found.covers(7.0) and found.applicable
    assert found.as_dict()["level"] == 0.9


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([], "0 sample"),
        ([1.0], "1 sample"),
        ([[1.0, 2.0]], "shape"),
        ([1.0, math.nan], "sample 1 is nan"),
        ([math.inf, 1.0], "sample 0 is inf"),
        ([2.0, 2.0, 2.0], "all 3 samples are 2"),
        ([0.0, 0.0], "all 2 samples are 0"),
        ([0.1 + 0.2, 0.3], "all 2 samples are 0.3"),
    ],
)
def test_samples_that_give_no_interval(samples, reason):
    found = mean_of("sigma", samples, "here")
    assert not found.applicable and reason in found.reason
    assert (found.value, found.low, found.high) == (None, None, None)
    assert not found.covers(2.0)


def test_a_small_spread_on_a_large_mean_is_a_spread():
    assert mean_of("f", [1e6, 1e6 + 1e-6], "here").applicable


def test_reasons_are_one_line():
    assert not_applicable("L", "a\nb   c").reason == "a b c"
    assert exact("L", 2, "everywhere").covers(2.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"how": "guessed"}, "how: 'guessed'; allowed are exact"),
        ({"value": math.nan}, "finite number"),
        ({"value": None}, "one of the two is needed"),
        ({"reason": "because"}, "one of the two is needed"),
        ({"low": 0.0}, "both or none"),
        ({"low": 2.0, "high": 3.0}, "outside"),
    ],
)
def test_bad_constants(fields, said):
    given = {"name": "L", "value": 1.0, "how": "exact", "where": "here"} | fields
    with pytest.raises(InputError, match=said):
        Constant(**given)


def test_numpy_samples_are_left_alone():
    samples = np.array([1.0, 2.0])
    mean_of("L", samples, "here")
    assert samples.tolist() == [1.0, 2.0]
