"""Every inequality about SGD with old blocks on runs; what is wrong by one, or has too small a constant, is refuted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sympy import Rational

from empirics.block_inequalities import NO_NOISE, RANDOMIZED, WHOLE, check_bound, check_of, constants_of, examine
from empirics.block_runs import DEPENDENT, run_blocks
from empirics.errors import InputError
from empirics.problems.block_least_squares import BlockLeastSquares, random_block_problem
from empirics.tuned_block_runs import run_tuned
from theory.pipedream.steps import STEPS
from theory.registry import get_bound

X0 = np.linspace(-1, 2, 6)
DRAWN_STEPS = {"block-descent", "window", "block-average", "windows-any", "windows-counted", "windows-split"}


def line(S: int = 1, slope: float = 1.0, noise: float = 0.0, flat: float = 1e-4) -> BlockLeastSquares:
    """One coordinate a stage, hardly curved: the gradient is `slope` in every block, so that windows are attained."""
    return BlockLeastSquares(flat * np.eye(S), np.full(S, -slope / flat), np.full(S, noise), S)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("delays, delta_max", [("uniform", 4), ("maximal", 3), ("pipedream", None), (DEPENDENT, 3)])
@pytest.mark.parametrize("gamma", [0.05, 0.3])
def test_randomized_pipedream_on_all_paths(sigma, delays, delta_max, gamma):
    result = examine(run_blocks(random_block_problem(6, 3, sigma), X0, gamma, 5, delays, delta_max))
    assert not result.violations
    assert all(check.kind == "certified" for check in result.checks.values())
    known = set(result.checks) | set(result.not_applicable)
    if delays == DEPENDENT:
        assert known | {"windows-counted", "windows-split"} == DRAWN_STEPS | set(RANDOMIZED)
        assert "windows-counted" not in result.checks and "rpd-b" in result.not_applicable
    else:
        assert known == DRAWN_STEPS | set(RANDOMIZED)
        assert not [reason for reason in result.not_applicable.values() if "holds only for" not in reason]


@pytest.mark.parametrize("delays, delta_max", [("uniform", 6), ("maximal", 4), ("pipedream", None), (DEPENDENT, 4)])
def test_randomized_pipedream_on_long_runs(delays, delta_max):
    result = examine(run_blocks(random_block_problem(12, 4, 0.5), np.ones(12), 0.1, 120, delays, delta_max, seeds=150))
    assert not result.violations
    kinds = {name: check.kind for name, check in result.checks.items()}
    assert kinds["block-descent"] == kinds["window"] == "certified"  # on every path
    assert kinds["rpd-a"] == kinds["windows-any"] == "statistical"
    assert result.checks["rpd-a"].interval.n == 150
    assert result.checks["block-descent"].utilisation > 0.2


@pytest.mark.parametrize(("excess", "holds"), [(-0.5, True), (0.0, True), (1e-13, True), (1e-9, False), (0.5, False)])
def test_paths_that_do_not_differ_are_judged_as_a_number(excess, holds):
    """No interval of width 0, and no refusal: without noise and with given delays all paths are one."""
    left = np.full((2, 40), 1.0 + excess)
    left[0] = 0.5 + 1e-14 * np.arange(40)  # round-off, on a statement that holds
    check = check_of("bound", left, np.ones((2, 40)), 1.0, "statistical", 0.99)
    assert check.holds == holds and check.interval is None and check.kind == "statistical"
    # A statement whose paths differ has its interval beside it.
    left[0] = np.random.default_rng(0).normal(0.5, 0.1, 40)
    check = check_of("bound", left, np.ones((2, 40)), 1.0, "statistical", 0.99)
    assert check.holds == holds and check.interval.high < 0
    with pytest.raises(InputError, match="paths: 1 for a mean over paths"):
        check_of("bound", left[:, :1], np.ones((2, 1)), 1.0, "statistical", 0.99)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("delays", ["ages", "maximal"])
def test_pipedream_itself(sigma, delays):
    result = examine(run_blocks(random_block_problem(6, 3, sigma), X0, 0.15, 10, delays, 2, method="all"))
    assert not result.violations
    prefix = "full" if sigma else "exact"
    steps = {f"{prefix}-descent", f"{prefix}-average", "window", "windows-fixed"}
    assert set(result.checks) | set(result.not_applicable) == steps | set(WHOLE) | (set() if sigma else set(NO_NOISE))
    assert ("pipedream-exact" in result.checks) == (delays == "ages")
    if not sigma:
        assert ("delayed-gd" in result.checks) == (delays == "maximal")
    assert result.checks["pipedream-exact-age"].utilisation > 0.1


def test_windows_are_attained_where_all_updates_agree():
    """The same gradient everywhere: Cauchy-Schwarz and B's count of the windows are equalities, up to the curvature."""
    run = run_blocks(line(2), np.zeros(2), 0.1, 7, "maximal", 3)
    checks = examine(run).checks
    assert checks["windows-counted"].utilisation == pytest.approx(1.0, rel=1e-6)
    assert checks["window"].utilisation == pytest.approx(1.0, rel=1e-6)
    one = examine(run_blocks(line(1), np.zeros(1), 0.1, 7, "maximal", 3))
    assert one.checks["windows-any"].utilisation > 0.6  # windows at the start are short


