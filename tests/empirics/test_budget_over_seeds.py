"""The average over seeds against the bound, and runs that are not to be averaged."""

from __future__ import annotations

import numpy as np
import pytest

from empirics.budget import budget
from empirics.budget_over_seeds import average_over_runs
from empirics.errors import InputError
from empirics.least_squares_budget import budget_of_setting, facts_of_setting
from empirics.least_squares_run import record_run
from empirics.lmo_path import Setting
from empirics.problems.matrix_least_squares import random_problem

PROBLEM = random_problem(3, 4, seed=2)
NOISY = Setting("run", 2, 0.1, 0.3, 16, 0.3)


def of_seed(seed, theorem="delayed-lmo", problem=PROBLEM, setting=NOISY):
    return budget_of_setting(theorem, problem, setting, seed=seed)


def test_the_average_over_seeds_stands_against_the_bound():
    runs = [of_seed(seed) for seed in range(4)]
    over = average_over_runs(runs, range(4), 0.9)
    edition, bound = over["edition"], runs[0]["editions"]["worst-case"]["value"]
    assert (edition["name"], edition["kind"], edition["holds"]) == ("worst-case", "statistical", True)
    assert edition["value"] == pytest.approx(bound)
    above = np.array([b["waterfall"][0]["value"] for b in runs]) - bound
    t = 1.637744353696  # Student's 0.9 quantile, 3 degrees of freedom
    assert edition["above_at_least"] == pytest.approx(above.mean() - t * above.std(ddof=1) / 2, rel=1e-9)
    assert over["measured"]["low"] < over["measured"]["value"] < over["measured"]["high"]
    assert average_over_runs([*runs, {**runs[0], "status": "diverged", "reasons": ["at 3"]}], range(5))["left_out"] == [
        {"seed": 4, "status": "diverged", "reasons": ["at 3"]}
    ]


@pytest.mark.mutation
def test_a_bound_that_is_too_small_is_refuted_by_the_average():
    runs = [of_seed(seed) for seed in range(4)]
    for b in runs:
        b["editions"]["worst-case"]["value"] = 0.9 * b["waterfall"][0]["value"]
    assert not average_over_runs(runs, range(4))["edition"]["holds"]


def test_without_exact_constants_the_average_is_shown_beside_the_trajectory():
    def known_by_name(seed):
        recorder = record_run(PROBLEM, NOISY, PROBLEM.noise(0.3, 16, seed))
        return budget("delayed-lmo", recorder, facts_of_setting(NOISY))

    edition = average_over_runs([known_by_name(0), known_by_name(1)], [0, 1])["edition"]
    assert (edition["name"], edition["kind"]) == ("trajectory", "report only")


def test_bad_input():
    one, two = of_seed(0), of_seed(1)
    with pytest.raises(InputError, match="seeds"):
        average_over_runs([one, two], [3, 3])
    with pytest.raises(InputError, match="equal samples"):
        average_over_runs([one, one], [0, 1])
    with pytest.raises(InputError, match="delayed-lmo, delayed-lmo-shifted"):
        average_over_runs([one, of_seed(1, "delayed-lmo-shifted")], [0, 1])
    with pytest.raises(InputError, match="tau is 2.0 and 1.0"):
        average_over_runs([one, of_seed(1, setting=Setting("run", 1, 0.1, 0.3, 16, 0.3))], [0, 1])
    with pytest.raises(InputError, match="constants is"):
        average_over_runs([one, of_seed(1, problem=random_problem(3, 4, seed=9))], [0, 1])
