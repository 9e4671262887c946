"""What is recorded at x_{(k-s)+} against the whole path, the budgets of the median theorems, and what s is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from empirics.budget import OWN, budget
from empirics.errors import InputError
from empirics.least_squares_budget import FAR, budget_of_setting, facts_of_setting, grid, round_problem
from empirics.least_squares_run import record_run, recorder_of
from empirics.lmo_path import Setting, record
from empirics.norms import get_norm
from empirics.pathwise import discounted
from empirics.problems.matrix_least_squares import random_problem
from empirics.reference_recording import MOST, median_age, reference_of, too_old
from theory.registry import get_bound

MEDIAN = [name for name, own in OWN.items() if own == "reference_norm"]
# Float64: a dozen operations on numbers of the size of the largest of a column, singular values included.
EQUAL = 1e-13


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize(("tau", "s"), [(0, 0), (0, 3), (2, 0), (2, 1), (2, 2), (2, 5)])
def test_recorded_is_what_the_definitions_say(tau, s, nesterov):
    problem, of, a, K = random_problem(4, 5, seed=1), get_norm("spectral"), 0.3, 15
    setting = Setting("run", tau, 0.05, a, K, 0.3, nesterov=nesterov)
    noise, m0 = problem.noise(0.3, K, 3), np.random.default_rng(0).standard_normal(problem.shape)
    path = record(problem, setting, noise, m0=m0)
    recorder = record_run(problem, setting, noise, m0=m0, recorder=recorder_of(problem, setting, m0, reference=s))
    k = np.arange(K)
    reference, grad, nu = path.x[np.maximum(k - s, 0)], problem.grad, discounted(noise, a, a)
    g, error = grad(reference), path.m - grad(reference)
    called = (1 - a) * path.m + a * (grad(path.taken) + noise) - g
    expected = {
        "reference_norm": of.dual(g),
        "reference_error_norm": of.dual(error),
        "reference_lag_norm": of.dual(error - nu),
        "reference_bias": of.dual(grad(path.taken) - g),
        "reference_gap_norm": of.norm(path.taken - reference),
        "reference_age": abs(np.maximum(k - tau, 0) - np.maximum(k - s, 0)),
    }
    if nesterov:
        expected["called_reference_error_norm"] = of.dual(called)
        expected["called_reference_lag_norm"] = of.dual(called - (1 - a) * nu - a * noise)
    before = of.dual(path.m[:-1] - nu[:-1] - g[1:])
    column = recorder.rows.column
    np.testing.assert_allclose(column("reference_lag_norm_before")[1:], before, rtol=0, atol=10 * EQUAL)
    for name, value in expected.items():
        np.testing.assert_allclose(column(name), value, rtol=0, atol=EQUAL * (10 + np.abs(value).max()), err_msg=name)
    # the measured term carries the error of the run, for it is the proof's recursion
    total = column("measured_start") + column("measured_reference")
    assert (column("reference_lag_norm") <= total * (1 + 1e-12)).all()
    used = np.max(column("reference_smoothness"))
    assert used <= problem.L() * (1 + 1e-9) and (used > 0) == (s != tau)
    assert len(recorder._reference._points) == min(s + 1, K) and len(recorder._reference._taken) <= max(s - tau, 0)


@pytest.mark.parametrize("theorem", MEDIAN)
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_waterfall_rises_at_every_reference(theorem, sigma):
    setting = Setting("run", 2, 0.05, 0.3, 40, sigma, nesterov="nesterov" in theorem)
    for s in (0, 7):
        found = budget_of_setting(theorem, random_problem(4, 5, seed=1), setting, reference=s)
        assert found["violations"] == 0 and not found["not_recorded"]
        values = [level["value"] for level in found["waterfall"]][: 5 if sigma == 0 else 3]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))
        assert {"name": "s", "value": s, "how": "age of the reference that was recorded"} in found["constants"]
        assert found["settings"]["reference"] == s


@pytest.mark.parametrize("theorem", MEDIAN)
def test_nothing_is_violated_on_the_grid(theorem):
    """Delays, steps, momenta and noises, at the median age; on the round problem the bias of the reference is attained
    where s is not tau."""
    nesterov = "nesterov" in theorem
    for number, setting in enumerate(grid(12, most=3)):
        own = replace(setting, nesterov=nesterov)
        problem, x0 = ((random_problem(3, 4, seed=2), None), (round_problem(), FAR))[number % 2]
        found = budget_of_setting(theorem, problem, own, x0)
        assert found["violations"] == 0 and not found["not_recorded"]
    attained = Setting("round", 1, 0.1, 0.3, 12, nesterov=nesterov)
    found = budget_of_setting(theorem, round_problem(), attained, FAR, reference=3)
    bias = next(i for i in found["inequalities"] if i["name"] == "bias of the reference")
    assert found["violations"] == 0 and bias["max"] == pytest.approx(1, rel=1e-6)


@pytest.mark.mutation
def test_data_of_one_delay_more_and_another_reference_are_seen():
    setting = Setting("planted", 2, 0.1, 0.3, 24)
    found = budget_of_setting("delayed-lmo-median", round_problem(), setting, FAR, planted=1, reference=1)
    broken = {i["name"] for i in found["inequalities"] if i["violations"]}
    assert {"steps_to_the_reference", "bias of the reference"} <= broken
    recorder = recorder_of(round_problem(), setting, reference=5)
    recorder._reference.s = 4  # says 4 of what is 5 steps back
    record_run(round_problem(), setting, np.zeros((24, 3, 4)), FAR, recorder=recorder)
    recorder.reference = 4
    wrong = budget("delayed-lmo-median", recorder, facts_of_setting(setting))
    assert "to the reference" in {i["name"] for i in wrong["inequalities"] if i["violations"]}


def test_a_reference_that_is_too_old_gets_no_number():
    bound = get_bound("delayed-lmo-median")
    old, young = Setting("old", 2, 0.1, 0.01, 5), Setting("young", 2, 0.1, 0.012, 5)
    assert median_age(bound, 2, 0.01) == 70 and median_age(bound, 2, 0.012) == 59 < MOST
    found = budget_of_setting(bound.name, random_problem(2, 3), old)
    assert found["status"] == "not applicable" and "s = 70 steps at alpha = 0.01" in found["reasons"][0]
    assert "waterfall" not in found and too_old(get_bound("delayed-lmo"), facts_of_setting(old)) == []
    bounds = [get_bound(name) for name in OWN]
    assert reference_of(bounds, facts_of_setting(old)) is None
    assert reference_of(bounds, facts_of_setting(young)) == 59
    assert reference_of(bounds, facts_of_setting(replace(young, nesterov=True))) == 58
    assert reference_of([get_bound("delayed-lmo")], facts_of_setting(young)) is None


def test_bad_input():
    problem, setting = random_problem(2, 3), Setting("run", 1, 0.05, 0.3, 3)
    recorder = record_run(problem, setting, np.zeros((3, 2, 3)))
    with pytest.raises(InputError, match="recorder: reference = None"):
        budget("delayed-lmo-median", recorder, facts_of_setting(setting))
    for s in (-1, MOST, True, 1.0):
        with pytest.raises(InputError, match="reference: .* allowed is an integer from 0 to 63"):
            recorder_of(problem, setting, reference=s)
    for broken in ({"every": 2}, {"shifted": False}):
        with pytest.raises(InputError, match="reference: 1; allowed is None but with"):
            recorder_of(problem, setting, reference=1, **broken)
    with pytest.raises(InputError, match="theorem: 'delayed-lmo'"):
        median_age(get_bound("delayed-lmo"), 1, 0.5)
