"""Runs on matrix least squares: the steps of the proofs hold, and break when the optimizer or a constant is broken."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Rational

from empirics import assembly, enumeration, tight
from empirics.errors import InputError
from empirics.lmo_path import Setting, record
from empirics.pathwise import ROUND_OFF, identity_errors, inequalities_of, realised, utilisation
from empirics.problems.matrix_least_squares import random_problem
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from theory.lmo import PATHWISE
from theory.registry import BOUNDS
from theory.symbols import QUANTITIES

CASES = [
    (0, "none", "extrapolate"),
    (2, "none", "extrapolate"),
    (1, "error-feedback", "extrapolate"),
    (3, "error-feedback", "extrapolate"),
    (3, "error-feedback", "telescoped"),
]


def path_of(tau, correction, form, norm="spectral", sigma=0.3, K=25):
    problem = random_problem(4, 5, seed=1)
    setting = Setting("run", tau, 0.1, 0.3, K, sigma, correction, form, norm)
    return record(problem, setting, problem.noise(sigma, setting.updates, 3))


@pytest.mark.parametrize(("tau", "correction", "form"), CASES)
@pytest.mark.parametrize("norm", ["spectral", "sign", "frobenius"])
def test_every_step_holds_on_a_run(tau, correction, form, norm):
    path = path_of(tau, correction, form, norm)
    values = realised(path)
    for inequality in inequalities_of(path.setting).values():
        used = utilisation(inequality, values)
        assert used.max() <= 1 + ROUND_OFF, inequality.name
        assert used.size in (1, path.setting.K)
    assert max(identity_errors(path).values()) < 1e-13


def test_literal_transcription_of_the_method():
    """x, m and y from the definitions, with numpy's polar factor, against the real code."""
    tau, K = 3, 20
    path = path_of(tau, "error-feedback", "telescoped", K=K)
    problem, s = path.problem, path.setting
    x, U, m = [np.zeros(problem.shape)], [], np.zeros(problem.shape)
    for k in range(s.updates):
        g = problem.grad(x[max(k - tau, 0)]) + path.noise[k]
        m = (1 - s.alpha) * m + s.alpha * g
        left, _, right = np.linalg.svd(m, full_matrices=False)
        U.append(-s.eta * left @ right)
        x.append(x[-1] + U[k] + (U[k] - U[max(k - tau, 0)]))
        y = x[-1] - sum(U[max(k + 1 - i, 0)] for i in range(1, tau + 1))
        np.testing.assert_allclose(path.x[k + 1], x[-1], rtol=0, atol=1e-10)
        np.testing.assert_allclose(path.m[k], m, rtol=0, atol=1e-10)
        np.testing.assert_allclose(path.y[k + 1], y, rtol=0, atol=1e-10)


@pytest.mark.mutation
def test_a_delay_off_by_one_is_seen(monkeypatch):
    init = Delayed.__init__
    monkeypatch.setattr(Delayed, "__init__", lambda self, base, tau, *a: init(self, base, max(tau - 1, 0), *a))
    assert identity_errors(path_of(2, "none", "extrapolate"))["recursion"] > 1e-3


@pytest.mark.mutation
@pytest.mark.parametrize(("tau", "correction", "form"), CASES[2:4])
def test_the_sign_of_the_correction_is_seen(monkeypatch, tau, correction, form):
    monkeypatch.setattr(ErrorFeedback, "coefficient", property(lambda self: -self.tau))
    assert identity_errors(path_of(tau, correction, form))["step"] > 1e-3


def test_a_zero_gradient_start_is_finite():
    """f already at a minimum, no noise: momentum stays zero, nothing moves, no division by zero."""
    problem = random_problem(2, 2, seed=0)
    flat = type(problem)(problem.A, problem.B, np.zeros_like(problem.Y))
    setting = Setting("still", 1, 0.1, 0.5, 5, 0.0, "error-feedback")
    path = record(flat, setting, np.zeros((setting.updates, 2, 2)))
    assert not path.x.any()
    for inequality in inequalities_of(setting).values():
        assert utilisation(inequality, realised(path)).max() <= 1


@pytest.mark.parametrize("name", PATHWISE)
def test_each_lemma_is_attained_and_each_mutant_refuted(name):
    results = tight.lemma_results(name)
    assert results
    for result in results:
        assert result.least == pytest.approx(1.0, abs=1e-6)
        assert result.utilisation <= 1 + ROUND_OFF
        assert result.refuted, result


def test_the_attained_theorems_and_their_mutants():
    results = tight.theorem_results()
    assert {result.lemma for result in results} == {"delayed-lmo-shifted", "delayed-lmo-momentum"}
    for result in results:
        assert 0.995 < result.utilisation <= 1 + ROUND_OFF
        assert result.refuted, result


