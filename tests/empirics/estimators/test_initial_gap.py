"""f_* between two proved numbers: against closed forms, and by certificates that hold at any point."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from empirics.estimators.initial_gap import f_star, initial_gap, minimise
from empirics.problems.logistic import logistic
from empirics.problems.matrix_least_squares import least_squares
from empirics.problems.mlp import mlp
from empirics.problems.noisy_quadratic import quadratic


@pytest.mark.parametrize("problem", [least_squares(3, 4), quadratic(5, spectrum=[4.0, 1.0, 0.25])])
def test_the_bracket_holds_the_closed_form(problem):
    truth = problem.known("frobenius")["f_star"].value
    found = f_star(problem)
    assert found.low <= truth <= found.high and found.high - found.low <= 1e-9 * max(truth, 1.0)
    early = f_star(problem, most_steps=2)  # far from converged: wide, and right
    assert early.low <= truth <= early.high and early.high > found.high
    gap = initial_gap("Delta0", problem.value(problem.start()), found)
    assert gap.value == pytest.approx(problem.value(problem.start()) - truth, rel=1e-9)


def test_logistic_regression_by_strong_convexity():
    problem = logistic(50, 6, ridge=0.05)
    found = f_star(problem)
    assert "strong convexity, mu = 0.05" in found.note
    assert 0 < found.high - found.low < 1e-12
    # Newton's method, written out, as an independent solver.
    w = problem.start()["layers.0.weight"].clone()
    A, t = problem.objective.inputs, problem.objective.targets
    for _ in range(30):
        p = torch.sigmoid(-t * (A @ w[0]))
        g = -(A.T @ (t * p)) / 50 + 0.05 * w[0]
        H = A.T @ (A * (p * (1 - p))[:, None]) / 50 + 0.05 * torch.eye(6, dtype=torch.float64)
        w[0] -= torch.linalg.solve(H, g)
    value = problem.value({"layers.0.weight": w})
    assert found.low <= value <= found.high and value == pytest.approx(found.high, rel=1e-12)
    # The certificate at a point that is not optimal is lower, and holds.
    rough = f_star(problem, most_steps=3)
    assert rough.low <= value <= rough.high and rough.high - rough.low > 1e-9


class Bowl:
    """f = |x|^2 + 3 with convexity 2: the certificate is exact at every point, so half of it would be wrong."""

    name, samples, convexity, floor = "bowl", None, 2.0, None

    def start(self):
        return {"x": torch.tensor([1.0, -2.0], dtype=torch.float64)}

    def value(self, x):
        return float((x["x"] ** 2).sum()) + 3.0

    def value_and_gradient(self, x):
        return self.value(x), {"x": 2 * x["x"]}


def test_the_certificate_is_exact_on_a_bowl_far_from_its_minimum():
    found = f_star(Bowl(), most_steps=0)
    assert found.value > 4.0 and found.low == pytest.approx(3.0, rel=1e-12) and found.low <= 3.0


def test_a_floor_without_convexity_and_nothing_at_all():
    problem = mlp(samples=8, features=2, hidden=3, outputs=1)
    found = f_star(problem)
    assert found.low <= 0.0 <= found.high and "not negative" in found.note
    assert minimise(problem)[1] == found.value  # the same numbers again
    nothing = f_star(replace(problem, floor=None))
    assert not nothing.applicable and "no lower bound of f is known; the smallest value found is" in nothing.reason
    gap = initial_gap("Delta0", 1.0, nothing)
    assert not gap.applicable and "f_* is not known" in gap.reason
    assert "f = inf" in initial_gap("Delta0", math.inf, found).reason
