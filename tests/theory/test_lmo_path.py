"""Lemmas A, B, C and the intermediate form: true on every path, attained on small instances, no smaller
constant.
"""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Rational

from theory.errors import InputError
from theory.inequality import Inequality
from theory.lmo import PATHWISE
from theory.symbols import symbols

NAMES = ("descent", "delay", "momentum-error", "average")
SLACK = 1e-10  # round-off of values of order 1 to 1e3, forty steps of double precision


def excess(inequality: Inequality, values: dict) -> float:
    """Largest left - right over the steps, relative to the size of the numbers in it."""
    left, right = inequality.evaluate(values)
    return float(np.max((np.asarray(left) - right) / (1 + np.abs(left) + np.abs(right))))


@pytest.mark.parametrize("tau", [0, 1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_holds_on_random_paths(random_run, name, tau):
    for seed in range(25):
        values = random_run(seed, tau).record()
        assert excess(PATHWISE[name], values) <= SLACK, f"seed {seed}"


def straight_run(lmo_run, tau, alpha=0.3, steps=12):
    """One dimension, far right of the minimum: every step goes left, start error and noise push the same
    way.
    """
    noise = np.full((steps, 1), 0.7)
    return lmo_run(np.eye(1) * 2.0, np.zeros(1), [100.0], [201.0], noise, eta=0.1, alpha=alpha, tau=tau)


@pytest.mark.parametrize("tau", [0, 1, 2, 4])
def test_delay_and_momentum_error_are_attained(lmo_run, tau):
    """Equality at every step: the finite sums are exact, so nothing in these two lemmas can be made
    smaller.
    """
    values = straight_run(lmo_run, tau).record()
    for name in ("delay", "momentum-error"):
        left, right = PATHWISE[name].evaluate(values)
        # differences of gradients of size 200 carry errors of 200 * 2^-52
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.mutation
@pytest.mark.parametrize("term", ["start", "momentum_lag", "delay", "noise"])
def test_momentum_error_refutes_smaller_terms(lmo_run, term):
    values = straight_run(lmo_run, tau=2).record()
    assert excess(PATHWISE["momentum-error"].scaled(term, Rational(9, 10)), values) > 1e-5


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["delay", "momentum-error"])
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_one_step_less_delay_is_refuted(lmo_run, name, tau):
    values = straight_run(lmo_run, tau).record()
    symbol = symbols("tau")[0]
    assert excess(PATHWISE[name].substituted("tau", symbol - 1), values) > 1e-3
    assert excess(PATHWISE[name], values | {"tau": tau - 1}) > 1e-3
    data_of_more = straight_run(lmo_run, tau + 1).record()  # planted: data of tau + 1 under the lemma for tau
    assert excess(PATHWISE[name], data_of_more | {"tau": tau}) > 1e-3


def across_zero(lmo_run, momentum):
    """One step with the momentum just across zero: the gradient is +1, the step goes the wrong way."""
    return lmo_run(
        np.eye(1), np.zeros(1), [1.0], [(momentum - 0.5) / 0.5], np.zeros((1, 1)), eta=0.25, alpha=0.5, tau=0
    ).record()


@pytest.mark.parametrize("name", ["descent", "average"])
def test_descent_is_attained_across_zero(lmo_run, name):
    left, right = PATHWISE[name].evaluate(across_zero(lmo_run, -1e-9))
    assert np.max(np.abs(np.asarray(right) - left)) <= 1e-8  # two to four times the momentum's 1e-9


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["descent", "average"])
@pytest.mark.parametrize("term, factor", [("momentum_error", Rational(19, 20)), ("step", Rational(9, 10))])
def test_descent_refutes_smaller_constants(lmo_run, name, term, factor):
    assert excess(PATHWISE[name].scaled(term, factor), across_zero(lmo_run, -1e-9)) > 1e-4


def test_finite_sums_are_the_sums():
    """Lemma C's closed forms against the sums written out, start-up (k < tau) included."""
    ineq = PATHWISE["momentum-error"]
    for a in (0.05, 0.4, 1.0):
        for tau in (0, 1, 3, 7):
            for k in (0, 1, 2, 5, 30):
                terms = ineq.evaluate_terms(
                    dict(alpha=a, tau=tau, k=k, L=1, eta=1, E0=1, error_norm=0, noise_norm=0)
                )
                b = 1 - a
                assert terms["momentum_lag"] == pytest.approx(sum(b**j for j in range(1, k + 1)), abs=1e-13)
                delay = a * sum(b ** (k - i) * min(i, tau) for i in range(1, k + 1))
                assert terms["delay"] == pytest.approx(delay, abs=1e-13)
                assert terms["start"] == pytest.approx(b ** (k + 1), abs=1e-15)


def test_keys_and_kinds():
    assert list(PATHWISE) == [*NAMES, "ef-descent", "ef-delay", "ef-momentum-error", "ef-average"]
    for name, inequality in PATHWISE.items():
        assert inequality.name == name
        assert inequality.statement.count("{") == inequality.statement.count("}")
        assert r"\le" in inequality.statement


def test_bad_input():
    descent = PATHWISE["descent"]
    with pytest.raises(InputError, match="missing grad_norm"):
        descent.evaluate(dict(eta=0.1, L=1, f_now=1, f_next=1, error_norm=0))
    with pytest.raises(InputError, match="error_norm=-1 is not allowed"):
        descent.evaluate(dict(eta=0.1, L=1, f_now=1, f_next=1, grad_norm=0, error_norm=-1))
    with pytest.raises(InputError, match="error_norm=nan"):
        descent.evaluate(dict(eta=0.1, L=1, f_now=1, f_next=1, grad_norm=0, error_norm=[0, np.nan]))
    with pytest.raises(InputError, match="do not broadcast"):
        descent.evaluate(dict(eta=0.1, L=1, f_now=[1, 2], f_next=[1, 2, 3], grad_norm=0, error_norm=0))
    with pytest.raises(InputError, match="no term 'drift'"):
        descent.scaled("drift", Rational(1, 2))
    with pytest.raises(InputError, match="does not depend on tau"):
        descent.substituted("tau", Rational(1))
    L = symbols("L")[0]
    with pytest.raises(InputError, match="rounded constant"):
        Inequality("x", "x", "x", L, {"a": 0.5 * L}, (), "x")
    with pytest.raises(InputError, match="unknown assumption"):
        Inequality("x", "x", "x", L, {"a": L}, ("luck",), "x")