@pytest.mark.parametrize("tau", [0, 1, 3])
def test_orbit_has_its_period_and_its_gradient(tau):
    points, gradients = tight.orbit(tau, eta=0.2)
    assert len(points) == 4 * tau + 2 == len({tuple(p) for p in points})
    np.testing.assert_allclose(np.abs(gradients).max(axis=1), 0.2 * (tau + 0.5), rtol=1e-12)
    assert np.abs(np.diff(points, axis=0)).sum(axis=1) == pytest.approx(0.2)


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("lemma", "term", "factor"),
    [
        ("descent", "momentum_error", Rational(19, 20)),
        ("descent", "step", Rational(9, 10)),
        ("average", "momentum_error", Rational(19, 20)),
        ("ef-momentum-error", "start_shift", Rational(9, 10)),
        ("ef-delay", "delay", Rational(9, 10)),
        ("momentum-error", "noise", Rational(9, 10)),
    ],
)
def test_a_mutated_lemma_is_violated_where_it_stands(monkeypatch, lemma, term, factor):
    monkeypatch.setitem(PATHWISE, lemma, PATHWISE[lemma].scaled(term, factor))
    assert max(result.utilisation for result in tight.lemma_results(lemma)) > 1.001


@pytest.mark.mutation
@pytest.mark.parametrize("lemma", ["delay", "momentum-error"])
def test_tau_off_by_one_in_a_lemma_is_violated(monkeypatch, lemma):
    tau = QUANTITIES["tau"].symbol
    monkeypatch.setitem(PATHWISE, lemma, PATHWISE[lemma].substituted("tau", tau - 1))
    assert max(result.utilisation for result in tight.lemma_results(lemma)) > 1.001
    monkeypatch.undo()
    monkeypatch.setitem(PATHWISE, lemma, PATHWISE[lemma].substituted("tau", tau + 1))
    assert min(result.least for result in tight.lemma_results(lemma)) < 0.99


def test_bounds_are_put_together_from_the_lemmas():
    for entry in assembly.assemble_all():
        assert entry.relative_error < 1e-13, entry


@pytest.mark.mutation
@pytest.mark.parametrize("name", assembly.NAMES)
@pytest.mark.parametrize("term", ["initial", "step", "momentum_lag", "delay", "noise", "start"])
def test_a_mutated_bound_differs_from_its_lemmas(monkeypatch, name, term):
    bound = BOUNDS[name]
    terms = {**bound.terms, term: Rational(19, 20) * bound.terms[term]}
    monkeypatch.setitem(BOUNDS, name, type(bound)(**{**vars(bound), "terms": terms}))
    assert max(entry.relative_error for entry in assembly.assemble_all()) > 1e-4


def test_enumeration_is_the_expectation():
    """Mean over all 2^N paths equals a recursion over single runs recorded one by one; theorems hold."""
    problem = random_problem(2, 3, seed=1)
    setting = Setting("all", 1, 0.3, 0.4, 3, 1.0, "error-feedback")
    found = enumeration.enumerate_paths(problem, setting, seed=4)
    M = problem.noise_matrices(1.0, 1, 4)[0]
    averages, drifts = [], []
    for signs in enumeration.sign_sequences(setting.updates):
        values = realised(record(problem, setting, signs[:, None, None] * M))
        averages.append(values["mean_grad_norm"])
        drifts.append(values["dbar"])
    at_y = next(e for e in found if e.bound.name == "error-feedback")
    assert at_y.paths == 16
    assert at_y.measured == pytest.approx(np.mean(averages), rel=1e-12)
    assert at_y.values["dbar"] == pytest.approx(np.mean(drifts), rel=1e-10)
    assert all(e.utilisation <= 1 for e in found)


def test_noise_is_paid_for_in_the_bound():
    """Without its noise term the momentum's theorem is violated in expectation: the check can fail."""
    problem = random_problem(2, 3, seed=1)
    setting = Setting("noise only", 0, 1e-3, 1.0, 4, 50.0)
    minimiser = np.linalg.pinv(problem.A) @ problem.Y @ np.linalg.pinv(problem.B)
    found = enumeration.enumerate_paths(problem, setting, x0=minimiser)
    momentum = next(e for e in found if e.bound.name == "delayed-lmo-momentum")
    assert momentum.utilisation <= 1
    assert momentum.measured > momentum.right - 0.1 * momentum.terms["noise"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tau": -1}, "tau"),
        ({"tau": 0, "correction": "error-feedback"}, "tau"),
        ({"tau": 1.0}, "tau"),
        ({"K": 0}, "K"),
        ({"eta": 0.0}, "eta"),
        ({"alpha": 1.1}, "alpha"),
        ({"sigma": -0.1}, "sigma"),
        ({"correction": "other"}, "correction"),
        ({"form": "other"}, "form"),
        ({"norm": "other"}, "norm"),
    ],
)
def test_bad_settings(change, field):
    with pytest.raises(InputError, match=field):
        Setting(**({"name": "a", "tau": 1, "eta": 0.1, "alpha": 0.5, "K": 3} | change))


def test_bad_arguments():
    problem = random_problem(2, 2)
    with pytest.raises(InputError, match="noise"):
        record(problem, Setting("a", 1, 0.1, 0.5, 3), np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="sigma"):
        enumeration.enumerate_paths(problem, Setting("a", 1, 0.1, 0.5, 3))
    with pytest.raises(InputError, match="updates"):
        enumeration.sign_sequences(20)
    with pytest.raises(InputError, match="lemma"):
        tight.lemma_results("theorem")
