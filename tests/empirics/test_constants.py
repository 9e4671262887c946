"""A constant with how it is known: no number without one, no missing number without a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from empirics.constants import Constant, exact, mean_of, not_applicable
from empirics.errors import InputError
from empirics.estimators.weights import flatten, unflatten
from empirics.problem_constants import ProblemConstants, problem_constants
from empirics.problems.mlp import mlp


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


def dense(setting):
    columns = [flatten(setting.product(unflatten(e, setting.start))) for e in torch.eye(45, dtype=torch.float64)]
    return torch.linalg.eigvalsh(torch.stack(columns)).numpy()


def test_eigenvalues_are_named_for_what_they_are():
    """Where the largest modulus belongs to a negative eigenvalue, the Hessian's norm is not its largest eigenvalue."""
    setting = ProblemConstants(Negated(mlp(10, 3, 6, 3)), "frobenius")
    truth = dense(setting)
    assert truth[0] < -truth[-1] < 0
    found = {c.name: c for c in problem_constants(setting, ["hessian_norm", "lambda_max", "lambda_min"])}
    for name, value in (("hessian_norm", -truth[0]), ("lambda_max", truth[-1]), ("lambda_min", truth[0])):
        assert found[name].value == pytest.approx(value, abs=1e-3 * -truth[0]), name
        assert found[name].low - 1e-12 <= value <= found[name].high + 1e-12
        assert found[name].level == 0.95 and "converged" in found[name].note
    assert found["lambda_max"].value == found["lambda_max"].low
    assert found["lambda_min"].value == found["lambda_min"].high
    assert f"of the eigenvalue {found['lambda_min'].value:.6g}" in found["hessian_norm"].note


@pytest.mark.parametrize("name", ["L", "hessian_norm", "lambda_max", "lambda_min"])
def test_the_level_reaches_the_bracket(name):
    """A lower level is a shorter bracket; of the sign geometry, so that L has one of its own."""
    wide, short = (
        problem_constants(ProblemConstants(mlp(10, 3, 6, 3), "sign", level=level), [name])[0] for level in (0.999, 0.5)
    )
    assert (wide.level, short.level) == (0.999, 0.5) and wide.value == short.value
    assert wide.high - wide.low > 1.1 * (short.high - short.low)


class Negated:
    """-f: what was convex is concave."""

    def __init__(self, problem):
        self.problem = problem

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def hessian_product(self, x, v):
        return {n: -w for n, w in self.problem.hessian_product(x, v).items()}
