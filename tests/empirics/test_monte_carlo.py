"""Monte Carlo of the real optimizer: exact tests, their power, and what they reject."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from empirics.errors import InputError
from empirics.monte_carlo import (
    FALSE_ALARM,
    Setting,
    growth,
    impulse_of,
    measure,
    method_of,
    noise_free_error,
    off_by_one,
    stationary_variances,
)
from empirics.problems.noisy_quadratic import NoisyQuadratic
from pipeline.optim.error_feedback import ErrorFeedback
from staleproof.sections.quadratic import SETTINGS
from theory.errors import InputError as TheoryInputError

PROBLEM = NoisyQuadratic((0.3, 1.0), 0.3, 3.0)
EMA = Setting("delay 1", 1, 0.9, 0.9, 0.5, PROBLEM)
CORRECTED = replace(EMA, name="corrected", correction="error-feedback")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_noise_free_path_is_the_recursion(setting):
    assert noise_free_error(setting, 40) < 1e-12


@pytest.mark.mutation
def test_noise_free_path_sees_the_sign_of_the_correction(monkeypatch):
    monkeypatch.setattr(ErrorFeedback, "coefficient", property(lambda self: -1))
    assert noise_free_error(CORRECTED, 40) > 1e-3


def test_p_values_are_uniform_under_the_theory():
    """Pooled over independent runs: their distribution is the one an exact test has."""
    p = np.array([measure(CORRECTED, 50, 4, seed).p_values()[-1, 0] for seed in range(300)])
    for column in p.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("setting", [EMA, CORRECTED], ids=lambda s: s.name)
def test_a_true_method_passes_and_off_by_one_is_rejected(setting):
    m = measure(setting, 4000, 30, 0)
    limit = FALSE_ALARM / m.p_values().size
    assert m.p_values().min() > limit
    for label, method in off_by_one(setting).items():
        seen, expected = m.standard_errors_from(method)
        assert seen > 20, label
        assert abs(seen - expected) < 6, label
        assert m.against(method).p_values().min() < limit, label


def test_recentred_moments_are_those_of_the_data():
    m = measure(EMA, 200, 5, 1)
    other = replace(EMA, tau=2)
    wrong = m.against(method_of(other))
    direct = measure(other, 2, 5, 1).mean  # the other method's prediction
    assert np.array_equal(wrong.mean, direct)
    sample_mean = m.mean + m.shift
    np.testing.assert_allclose(wrong.mean + wrong.shift, sample_mean, rtol=1e-12)
    spread = m.square - 200 * m.shift**2
    np.testing.assert_allclose(wrong.square - 200 * wrong.shift**2, spread, rtol=1e-8, atol=1e-8)


@pytest.mark.mutation
def test_a_wrong_noise_level_is_rejected():
    """The variance test alone sees 10 % too much noise in the gradient."""
    m = measure(EMA, 4000, 20, 0)
    quiet = replace(EMA, problem=replace(PROBLEM, noise_std=0.27))
    wrong = replace(m, setting=quiet, variance=quiet.predict(20)[1])
    assert wrong.p_values()[..., 1].min() < FALSE_ALARM / 80


def test_chi_square_tails_are_accurate():
    """scipy's tail against the regularised incomplete gamma function at 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    for R, x in ((20_000, 21_300.0), (20_000, 18_800.0), (4_000, 4_600.0)):
        with mpmath.workdps(50):
            upper = float(mpmath.gammainc(mpmath.mpf(R) / 2, mpmath.mpf(x) / 2, regularized=True))
        assert stats.chi2.sf(x, R) == pytest.approx(upper, rel=1e-6)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_real_code_turns_at_the_stability_limit(setting):
    method = method_of(setting)
    limit = method.stability_limit()
    below, above = growth(method, [0.97 * limit, 1.03 * limit], 1200)
    assert below < 1 < above
    assert below == pytest.approx(method.spectral_radius(0.97 * limit), rel=1e-9)
    assert above == pytest.approx(method.spectral_radius(1.03 * limit), rel=1e-9)


def test_nesterov_is_torchs():
    setting = Setting("Nesterov", 1, 0.9, 0.0, 0.03, PROBLEM, "error-feedback", nesterov=True)
    assert noise_free_error(setting, 40) < 1e-12
    m = measure(setting, 1000, 20, 0)
    assert m.p_values().min() > FALSE_ALARM / m.p_values().size
    without = m.against(method_of(replace(setting, nesterov=False)))
    assert without.p_values().min() < FALSE_ALARM / m.p_values().size


@pytest.mark.parametrize("setting", [EMA, CORRECTED], ids=lambda s: s.name)
def test_sampled_variance_is_the_summed_one(setting):
    """Two independent ways to the stationary variance of the real code."""
    lam = np.array(setting.problem.curvatures)
    scale = (setting.eta * setting.problem.noise_std) ** 2
    summed = impulse_of(setting, setting.eta * lam).variance() * scale
    m = measure(setting, 2000, 400, 0)
    sampled = m.square[-1] / m.replicas  # of a chi^2 with 2000 degrees of freedom: 3 % is one standard deviation
    np.testing.assert_allclose(sampled, summed, rtol=0.16)
    stated = stationary_variances(method_of(setting), setting.eta * lam) * scale
    np.testing.assert_allclose(summed, stated, rtol=1e-10)


def test_a_diverged_run_is_rejected_not_hidden():
    m = measure(EMA, 50, 5, 0)
    broken = replace(m, shift=np.full_like(m.shift, np.nan))
    assert broken.p_values().min() == 0.0


def test_the_start_is_not_random_and_has_no_standard_error():
    m = measure(SETTINGS[0], 50, 3, seed=0)
    assert m.loss_error[0] == 0.0
    assert (m.loss_error[1:] > 0).all()
    assert m.loss[0] == pytest.approx(m.expected_loss()[0][0], rel=1e-12)


def test_same_seed_same_numbers():
    assert np.array_equal(measure(EMA, 20, 5, 7).shift, measure(EMA, 20, 5, 7).shift)
    assert not np.array_equal(measure(EMA, 20, 5, 7).shift, measure(EMA, 20, 5, 8).shift)
    state = torch.random.get_rng_state()
    measure(EMA, 20, 5, 7)
    assert torch.equal(state, torch.random.get_rng_state())  # the global generator is left alone


def test_bad_input():
    with pytest.raises(InputError, match="replicas"):
        measure(EMA, 1, 5, 0)
    with pytest.raises(InputError, match="eta"):
        replace(EMA, eta=0.0)
    with pytest.raises(InputError, match="correction: 'weight-prediction'"):
        replace(EMA, correction="weight-prediction")
    with pytest.raises(InputError, match="nesterov: True"):
        replace(EMA, nesterov=True)
    with pytest.raises(InputError, match="method: .*start='zero'"):
        growth(replace(method_of(EMA), start="zero"), [0.1], 40)
    with pytest.raises(TheoryInputError, match="tau"):
        replace(EMA, tau=-1)
    with pytest.raises(InputError, match="noise_std"):
        measure(replace(EMA, problem=replace(PROBLEM, noise_std=0.0)), 5, 3, 0).p_values()
