"""Many paths at once against one path at a time, and what the delays are."""

from __future__ import annotations

import numpy as np
import pytest

from empirics.block_runs import DEPENDENT, all_draws, delay_table, run_blocks
from empirics.block_sgd import pipedream_recursion
from empirics.errors import InputError
from empirics.problems.block_least_squares import BlockLeastSquares, random_block_problem
from pipeline.block_delays import block_update_delay
from pipeline.clock import simulate
from pipeline.schedules import make_schedule

PROBLEM = random_block_problem(6, 3, 0.5)
X0 = np.linspace(-1, 2, 6)


def test_constants_of_the_problem():
    H, rng = PROBLEM.H, np.random.default_rng(1)
    x, z = rng.standard_normal((2, 50, 6))
    change = np.linalg.norm(PROBLEM.grad(x) - PROBLEM.grad(z), axis=1) / np.linalg.norm(x - z, axis=1)
    assert change.max() <= PROBLEM.L and PROBLEM.L == pytest.approx(1.0)
    gap, square = PROBLEM.f(x) - PROBLEM.f_star, (PROBLEM.grad(x) ** 2).sum(axis=1)
    assert (square >= 2 * PROBLEM.mu * gap).all() and (gap >= 0).all()
    eigenvalues, vectors = np.linalg.eigh(H)
    best = np.linalg.lstsq(PROBLEM.A, PROBLEM.b, rcond=None)[0]
    for i, constant in ((0, PROBLEM.mu), (-1, PROBLEM.L)):  # attained along the first and the last eigenvector
        at = best + vectors[:, i]
        assert (PROBLEM.grad(at) ** 2).sum() == pytest.approx(2 * constant * (PROBLEM.f(at) - PROBLEM.f_star))
    assert PROBLEM.block_variances.sum() == pytest.approx(PROBLEM.sigma**2)


def test_the_whole_model_is_pipedreams_recursion():
    run = run_blocks(PROBLEM, X0, 0.3, 6, "ages", method="all")
    assert run.exact and run.paths == 64
    _, signs = all_draws(PROBLEM, "all", 6)
    for r in (0, 13, 63):
        y = pipedream_recursion(lambda j, z, r=r: PROBLEM.grad(z) + signs[r, j] * PROBLEM.noise, X0, 3, 0.3, 6)
        np.testing.assert_allclose(run.x[:, r], y, atol=1e-14)


def test_paths_are_all_paths():
    """Each by itself, literally: draws, signs, delays of each block."""
    table = delay_table("uniform", 3, 4, 2, seed=5)
    run = run_blocks(PROBLEM, X0, 0.2, 4, table)
    draws, signs = all_draws(PROBLEM, "drawn", 4)
    assert run.paths == len({(tuple(d), tuple(s)) for d, s in zip(draws, signs, strict=True)}) == 6**4
    for r in range(0, 6**4, 97):
        x = [X0]
        for k in range(4):
            z = np.concatenate([x[k - table[k, s]][2 * s : 2 * s + 2] for s in range(3)])
            g = PROBLEM.grad(z) + signs[r, k] * PROBLEM.noise
            new = x[k].copy()
            block = slice(2 * draws[r, k], 2 * draws[r, k] + 2)
            new[block] -= 0.2 * g[block]
            x.append(new)
        np.testing.assert_allclose(run.x[:, r], x, atol=1e-14)


def test_sampled_paths_have_the_mean_of_all():
    table = delay_table("uniform", 3, 4, 3, seed=1)
    every = run_blocks(PROBLEM, X0, 0.2, 4, table)
    some = run_blocks(PROBLEM, X0, 0.2, 4, table, seeds=20_000)
    assert not some.exact and every.exact
    error = some.x[-1].std(axis=0) / np.sqrt(some.paths)
    assert (np.abs(some.x[-1].mean(axis=0) - every.x[-1].mean(axis=0)) < 6 * error).all()
    assert np.array_equal(some.x, run_blocks(PROBLEM, X0, 0.2, 4, table, seeds=20_000).x)


def test_delays_are_those_of_their_kind():
    uniform = delay_table("uniform", 3, 4000, 5)[100:]
    assert np.abs(np.bincount(uniform.ravel()) / uniform.size - 1 / 6).max() < 0.02
    assert (delay_table("maximal", 2, 50, 7)[7:] == 7).all()
    assert delay_table("maximal", 2, 3, 7).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert delay_table("ages", 3, 9)[4:].tolist() == [[2, 1, 0]] * 5
    for S in (1, 2, 3, 4):
        table = delay_table("pipedream", S, 40 * S)
        steady = block_update_delay(simulate(make_schedule("pipedream", S), 60), S)
        assert table[8 * S :].max() == steady["max"]
        assert table[8 * S : -8 * S].mean() == pytest.approx(steady["mean"], rel=0.05)


def test_dependent_delays_take_the_block_that_is_furthest():
    noisy = random_block_problem(2, 2, 5.0)
    best = np.linalg.lstsq(noisy.A, noisy.b, rcond=None)[0]
    run, table = (run_blocks(noisy, best, 0.4, 5, delays, 3) for delays in (DEPENDENT, "maximal"))
    assert not run.independent and run.delays.max() == 3
    assert (run.delays[3:] != 3).any()  # noise goes back and forth: the oldest is not always the furthest
    assert ((run.z - run.x[:-1]) ** 2).sum(-1).mean() > ((table.z - table.x[:-1]) ** 2).sum(-1).mean()


def test_bad_input():
    with pytest.raises(InputError, match="delays: 'late'; allowed are uniform"):
        delay_table("late", 2, 3)
    with pytest.raises(InputError, match="stages, steps, delta_max: 2, 3, -1"):
        delay_table("maximal", 2, 3, -1)
    with pytest.raises(InputError, match="method: 'some'"):
        run_blocks(PROBLEM, X0, 0.1, 3, "ages", method="some")
    with pytest.raises(InputError, match="steps: 9 give 10077696 paths"):
        run_blocks(PROBLEM, X0, 0.1, 9, "maximal", 1)
    with pytest.raises(InputError, match="allowed are shape"):
        run_blocks(PROBLEM, X0[:3], 0.1, 3, "maximal", 1)
    with pytest.raises(InputError, match="seeds"):
        run_blocks(PROBLEM, X0, 0.1, 3, "maximal", 1, seeds=1)
    with pytest.raises(InputError, match="a table"):
        run_blocks(PROBLEM, X0, 0.1, 3, np.ones((3, 3), int))
    with pytest.raises(InputError, match="diverges"):
        run_blocks(PROBLEM, X0, 1e9, 40, "maximal", 1, seeds=2)
    with pytest.raises(InputError, match="A, b, noise: shapes"):
        BlockLeastSquares(np.eye(3), np.zeros(3), np.zeros(2), 1)
    with pytest.raises(InputError, match="noise: not finite"):
        BlockLeastSquares(np.eye(2), np.zeros(2), np.array([0.0, np.nan]), 1)
    with pytest.raises(InputError, match="n, sigma"):
        random_block_problem(4, 2, -1.0)
