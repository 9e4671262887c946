"""Error budgets of runs with exact constants: nothing certified is violated, what is planted is seen, and a run that a
theorem is not about gets no number."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from empirics.applicability import CHECKS, GRANTED, reasons
from empirics.budget import OWN, Constants, budget
from empirics.budget_over_seeds import average_over_runs
from empirics.errors import InputError
from empirics.least_squares_budget import (
    FAR,
    SIGMAS,
    TAUS,
    budget_of_setting,
    constants_of_setting,
    facts_of_setting,
    grid,
    round_problem,
)
from empirics.least_squares_run import record_run, recorder_of
from empirics.lmo_path import Setting, record
from empirics.pathwise import ROUND_OFF, inequalities_of, realised, utilisation
from empirics.problems.matrix_least_squares import random_problem
from empirics.reductions import Rows
from theory.assumptions import ASSUMPTIONS
from theory.registry import get_bound


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_no_certified_inequality_is_violated(tau, sigma):
    """4 delays x 3 steps x 4 momenta x 3 noises, all steps; and the round problem uses the delay's lemma in full."""
    most = 0.0
    problems = ((random_problem(3, 4, seed=2), None), (round_problem(), FAR))
    for setting, (problem, x0) in itertools.product(grid(16, [tau], [sigma]), problems):
        found = budget_of_setting("delayed-lmo", problem, setting, x0)
        assert found["violations"] == 0 and not found["not_recorded"]
        assert {i["kind"] for i in found["inequalities"]} == {"certified", "equality", "definition"}
        assert {"delay", "momentum-error", "descent", "average"} < {i["name"] for i in found["inequalities"]}
        # the same named lemmas from the whole path, by the other code
        values = realised(record(problem, setting, problem.noise(sigma, 16, 0), x0))
        for name, inequality in inequalities_of(setting).items():
            expected = utilisation(inequality, values)
            assert expected.max() <= 1 + ROUND_OFF
            mine = next(i for i in found["inequalities"] if i["name"] == name)["max"]
            # Round-off is taken off the left side in both, a little more here.
            assert mine == pytest.approx(expected.max(), rel=1e-6, abs=1e-9)
        most = max(most, next(i["max"] for i in found["inequalities"] if i["name"] == "delay"))
    assert most >= 0.95 if tau else most == 0


def test_the_grid_is_all_settings_once():
    whole = grid(16)
    assert len(set(whole)) == len(whole) == 4 * 3 * 4 * 3 and {s.tau for s in whole} == {0, 1, 2, 4}
    assert len(set(grid(16, most=10))) == 10 and set(grid(16, most=10)) < set(whole)


@pytest.mark.mutation
@pytest.mark.parametrize("tau", TAUS)
def test_data_of_one_delay_more_break_the_lemma(tau):
    setting = Setting("planted", tau, 0.1, 0.3, 24)
    found = budget_of_setting("delayed-lmo", round_problem(), setting, FAR, planted=1)
    lemma = next(i for i in found["inequalities"] if i["name"] == "delay")
    assert lemma["violations"] > 0 and lemma["max"] == pytest.approx((tau + 1) / tau if tau else math.inf, rel=1e-6)
    fixed = next(i for i in found["inequalities"] if i["name"] == "fixed_delay")
    assert fixed["violations"] == 24 - 1 - tau  # x_{(k-tau-1)+} is x_{(k-tau)+} while k <= tau
    path = realised(record(round_problem(), replace(setting, tau=tau + 1), np.zeros((24, 3, 4)), FAR))
    assert utilisation(inequalities_of(setting)["delay"], path | {"tau": float(tau)}).max() > 1.2


@pytest.mark.mutation
def test_a_smaller_constant_is_seen():
    problem, setting = round_problem(), Setting("run", 2, 0.1, 0.3, 24)
    recorder = record_run(problem, setting, np.zeros((24, 3, 4)), FAR)
    small = Constants({"L": 0.95 * problem.L()}, {}, frozenset(["L"]))
    found = budget("delayed-lmo", recorder, facts_of_setting(setting), small)
    assert {"delay", "smoothness change", "integral over the segment"} <= {
        i["name"] for i in found["inequalities"] if i["violations"]
    }


