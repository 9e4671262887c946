"""PipeDream's recursion equals the replay of its timeline; a wrong age does not."""

from __future__ import annotations

import numpy as np
import pytest

from empirics.block_sgd import pipedream_recursion, replay, stage_slices
from pipeline.clock import Costs, simulate
from pipeline.errors import InputError
from pipeline.schedules import make_schedule


def problem(n: int, M: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n)) / np.sqrt(n)
    H, noise, x0 = root @ root.T, rng.standard_normal((M, n)), rng.standard_normal(n)
    return (lambda j, x: H @ x + noise[j]), x0


@pytest.mark.parametrize("S", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("costs", [Costs(), Costs(1, 2), Costs(3, 1, hop=2)])
def test_recursion_is_the_replay_of_the_timeline(S, costs):
    gradient, x0 = problem(24, 60)
    y = pipedream_recursion(gradient, x0, S, 0.1, 60)
    z = replay(simulate(make_schedule("pipedream", S), 60, costs), gradient, x0, S, 0.1)
    # The same operations in the same order; 1e-12 leaves room for a matrix product that sums otherwise.
    assert np.abs(y - z).max() <= 1e-12


def test_sixteen_stages_512_dimensions():
    gradient, x0 = problem(512, 200)
    y = pipedream_recursion(gradient, x0, 16, 0.02, 200)
    z = replay(simulate(make_schedule("pipedream", 16), 200, Costs(1, 2)), gradient, x0, 16, 0.02)
    assert np.abs(y - z).max() <= 1e-12


@pytest.mark.mutation
@pytest.mark.parametrize("shift", [-1, 1])
def test_an_age_off_by_one_is_seen(shift):
    gradient, x0 = problem(24, 60)
    ages = [max(3 - s + shift, 0) for s in range(4)]
    y = pipedream_recursion(gradient, x0, 4, 0.1, 60, ages)
    z = replay(simulate(make_schedule("pipedream", 4), 60), gradient, x0, 4, 0.1)
    assert np.abs(y - z).max() > 1e-3


def test_one_stage_is_plain_sgd():
    gradient, x0 = problem(6, 10)
    x = x0.copy()
    for j in range(10):
        x = x - 0.1 * gradient(j, x)
    assert np.array_equal(pipedream_recursion(gradient, x0, 1, 0.1, 10)[-1], x)


def test_linear_cost_of_the_delay_on_stage_0():
    # Only stage 0 matters: delayed gradient descent, stable iff gamma L < 2 sin(pi/(4S - 2)).
    S = 8
    limit = 2 * np.sin(np.pi / (4 * S - 2))

    def gradient(j, x):
        return np.concatenate([x[:1], np.zeros(S - 1)])

    for factor, stable in ((0.98, True), (1.02, False)):
        y = pipedream_recursion(gradient, np.ones(S), S, factor * limit, 4000)
        assert (np.abs(y[-100:, 0]).max() < 1) == stable


def test_blocks_are_even():
    assert [s.stop - s.start for s in stage_slices(10, 4)] == [2, 3, 2, 3]
    assert stage_slices(3, 3) == [slice(0, 1), slice(1, 2), slice(2, 3)]


def test_bad_input():
    gradient, x0 = problem(4, 4)
    with pytest.raises(InputError, match="stages = 5: allowed are 1 to 4"):
        pipedream_recursion(gradient, x0, 5, 0.1, 4)
    with pytest.raises(InputError, match=r"ages = \[1\]: allowed are 2 integers"):
        pipedream_recursion(gradient, x0, 2, 0.1, 4, [1])
    events = [e for e in simulate(make_schedule("pipedream", 2), 4) if (e.kind, e.stage, e.step) != ("step", 0, 1)]
    with pytest.raises(InputError, match="stage 0 updates with microbatch 2 after 1 updates"):
        replay(events, gradient, x0, 2, 0.1)
