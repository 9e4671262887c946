"""Closed form, enumeration and trace of a real run say the same of every schedule; off by one, they part."""

from __future__ import annotations

import pytest

from pipeline.delays import delays_of
from theory.delays import block_update_delay, optimizer_step_delay

SCHEDULES = ["1f1b", "pipedream", "pipedream-2bw"]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("S", range(1, 17))
def test_closed_form_is_enumeration(name, S):
    for m in {1 if name == "pipedream" else max(S - 1, 1), S, 2 * S + 1}:
        stated = [int(d) for d in optimizer_step_delay(name, S, m)]
        assert stated == delays_of(name, S, m)["optimizer_step_delay"], (S, m)


@pytest.mark.parametrize("S", range(1, 13))
def test_block_update_delay_is_enumeration(S):
    stated, counted = block_update_delay(S), delays_of("pipedream", S)["block_update_delay"]
    for key in ("max", "mean", "min", "startup_max", "minimal_max", "matrix"):
        assert stated[key] == counted[key], key


def test_published_maxima():
    # floor(S^2 - S/2), S = 1..16.
    expected = [0, 3, 7, 14, 22, 33, 45, 60, 76, 95, 115, 138, 162, 189, 217, 248]
    assert [block_update_delay(S)["max"] for S in range(1, 17)] == expected
