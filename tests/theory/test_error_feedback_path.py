"""The steps of Theorem 2: the virtual iterate's identity, the lemmas on every path, attained, no smaller
constant.
"""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Rational

from theory.lmo import PATHWISE

NAMES = ("ef-descent", "ef-delay", "ef-momentum-error", "ef-average")
FORMS = ("extrapolate", "telescoped")
SLACK = 1e-10  # round-off of values of order 1 to 1e3, forty steps of double precision


def excess(inequality, values) -> float:
    left, right = inequality.evaluate(values)
    return float(np.max((np.asarray(left) - right) / (1 + np.abs(left) + np.abs(right))))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_virtual_iterate(random_run, form, tau):
    """y_1 = x_0 - (tau-1) U_0, y_{k+1} = y_k + U_k, delta_k <= 2 tau, |x_k - y_k| <= tau eta."""
    for seed in range(5):
        run = random_run(seed, tau, form)
        np.testing.assert_allclose(run.virtual(1), run.x[0] - (tau - 1) * run.U[0], atol=1e-12)
        for k in range(1, len(run.U)):
            np.testing.assert_allclose(run.virtual(k + 1), run.virtual(k) + run.U[k], atol=1e-12)
            assert np.abs(run.x[k] - run.virtual(k)).max() <= tau * run.eta * (1 + 1e-9)
        delta = run.record()["delta"]
        assert np.max(delta) <= 2 * tau * (1 + 1e-9)
        if tau == 1:
            assert delta[0] <= 1e-9
            for k in range(2, len(run.U)):  # the paper's form: a second difference
                drift = np.abs(run.U[k - 1] - run.U[k - 2]).max() / run.eta
                assert delta[k - 1] == pytest.approx(drift, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_holds_on_random_paths(random_run, name, tau, form):
    for seed in range(25):
        assert excess(PATHWISE[name], random_run(seed, tau, form).record()) <= SLACK, f"seed {seed}"


def turning_run(lmo_run):
    """tau = 1: U_0 goes left, the noise of step 1 turns U_1, and every part of e_2 is negative."""
    noise = np.array([[0.0], [-900.0], [0.0]])
    return lmo_run(
        np.eye(1), np.zeros(1), [100.0], [90.0], noise, eta=0.5, alpha=0.5, tau=1, form="extrapolate"
    )


def shifted_start_run(lmo_run, form):
    """tau = 3: y_1 lies two steps from x_0; start error and noise push the same way as that shift."""
    noise = np.array([[0.0], [-1.0]])
    return lmo_run(np.eye(1), np.zeros(1), [100.0], [90.0], noise, eta=0.5, alpha=0.5, tau=3, form=form)


def last(values: dict) -> dict:
    return {name: value[-1] if np.ndim(value) else value for name, value in values.items()}


def test_momentum_error_is_attained_at_a_turn(lmo_run):
    values = last(turning_run(lmo_run).record())
    assert values["k"] == 2 and values["delta"] == pytest.approx(2.0)
    left, right = PATHWISE["ef-momentum-error"].evaluate(values)
    assert left == pytest.approx(right, rel=1e-12)  # one-dimensional numbers of size 1e2 to 1e3


@pytest.mark.parametrize("form", FORMS)
def test_momentum_error_is_attained_at_a_shifted_start(lmo_run, form):
    values = last(shifted_start_run(lmo_run, form).record())
    assert values["k"] == 1 and values["delta"] == pytest.approx(2.0)
    left, right = PATHWISE["ef-momentum-error"].evaluate(values)
    assert left == pytest.approx(right, rel=1e-12)
    left, right = PATHWISE["ef-delay"].evaluate(values)
    assert left == pytest.approx(right, rel=1e-12)


@pytest.mark.mutation
@pytest.mark.parametrize("term", ["start", "momentum_lag", "delay", "noise"])
def test_smaller_terms_are_refuted(lmo_run, term):
    mutant = PATHWISE["ef-momentum-error"].scaled(term, Rational(9, 10))
    assert excess(mutant, last(turning_run(lmo_run).record())) > 1e-5


@pytest.mark.mutation
def test_smaller_start_shift_and_delay_are_refuted(lmo_run):
    values = last(shifted_start_run(lmo_run, "telescoped").record())
    assert excess(PATHWISE["ef-momentum-error"].scaled("start_shift", Rational(9, 10)), values) > 1e-4
    assert excess(PATHWISE["ef-delay"].scaled("delay", Rational(9, 10)), values) > 1e-3


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["ef-descent", "ef-average"])
@pytest.mark.parametrize("term, factor", [("momentum_error", Rational(19, 20)), ("step", Rational(9, 10))])
def test_descent_refutes_smaller_constants(name, term, factor):
    """f = x^2/2 at y = 1, momentum -1e-9: the step goes to 1.25."""
    values = dict(
        f_now=0.5,
        f_next=1.25**2 / 2,
        grad_norm=1.0,
        error_norm=1 + 1e-9,
        eta=0.25,
        L=1.0,
        K=1,
        f_first=0.5,
        f_last=1.25**2 / 2,
        mean_grad_norm=1.0,
        mean_error_norm=1 + 1e-9,
    )
    assert -1e-8 < excess(PATHWISE[name], values) <= 0
    assert excess(PATHWISE[name].scaled(term, factor), values) > 1e-4


@pytest.mark.mutation
@pytest.mark.parametrize("form", FORMS)
def test_wrong_sign_of_the_correction_is_seen(lmo_run, form):
    """A correction of the wrong sign makes another y: its y_{k+1} - y_k is no longer U_k."""
    rng = np.random.default_rng(0)
    run = lmo_run(np.eye(2), np.ones(2), [1, -1], [0, 0], rng.standard_normal((20, 2)), 0.1, 0.4, 2, form)
    wrong = [run.x[0]]
    for k in range(len(run.U)):
        wrong.append(wrong[k] + run.U[k] - (run.x[k + 1] - run.x[k] - run.U[k]))
    run.x = wrong
    worst = max(np.abs(run.virtual(k + 1) - run.virtual(k) - run.U[k]).max() for k in range(1, len(run.U)))
    assert worst > run.eta
