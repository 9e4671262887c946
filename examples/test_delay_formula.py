"""A closed form of your own against the schedule: run with `pytest examples/test_delay_formula.py`."""

import pytest

from pipeline.delays import delays_of
from theory.delays import optimizer_step_delay


def my_formula(S: int, m: int) -> list[int]:
    """PipeDream with a step after every m microbatches, stage s from 0: ceil((S - 1 - s) / m)."""
    return [-(-(S - 1 - s) // m) for s in range(S)]


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("S", range(1, 9))
def test_pipedream(S: int, m: int) -> None:
    counted = delays_of("pipedream", S, m)["optimizer_step_delay"]
    assert my_formula(S, m) == counted == optimizer_step_delay("pipedream", S, m)


def test_it_can_fail() -> None:
    assert my_formula(4, 1) != delays_of("pipedream-2bw", 4, 4)["optimizer_step_delay"]
