"""LocalSGD's theorems on runs: all signs, and seeds; constants that are too small are refuted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from empirics.errors import InputError
from empirics.local_sgd_runs import LOCAL, examine_local, run_local
from empirics.problems.block_least_squares import BlockLeastSquares, random_block_problem
from theory.registry import get_bound

ONE = BlockLeastSquares(np.eye(2), np.zeros(2), np.ones(2), 1)


@pytest.mark.parametrize("replicas, steps, period", [(1, 6, 2), (2, 5, 3), (3, 4, 2), (2, 5, 5)])
def test_theorems_hold_on_all_paths(replicas, steps, period):
    for sigma, gamma in ((0.0, 0.5), (0.5, 0.1), (0.5, 0.9)):
        result = examine_local(random_block_problem(2, 1, sigma), np.ones(2), gamma, replicas, steps, period)
        assert set(result.checks) == set(LOCAL) and not result.violations
        assert all(check.kind == "certified" for check in result.checks.values())


def test_long_runs_with_seeds():
    result = examine_local(random_block_problem(6, 1, 0.5), np.ones(6), 0.2, 4, 100, 8, seeds=100)
    assert not result.violations and result.checks["local-sgd"].kind == "statistical"
    assert result.checks["local-sgd-counted"].utilisation > result.checks["local-sgd"].utilisation
    json.dumps(result.as_dict())


def test_averaging_is_literal():
    x = run_local(ONE, np.ones(2), 0.3, 2, 3, 2, seeds=4)
    assert np.array_equal(x[2, :, 0], x[2, :, 1]) and not np.array_equal(x[1, :, 0], x[1, :, 1])
    one = run_local(ONE, np.ones(2), 0.3, 1, 3, 1)  # one replica: SGD, all signs
    assert one.shape[1] == 8 and np.allclose(one.mean(axis=1)[:, 0, 0], [1, 0.7, 0.49])


@pytest.mark.mutation
def test_half_the_noise_or_nine_tenths_of_the_start_are_refuted():
    """Against the same measured left sides as the theorem keeps."""
    quiet = BlockLeastSquares(np.eye(1), np.zeros(1), np.zeros(1), 1)
    check = examine_local(quiet, np.ones(1), 0.99, 1, 5, 1).checks["local-sgd-variance"]
    assert 0.9 * check.right < check.left <= check.right  # its only term is the initial one
    result = examine_local(ONE, np.zeros(2), 0.9, 2, 5, 1)
    check = result.checks["local-sgd-variance"]
    terms = get_bound("local-sgd-variance").evaluate_terms(
        **{name: result.constants[name] for name in get_bound("local-sgd-variance").symbols}
    )
    assert 0.5 * terms["noise"] < check.left <= terms["noise"]


def test_bad_input():
    with pytest.raises(InputError, match="period: shape"):
        run_local(ONE, np.ones(2), 0.1, 2, 3, 0)
    with pytest.raises(InputError, match="give more than"):
        run_local(ONE, np.ones(2), 0.1, 4, 5, 1)
    with pytest.raises(InputError, match="seeds: 1"):
        run_local(ONE, np.ones(2), 0.1, 4, 5, 1, seeds=1)
    with pytest.raises(InputError, match="diverges"):
        run_local(ONE, np.ones(2), 1e200, 4, 5, 1, seeds=2)
    assert "holds only for" in examine_local(ONE, np.ones(2), 1.5, 1, 3, 1).not_applicable["local-sgd"]
