"""The recorder against the definitions written out along the whole path, and what it keeps of a long run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from empirics.batched_norms import stack_norms
from empirics.errors import InputError
from empirics.estimators.model_norm import ModelNorm
from empirics.least_squares_run import record_run, recorder_of
from empirics.lmo_path import Setting, record
from empirics.lmo_quantities import complete_row
from empirics.lmo_recorder import LMORecorder
from empirics.norms import get_norm
from empirics.pathwise import discounted, realised
from empirics.problems.matrix_least_squares import random_problem
from empirics.reductions import Rows
from empirics.virtual_iterate import Feedback
from pipeline.optim.layer_norms import NORMS, layer_dual, layer_norm

CASES = [
    (0, "none", "extrapolate"),
    (2, "none", "extrapolate"),
    (1, "error-feedback", "extrapolate"),
    (3, "error-feedback", "extrapolate"),
    (3, "error-feedback", "telescoped"),
]
# Float64: a dozen operations on numbers of the size of the largest of a column, singular values included.
EQUAL = 1e-13


def both(tau, correction, form, norm="spectral", K=25, sigma=0.3, nesterov=False):
    problem = random_problem(4, 5, seed=1)
    setting = Setting("run", tau, 0.05, 0.3, K, sigma, correction, form, norm, nesterov)
    noise = problem.noise(sigma, setting.updates, 3)
    m0 = np.random.default_rng(0).standard_normal(problem.shape)
    return record(problem, setting, noise, m0=m0), record_run(problem, setting, noise, m0=m0)


def naive(path) -> dict[str, np.ndarray]:
    """Every vector that the proofs speak of, as a stack over the steps, from the definitions."""
    s, norm, grad = path.setting, get_norm(path.setting.norm), path.problem.grad
    first, N = s.updates - s.K, s.updates
    z, z_next, taken = path.y[first:N], path.y[first + 1 : N + 1], path.taken[first:]
    m, nu = path.m[first:], discounted(path.noise, s.alpha, s.alpha)[first:]
    step, e = z_next - z, m - grad(z)
    out = {
        "momentum_norm": norm.dual(m),
        "lag_norm": norm.dual(e - nu),
        "segment_dual": norm.dual(grad(z_next) - grad(z)),
        "segment_inner": ((grad(z_next) - grad(z)) * step).sum((1, 2)),
        "segment_mean": ((grad(z_next) - grad(z)) * step).sum((1, 2)) / 2,  # of a quadratic
        "step_norm": norm.norm(step),
        "direction_norm": norm.norm(path.d[first:]),
        "gap_norm": norm.norm(taken - z),
        "inner_grad": (grad(z) * path.d[first:]).sum((1, 2)),
        "inner_momentum": (m * path.d[first:]).sum((1, 2)),
        "inner_error": (e * path.d[first:]).sum((1, 2)),
        "noise_frobenius": np.sqrt((nu**2).sum((1, 2))),
        "sample_square": (path.noise[first:] ** 2).sum((1, 2)),
        "taken_norm": norm.dual(grad(taken)),
        "shifted_error_norm": norm.dual(m - grad(taken)),
        "shifted_lag_norm": norm.dual(m - grad(taken) - nu),
    }
    if first:
        out |= {
            "return_gap_norm": norm.norm(path.x[1:N] - z),
            "return_change": norm.dual(grad(path.x[1:N]) - grad(z)),
            "grad_norm_at_x": norm.dual(grad(path.x[1:N])),
        }
    return out


@pytest.mark.parametrize(("tau", "correction", "form"), CASES)
@pytest.mark.parametrize("norm", ["spectral", "sign", "frobenius"])
def test_recorded_is_what_the_definitions_say(tau, correction, form, norm):
    path, recorder = both(tau, correction, form, norm)
    values = {name: v for name, v in realised(path).items() if isinstance(v, np.ndarray)}
    for name, expected in (values | naive(path)).items():
        # Differences of numbers of size 1 may cancel.
        np.testing.assert_allclose(
            recorder.rows.column(name), expected, rtol=0, atol=EQUAL * (10 + np.abs(expected).max()), err_msg=name
        )
    assert recorder.once["E0"] == pytest.approx(realised(path)["E0"], rel=EQUAL)


@pytest.mark.parametrize("norm", ["spectral", "sign"])
def test_where_nesterovs_oracle_is_called_is_what_the_definitions_say(norm):
    """c_k = (1-alpha) m_{k+1} + alpha g_k from the path; d_k is its direction, and not that of m_{k+1}."""
    path, recorder = both(2, "none", "extrapolate", norm, sigma=3.0, nesterov=True)
    a, grad, of = path.setting.alpha, path.problem.grad, get_norm(norm)
    c = (1 - a) * path.m + a * (grad(path.taken) + path.noise)
    q = (1 - a) * discounted(path.noise, a, a) + a * path.noise
    error, shifted, column = c - grad(path.x[:-1]), c - grad(path.taken), recorder.rows.column
    vectors = {"": c, "error_": error, "shifted_error_": shifted, "noise_": q}
    vectors |= {"lag_": error - q, "shifted_lag_": shifted - q}
    expected = {f"called_{name}norm": of.dual(v) for name, v in vectors.items()}
    expected |= {"inner_called": (c * path.d).sum((1, 2)), "inner_called_error": (error * path.d).sum((1, 2))}
    expected |= {"called_noise_square": (q**2).sum((1, 2)), "called_noise_frobenius": np.sqrt((q**2).sum((1, 2)))}
    for name, value in (expected | naive(path)).items():
        np.testing.assert_allclose(column(name), value, rtol=0, atol=EQUAL * (10 + np.abs(value).max()), err_msg=name)
    assert column("oracle_quality") == pytest.approx(1, rel=1e-9)
    assert (column("inner_momentum") < 0.99 * column("momentum_norm")).any()


@pytest.mark.parametrize(("tau", "correction", "form"), CASES)
def test_measured_terms_are_lemma_c_with_norms_of_the_run(tau, correction, form):
    path, recorder = both(tau, correction, form)
    s, column = path.setting, recorder.rows.column
    first, b = s.updates - s.K, 1 - s.alpha
    for i in range(s.K):
        k = first + i
        lag = sum(b ** (i - j + 1) * column("segment_dual")[j - 1] for j in range(1, i + 1))
        delay = s.alpha * sum(b ** (i - j) * column("delay_bias")[j] for j in range(i + 1))
        assert column("measured_lag")[i] == pytest.approx(lag, rel=1e-12)
        assert column("measured_delay")[i] == pytest.approx(delay, rel=1e-12)
        total = lag + delay + column("measured_start")[i] + column("noise_norm")[i]
        assert column("error_norm")[i] <= total * (1 + 1e-12)
        assert column("k")[i] == k


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 1.0),  # 0.2/0.2 over the step
        ({"delay_bias": 0.6}, 3.0),
        ({"taken_change": 0.8}, 4.0),
        ({"return_change": 1.0}, 5.0),
        ({"segment_inner": 0.24}, 6.0),  # over 0.2^2
        ({"f_next": 1.09}, 7.0),  # 2 (1.09 - 1 + 0.1 * 0.5) over 0.2^2
        ({"delay_bias": 9.0, "gap_norm": 1e-8}, 1.0),  # a distance of round-off
    ],
)
def test_the_smoothness_that_a_step_used_is_the_largest_ratio_of_all(change, expected):
    row = dict.fromkeys(("segment_dual", "delay_bias", "taken_change", "return_change"), 0.2)
    row |= dict.fromkeys(("step_norm", "gap_norm", "taken_step_norm", "return_gap_norm"), 0.2)
    row |= {"f_now": 1.0, "f_next": 0.95, "inner_grad": 0.5, "segment_inner": 0.0, "inner_momentum": 1.0}
    row |= {"momentum_norm": 1.25} | change
    complete_row(row, 0.1, corrected=True)
    assert row["smoothness_used"] == pytest.approx(expected, rel=1e-9) and row["oracle_quality"] == 0.8


@pytest.mark.mutation
def test_a_missing_correction_is_seen():
    """With the coefficient of another delay the virtual iterate is another point."""
    problem, setting = random_problem(4, 5, seed=1), Setting("run", 3, 0.05, 0.3, 10, 0.0, "error-feedback")
    noise = problem.noise(0.0, setting.updates, 0)
    wrong = replace(recorder_of(problem, setting), feedback=Feedback(2.0, 1))
    right = record_run(problem, setting, noise)
    gap = record_run(problem, setting, noise, recorder=wrong).rows.column("f_now") - right.rows.column("f_now")
    assert np.abs(gap).max() > 1e-3


@pytest.mark.mutation
def test_weights_that_never_were_have_an_age_that_no_step_has():
    problem, setting = random_problem(2, 3, seed=1), Setting("run", 1, 0.05, 0.3, 6)
    recorder = recorder_of(problem, setting)
    observe = recorder.observe

    def moved(k, x, x_next, read, *rest):
        observe(k, x, x_next, {name: value + 1e-9 * (k == 4) for name, value in read.items()}, *rest)

    recorder.observe = moved
    record_run(problem, setting, np.zeros((6, 2, 3)), recorder=recorder)
    assert recorder.rows.column("age").tolist() == [0, 1, 1, 1, 5, 1]


def test_every_tenth_step_has_no_noise_and_no_step_before():
    problem, setting = random_problem(4, 5, seed=1), Setting("run", 2, 0.05, 0.3, 31, 0.3)
    noise = problem.noise(0.3, 31, 3)
    sampled = record_run(problem, setting, noise, recorder=recorder_of(problem, setting, every=10)).rows
    whole = record_run(problem, setting, noise).rows
    assert sampled.column("k").tolist() == [0, 10, 20, 30]
    for name in ("grad_norm", "error_norm", "delay_bias", "f_next", "inner_grad"):
        np.testing.assert_allclose(sampled.column(name), whole.column(name)[::10], rtol=1e-12, atol=1e-13)
    assert not {"noise_norm", "measured_lag", "lag_norm_before"} & set(sampled.totals)


def test_blocks_do_not_matter(monkeypatch):
    _, whole = both(2, "none", "extrapolate")
    monkeypatch.setattr("empirics.lmo_recorder.BLOCK", 1)
    _, single = both(2, "none", "extrapolate")
    for name in whole.rows.totals:
        np.testing.assert_allclose(whole.rows.column(name), single.rows.column(name), rtol=1e-12, atol=1e-13)


def test_memory_is_bounded_and_sums_stay_exact():
    problem = random_problem(2, 3, seed=1)
    setting = Setting("long", 2, 0.01, 0.3, 500, 0.3)
    noise = problem.noise(0.3, 500, 3)
    few = recorder_of(problem, setting)
    few.capacity, few.rows = 16, Rows(16)
    record_run(problem, setting, noise, recorder=few)
    whole = record_run(problem, setting, noise)
    assert len(few.rows.kept) <= 16 and few.rows.stride == 32
    np.testing.assert_array_equal(few.rows.column("k"), np.arange(0, 500, 32))
    for name, total in whole.rows.totals.items():
        mine = few.rows.totals[name]
        assert (mine.n, mine.low, mine.high) == (total.n, total.low, total.high)
        assert mine.sum == pytest.approx(total.sum, rel=1e-13, abs=1e-13)
    assert len(few._known) <= 2 * setting.tau + 3 and len(few._block) == 0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(3, 4), (5, 2), (4, 3, 2)])
def test_norms_of_a_stack_are_those_of_each(norm, shape):
    x = torch.randn(6, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[2] = 0
    for dual, one in ((True, layer_dual), (False, layer_norm)):
        expected = [one(matrix, norm) for matrix in x]
        assert stack_norms(x, norm, dual).tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("norm", NORMS)
def test_what_is_not_finite_is_not_a_number(norm):
    x = torch.ones(3, 2, 2)
    x[1, 0, 0] = torch.nan
    values = stack_norms(x, norm, True).tolist()
    assert values[1] != values[1] and values[0] == values[2] == values[0]


def test_bad_input():
    with pytest.raises(InputError, match="every"):
        LMORecorder(ModelNorm({}), 0.1, 0.5, every=0)
    with pytest.raises(InputError, match="alpha"):
        LMORecorder(ModelNorm({}), 0.1, 0.0)
    with pytest.raises(InputError, match="capacity"):
        Rows(1)
