"""When a run counts as diverged."""

from __future__ import annotations

import math

import pytest

from pipeline.divergence import MOST, diverged


@pytest.mark.parametrize(
    ("losses", "held_out", "skipped", "step"),
    [
        ([6.0, 5.0], 5.0, [], None),
        ([6.0, MOST * 6.0], 6.0, [], None),  # the margin itself
        ([6.0, MOST * 6.0 + 1e-9], 6.0, [], 2),
        ([6.0, 7e13], None, [], 2),
        ([6.0, 1e9, 5.0], 5.0, [], None),  # it came back
        ([6.0, math.nan, 5.0], 5.0, [], 2),
        ([6.0, math.inf, 5.0], 5.0, [1], None),  # it moved nothing
        ([math.nan, 6.0, 7.0], 7.0, [0], None),
        ([6.0, 7e13], 6.0, [1], None),
        ([6.0, 6.0], math.nan, [], 3),
        ([6.0, 6.0], 7e13, [], 3),  # by its last update
        ([math.nan], 6.0, [0], None),
    ],
)
def test_the_rule(losses, held_out, skipped, step):
    found = diverged(losses, held_out, skipped)
    assert (None if found is None else found.step) == step
    if found is not None:
        assert "not finite" in found.reason or f"more than {MOST:g} times the 6 of the start" in found.reason