def test_descent_is_an_equality_where_curvature_is_the_same_in_all_directions():
    problem = BlockLeastSquares(1.3 * np.eye(4), np.ones(4), np.array([0.2, 0.1, 0.3, -0.2]), 2)
    check = examine(run_blocks(problem, np.linspace(0, 3, 4), 0.2, 4, "maximal", 2)).checks["block-descent"]
    assert check.low == pytest.approx(1.0, rel=1e-9) and check.utilisation == pytest.approx(1.0, rel=1e-9)


@pytest.mark.mutation
def test_a_delay_of_one_more_than_promised_is_refuted():
    """The run has delays of delta + 1, noise-free; all that knows of delta says so."""
    run = run_blocks(line(1), np.zeros(1), 0.1, 30, "maximal", 4)
    assert not examine(run).violations
    wrong = examine(run, constants={"delta_max": 3.0})
    assert {"windows-any", "windows-counted"} <= set(wrong.violations)
    late = replace(run, delta_max=3)
    assert examine(late).violations == wrong.violations
    # Theorems: one stage, one curvature, a step near the limit.
    one = BlockLeastSquares(np.eye(1), np.zeros(1), np.zeros(1), 1)
    run = run_blocks(one, np.ones(1), 1.99, 3, "maximal", 1)
    assert not examine(run).violations
    refuted = examine(run, constants={"delta_max": 0.0}).violations
    assert {"rpd-a", "rpd-a-independent", "rpd-a-drift", "rpd-b"} <= set(refuted)


@pytest.mark.mutation
@pytest.mark.parametrize(
    "name, term, factor, problem, x0, gamma, K, delays, method",
    [
        ("windows-counted", "windows", Rational(19, 20), line(2), 0.0, 0.1, 7, 3, "drawn"),
        ("windows-any", "updates", Rational(1, 2), line(1), 0.0, 0.1, 30, 4, "drawn"),
        ("window", "squares", Rational(19, 20), line(2), 0.0, 0.1, 7, 3, "drawn"),
        ("block-descent", "curvature", Rational(19, 20),
         BlockLeastSquares(np.eye(2), np.zeros(2), np.ones(2), 2), 1.0, 0.3, 4, 1, "drawn"),
        ("block-descent", "apart", Rational(1, 2), BlockLeastSquares(np.eye(1), np.zeros(1), np.zeros(1), 1), 1.0, 0.3,
         4, 2, "drawn"),
        ("full-descent", "curvature", Rational(19, 20),
         BlockLeastSquares(np.eye(2), np.zeros(2), np.ones(2), 2), 1.0, 0.3, 4, 1, "all"),
    ],
)  # fmt: skip
def test_a_constant_that_is_too_small_is_refuted(
    monkeypatch, name, term, factor, problem, x0, gamma, K, delays, method
):
    run = run_blocks(problem, np.full(problem.n, x0), gamma, K, "maximal", delays, method=method)
    assert name not in examine(run).violations
    monkeypatch.setitem(STEPS, name, replace(STEPS[name].scaled(term, factor), name=name))
    assert name in examine(run).violations