@pytest.mark.parametrize("theorem", OWN)
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_waterfall_rises_from_the_measured_average(theorem, sigma):
    corrected = theorem.startswith("error-feedback")
    tau = 3 if theorem == "error-feedback-any-delay" else 1 if corrected else 2
    correction, nesterov = "error-feedback" if corrected else "none", "nesterov" in theorem
    setting = Setting("run", tau, 0.05, 0.3, 40, sigma, correction, nesterov=nesterov)
    found = budget_of_setting(theorem, random_problem(4, 5, seed=1), setting)
    assert found["violations"] == 0 and (not nesterov or not found["not_recorded"])
    values = [level["value"] for level in found["waterfall"]]
    # The first three are pathwise; with noise the others hold in expectation.
    rising = values if sigma == 0 else values[:3]
    assert all(a <= b * (1 + 1e-12) for a, b in zip(rising, rising[1:], strict=False))
    editions = found["editions"]
    kind = "certified" if sigma == 0 else "report only"
    assert editions["worst-case"]["kind"] == kind
    assert editions["trajectory"]["value"] <= editions["worst-case"]["value"]
    assert set(editions["measured"]["terms"]) == set(editions["worst-case"]["terms"]) == set(get_bound(theorem).terms)
    assert editions["worst-case"]["value"] == pytest.approx(values[-1])
    assert sum(editions["measured"]["terms"].values()) == pytest.approx(values[2])


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_smoothness_of_the_trajectory_carries_every_pathwise_step(sigma):
    problem, setting = random_problem(4, 5, seed=1), Setting("run", 2, 0.05, 0.3, 40, sigma)
    recorder = record_run(problem, setting, problem.noise(sigma, 40, 0))
    found = budget("delayed-lmo", recorder, facts_of_setting(setting))
    assert found["violations"] == 0
    assert {i["kind"] == "by construction" for i in found["inequalities"] if "L" in i["statement"]} == {True}
    assert max(i["max"] for i in found["inequalities"] if "L" in i["statement"]) > 0.99
    worst = found["editions"]["worst-case"]
    assert worst["kind"] == "not applicable" and "L" in worst["reason"] and worst["value"] is None


def test_same_seed_same_numbers():
    problem, setting = random_problem(3, 4), Setting("run", 2, 0.05, 0.3, 20, 0.3)
    assert budget_of_setting("delayed-lmo", problem, setting) == budget_of_setting("delayed-lmo", problem, setting)


BROKEN = [
    ({"optimizer": "adamw", "groups": ({"betas": (0.9, 0.95), "lr": 1e-3},)}, "delayed-lmo", "adamw has groups"),
    ({"weight_decay": 0.1}, "delayed-lmo", "weight decay of 0.1"),
    ({"schedule": "lr-discount"}, "delayed-lmo", "step size is not constant"),
    ({"clip": 1.0}, "delayed-lmo", "clipped at 1"),
    ({"delays": frozenset([0, 1])}, "delayed-lmo", "several delays: 0, 1"),
    ({"synchronous_steps": 5}, "delayed-lmo", "first 5 steps have delay 0"),
    ({"correction": "error-feedback"}, "delayed-lmo", "which the theorem does not know"),
    ({"correction": "none"}, "error-feedback", "the correction is none"),
    ({"correction": "error-feedback", "coefficient": 0.5}, "error-feedback", "coefficient is 0.5"),
    ({"dropout": 0.1}, "delayed-lmo", "dropout"),
    ({"rounded": True}, "delayed-lmo", "rounded weights"),
    ({"skipped": 2}, "delayed-lmo", "2 steps were left out"),
    ({"groups": ({"norm": "spectral", "polar": "newton-schulz"},)}, "delayed-lmo", "Newton-Schulz"),
    ({"groups": ({"norm": "sign", "nesterov": True},)}, "delayed-lmo", "Nesterov"),
    ({"groups": ({"norm": "sign", "nesterov": True},)}, "delayed-lmo-inexact", "Nesterov"),
    ({"groups": ({"norm": "sign", "lr": 0.1}, {"norm": "sign", "lr": 0.2})}, "delayed-lmo", "lr is not the same"),
]


