"""The budget of Theorem 1s on K + tau steps, read at the iterates: against the path, and against that of Theorem 1s."""

from __future__ import annotations

import numpy as np
import pytest

from empirics.least_squares_budget import budget_of_setting
from empirics.lmo_path import Setting, record
from empirics.norms import get_norm
from empirics.problems.matrix_least_squares import random_problem
from theory.registry import get_bound

THEOREM, TAKEN = "delayed-lmo-iterate", "delayed-lmo-shifted"
CLOSE = 1e-12


@pytest.mark.parametrize(("tau", "sigma"), [(0, 0.3), (3, 0.0), (3, 0.3)])
def test_every_level_is_that_of_all_steps_but_the_last(tau, sigma):
    problem, setting = random_problem(3, 4, seed=1), Setting("run", tau, 0.05, 0.3, 20, sigma)
    found = budget_of_setting(THEOREM, problem, setting)
    taken = budget_of_setting(TAKEN, problem, setting)
    assert found["violations"] == 0 and not found["not_recorded"]
    assert [row["statement"] for row in found["inequalities"]] == [row["statement"] for row in taken["inequalities"]]
    path = record(problem, setting, problem.noise(sigma, 20, 0))
    K = 20 - tau
    norms = get_norm("spectral").dual(problem.grad(path.x[:20]))
    measured, errors, terms, trajectory, worst = (level["value"] for level in found["waterfall"])
    own, own_errors, own_terms, _, _ = (level["value"] for level in taken["waterfall"])
    assert measured == pytest.approx(norms[:K].mean(), rel=CLOSE)
    assert K * measured + tau * norms[0] == pytest.approx(20 * own, rel=CLOSE)  # what running on is
    assert (errors, terms) == pytest.approx((own_errors * 20 / K, own_terms * 20 / K), rel=CLOSE)
    for name, term in taken["editions"]["measured"]["terms"].items():
        assert found["editions"]["measured"]["terms"][name] == pytest.approx(term * 20 / K, rel=CLOSE), name
    values = {c["name"]: c["value"] for c in found["constants"] if c["how"] != "exact, from the problem"}
    assert (found["steps"], values["K"]) == (K, K)
    E0, gap = float(norms[0]), float(problem.f(path.x[0])) - problem.f_star
    given = {"L": problem.L(), "sigma": sigma, "E0": E0, "Delta0": gap, "rho": np.sqrt(3), "tau": tau, "K": K}
    assert worst == pytest.approx(get_bound(THEOREM).evaluate(eta=0.05, alpha=0.3, **given), rel=CLOSE)
    given |= {"L": values["L"], "sigma": values["sigma"], "Delta0": float(problem.f(path.x[0]) - problem.f(path.x[20]))}
    assert trajectory == pytest.approx(get_bound(THEOREM).evaluate(eta=0.05, alpha=0.3, **given), rel=CLOSE)


def test_a_run_of_no_more_steps_than_the_delay_has_no_average():
    problem = random_problem(2, 3)
    found = budget_of_setting(THEOREM, problem, Setting("run", 4, 0.05, 0.3, 4))
    assert found["status"] == "not applicable" and "4 steps" in found["reasons"][0] and "waterfall" not in found
    assert budget_of_setting(THEOREM, problem, Setting("run", 4, 0.05, 0.3, 5))["steps"] == 1
