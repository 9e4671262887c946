"""The joint test over many settings: what it accepts, what it refutes, and that its p-values are bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from empirics.errors import InputError
from empirics.loss_windows import EARLY, TAIL, JointTest, WindowLaw, grid, measure_pairs, window_law
from empirics.monte_carlo import FALSE_ALARM, Setting, measure, method_of
from empirics.problems.noisy_quadratic import NoisyQuadratic

STEPS = EARLY + TAIL


@pytest.fixture(scope="module")
def joint() -> JointTest:
    """The whole grid, 108 settings of the real code."""
    return JointTest(tuple(measure_pairs(grid(), 400, STEPS)))


def test_every_prediction_of_the_grid_together(joint):
    assert len(joint.pairs) >= 200 and joint.level <= 1e-6
    assert {(p.setting.tau, p.setting.beta, p.setting.correction) for p in joint.pairs} == {
        (tau, beta, correction)
        for tau in (1, 2, 4)
        for beta in (0.0, 0.9, 0.95)
        for correction in ("none", "error-feedback")
    }
    assert joint.passes, joint.worst
    assert joint.refuted == 0
    # The predicted standard errors are the real ones: 216 squares, two a setting and nearly independent.
    z = np.array([(p.measured - p.predicted) / p.error for p in joint.pairs])
    assert 0.8 < np.sqrt((z**2).mean()) < 1.2


@pytest.mark.mutation
@pytest.mark.parametrize("shift", [-1, 1])
def test_a_delay_off_by_one_is_refuted(joint, shift):
    """In most pairs by themselves; not in all, for at small steps of the corrected method a delay hardly matters."""
    wrong = joint.against(shift)
    assert not wrong.passes
    assert wrong.refuted > 0.6 * len(wrong.pairs)
    methods = {(p.setting.tau, p.setting.beta, p.setting.correction) for p in wrong.pairs}
    refuted = [p for p in wrong.pairs if p.p <= FALSE_ALARM / len(wrong.pairs)]
    assert {(p.setting.tau, p.setting.beta, p.setting.correction) for p in refuted} == methods


@pytest.mark.mutation
def test_five_percent_more_noise_is_refuted():
    """Where noise makes the loss; one setting is enough."""
    setting = Setting("noisy", 2, 0.9, 0.0, 0.03, NoisyQuadratic((0.3, 1.0), 0.315, 0.0))
    told = replace(setting, problem=replace(setting.problem, noise_std=0.3))
    wrong, right = [], []
    for pair in measure_pairs([setting], 4000, STEPS):
        right.append(pair)
        wrong.append(replace(pair, setting=told).against(method_of(told)))
    assert JointTest(tuple(right)).passes
    assert not JointTest(tuple(wrong)).passes


def test_the_law_of_a_window_is_the_theorys_moments():
    """Mean by `expected_loss`, variance of one step by the formula for one Gaussian, and both of a window by runs."""
    setting = grid(taus=(2,), betas=(0.9,), shares=(0.4,))[1]
    problem = setting.problem
    curve = method_of(setting).expected_loss(
        setting.eta, np.array(problem.curvatures), problem.noise_std, problem.x0, 50
    )
    assert window_law(setting, 11, 50).mean == pytest.approx(curve[11:].mean(), rel=1e-12)
    one = window_law(setting, 7, 7)
    loss, error = measure(setting, 50, 7, 0).expected_loss()
    assert one.mean == pytest.approx(loss[7], rel=1e-12)
    assert one.variance == pytest.approx(50 * error[7] ** 2, rel=1e-10)


def test_p_values_are_bounds_and_not_far_from_exact():
    """One squared normal: the exact tail is that of chi^2. Chernoff's bound is above it, by a factor of the order of
    the deviation in standard errors.
    """
    law, R = WindowLaw(0.0, np.array([0.7]), np.zeros(1)), 300
    for total in (150.0, 250.0, 330.0, 420.0, 500.0):
        exact = 2 * min(stats.chi2.sf(total, R), stats.chi2.cdf(total, R))
        bound = law.p_value(0.7 * total / R, R)
        assert exact <= bound <= 40 * exact, total
    shifted = WindowLaw(0.0, np.array([1.0]), np.array([4.0]))  # (z + 2)^2 - 4
    total = 300 * 5 + 6 * np.sqrt(300 * shifted.variance)
    exact = 2 * stats.ncx2.sf(total, 300, 1200)
    assert exact <= shifted.p_value(total / 300 - 4, 300) <= 40 * exact


def test_a_run_that_is_not_finite_is_refuted(joint):
    pair = joint.pairs[0]
    broken = replace(pair, measured=np.nan).against(method_of(pair.setting))
    assert broken.p == 0.0 and not JointTest((broken,)).passes


def test_summary(joint):
    data = joint.as_dict()
    assert data["pairs"] == len(data["rows"]) == len(joint.pairs)
    assert data["smallest_p"] == min(row["p"] for row in data["rows"])
    again = measure_pairs([joint.pairs[0].setting], 400, STEPS)
    assert again[0] == joint.pairs[0]


def test_bad_input():
    setting = grid()[0]
    with pytest.raises(InputError, match="replicas, steps: 1, 100"):
        measure_pairs([setting], 1, STEPS)
    with pytest.raises(InputError, match="allowed are >= 2 and >= 100"):
        measure_pairs([setting], 10, STEPS - 1)
    with pytest.raises(InputError, match="pairs, level: 0"):
        JointTest(())
    quiet = replace(setting, problem=replace(setting.problem, noise_std=0.0))
    with pytest.raises(InputError, match="noise_std: 0"):
        measure_pairs([quiet], 10, STEPS)