@pytest.mark.mutation
def test_a_sampled_mean_refutes_too():
    """Student's interval is far beyond a bound whose noise is said to be a tenth of what it is."""
    problem = BlockLeastSquares(np.eye(2), np.zeros(2), np.full(2, 1.0), 2)
    run = run_blocks(problem, np.zeros(2), 0.5, 60, "maximal", 1, seeds=200)
    assert not examine(run).violations
    refuted = examine(run, constants={"sigma": 0.14, "G": 0.1, "B": 0.14}).violations
    assert {"rpd-a", "rpd-c", "rpd-d"} <= set(refuted)


@pytest.mark.parametrize("name", RANDOMIZED[:7])
@pytest.mark.parametrize("delays, delta_max", [("pipedream", None), ("uniform", 5)])
def test_tuned_rates_of_randomized_pipedream(name, delays, delta_max):
    problem = random_block_problem(6, 3, 0.5)
    tuned = run_tuned(name, problem, X0, 80, delays, delta_max=delta_max, seeds=60)
    assert tuned.holds and 0.01 < tuned.utilisation <= 1
    assert tuned.measured.right == tuned.at_step <= sum(tuned.rate.values()) * (1 + 1e-12)


@pytest.mark.parametrize("name", WHOLE[:2])
def test_tuned_rates_of_pipedream_itself(name):
    tuned = run_tuned(name, random_block_problem(6, 3, 0.5), X0, 80, "ages", seeds=60, method="all")
    assert tuned.holds and 0.05 < tuned.utilisation <= 1
    json.dumps(tuned.as_dict())


def test_conditions_of_the_step_are_reasons():
    result = examine(run_blocks(random_block_problem(6, 3, 0.5), X0, 1.5, 3, "maximal", 2))
    assert "holds only for" in result.not_applicable["rpd-c"]
    assert "rpd-c" not in result.checks and "rpd-a" in result.checks


def test_unequal_noise_is_a_reason():
    problem = replace(random_block_problem(6, 3, 0.5), noise=np.array([0.5, 0, 0, 0, 0, 0.1]))
    result = examine(run_blocks(problem, X0, 0.1, 6, "ages", method="all"))
    assert result.not_applicable["pipedream-exact"] == "assumption equal-noise: sigma_s differ"
    assert result.checks["pipedream-exact-age"].holds
    old = examine(run_blocks(problem, X0, 0.1, 6, "maximal", 4, method="all"))
    assert "older than S - 1 = 2" in old.not_applicable["pipedream-exact-age"] and "windows-fixed" not in old.checks


def test_G_and_B_are_largest_second_moments():
    run = run_blocks(random_block_problem(6, 3, 0.5), X0, 0.1, 3, "maximal", 1)
    own = constants_of(run)
    p = run.problem
    samples = [p.grad(run.z) + sign * p.noise for sign in (-1, 1)]
    blocks = np.mean([p.by_block(g) for g in samples], axis=0)
    assert own["G"] ** 2 == pytest.approx(blocks.max()) and own["B"] ** 2 == pytest.approx(blocks.sum(-1).max())
    check = check_bound(run, get_bound("rpd-a"), own)
    assert check.left == pytest.approx((p.grad(run.x[:-1]) ** 2).sum(-1).mean())


def test_summary_is_json():
    result = examine(run_blocks(random_block_problem(6, 3, 0.5), X0, 0.1, 20, "uniform", 3, seeds=20))
    data = json.loads(json.dumps(result.as_dict()))
    assert data["violations"] == [] and data["paths"] == 20
    assert {row["name"] for row in data["checks"]} == set(result.checks)


def test_bad_input():
    run = run_blocks(random_block_problem(6, 3, 0.5), X0, 0.1, 3, "maximal", 1)
    with pytest.raises(InputError, match="constants: 'tau'"):
        examine(run, constants={"tau": 1.0})
    with pytest.raises(InputError, match="method: None; allowed for pipedream-exact is all"):
        run_tuned("pipedream-exact", run.problem, X0, 5, "ages")
    with pytest.raises(InputError, match="independent-delay"):
        run_tuned("rpd-d", run.problem, X0, 20, DEPENDENT, delta_max=2, seeds=5)