@pytest.mark.parametrize(("change", "theorem", "words"), BROKEN)
def test_a_broken_assumption_is_named_and_gets_no_number(change, theorem, words):
    setting = Setting("run", 1, 0.05, 0.3, 5)
    problem = random_problem(2, 3)
    recorder = record_run(problem, setting, np.zeros((5, 2, 3)))
    broken = replace(facts_of_setting(setting), **change)
    found = budget(theorem, recorder, broken, constants_of_setting(problem, setting))
    assert found["status"] == "not applicable"
    assert any(words in reason for reason in found["reasons"])
    assert not {"waterfall", "editions", "inequalities"} & set(found)


def test_every_assumption_is_granted_checked_or_refused():
    assert set(CHECKS) | GRANTED <= set(ASSUMPTIONS)
    run = facts_of_setting(Setting("run", 1, 0.05, 0.3, 5))
    for name in ("star-convex", "delayed-lmo-tuned", "rpd-paper", "kovalev"):
        bound = next((b for b in [*map(get_bound, [n for n in _names() if name in n])]), None)
        assert bound is not None and reasons(bound, run)


def _names():
    from theory.registry import BOUNDS

    return list(BOUNDS)


def test_a_run_that_diverged_has_no_average():
    problem, setting = random_problem(2, 3), Setting("run", 1, 0.05, 0.3, 9)
    noise = np.zeros((9, 2, 3))
    noise[4] = 1e308
    noise[5] = np.inf
    recorder = record_run(problem, setting, noise)
    found = budget("delayed-lmo", recorder, facts_of_setting(setting), constants_of_setting(problem, setting))
    assert found["status"] == "diverged" and "step" in found["reasons"][0] and "waterfall" not in found
    good = [budget_of_setting("delayed-lmo", problem, replace(setting, sigma=0.1), seed=s) for s in range(3)]
    over = average_over_runs([*good[:2], found, good[2]], [0, 1, 7, 2])
    assert over["runs"] == 3 and over["left_out"][0]["seed"] == 7
    assert over["measured"]["value"] == pytest.approx(np.mean([b["waterfall"][0]["value"] for b in good]))
    with pytest.raises(InputError, match="at least 2"):
        average_over_runs([good[0], found], [0, 1])


def test_a_long_run_is_looked_at_evenly_and_summed_whole():
    problem, setting = random_problem(2, 3), Setting("run", 1, 0.05, 0.3, 100, 0.3)
    noise = problem.noise(0.3, 100, 0)
    few = recorder_of(problem, setting)
    few.rows = Rows(10)
    whole = budget("delayed-lmo", record_run(problem, setting, noise), facts_of_setting(setting))
    thin = budget("delayed-lmo", record_run(problem, setting, noise, recorder=few), facts_of_setting(setting))
    assert (whole["stride"], thin["stride"], thin["steps"]) == (1, 16, 100)
    for mine, theirs in zip(thin["waterfall"], whole["waterfall"], strict=True):
        assert mine["value"] == (None if theirs["value"] is None else pytest.approx(theirs["value"], rel=1e-12))
    assert [c["value"] for c in thin["constants"]] == pytest.approx([c["value"] for c in whole["constants"]])


def test_bad_input():
    problem, setting = random_problem(2, 3), Setting("run", 1, 0.05, 0.3, 9)
    recorder = record_run(problem, setting, np.zeros((9, 2, 3)), recorder=recorder_of(problem, setting, every=3))
    with pytest.raises(InputError, match="every step"):
        budget("delayed-lmo", recorder, facts_of_setting(setting))
    own = replace(facts_of_setting(setting), groups=({"norm": "spectral", "nesterov": True, "lr": 0.05, "alpha": 0.3},))
    with pytest.raises(InputError, match="nesterov = False"):
        budget("delayed-lmo-nesterov", record_run(problem, setting, np.zeros((9, 2, 3))), own)
    with pytest.raises(InputError, match="theorem: 'other'"):
        budget("other", recorder, facts_of_setting(setting))
    with pytest.raises(InputError, match="constants: L"):
        Constants({"L": math.nan})
