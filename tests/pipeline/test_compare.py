"""The table of all systems."""

from __future__ import annotations

import pytest

from pipeline.clock import Costs
from pipeline.compare import compare
from pipeline.errors import InputError
from pipeline.memory import Sizes
from pipeline.schedules import SCHEDULES


def by_name(S: int, m: int, **options) -> dict[str, dict]:
    return {row["name"]: row for row in compare(S, m, Costs(1, 2), **options)}


def test_all_systems_at_eight_stages():
    found = by_name(8, 32)
    assert list(found) == list(SCHEDULES)
    assert all(row["note"] is None for row in found.values())
    assert found["1f1b"]["relative_throughput"] == 1
    assert found["pipedream-2bw"]["relative_throughput"] == pytest.approx(39 / 32)  # (m + S - 1)/m
    assert found["amdp"]["bubble"] == 0.04
    assert [found[name]["delay"] for name in ("1f1b", "pipedream", "pipedream-2bw", "amdp")] == [0, 7, 1, 1]
    assert found["pipedream"]["microbatches"] == 1
    assert found["pipedream"]["versions"] == 8


def test_what_a_system_does_not_allow_is_a_note():
    found = by_name(6, 7)
    assert found["amdp"]["note"] == "stages = 6: amdp allows multiples of 4"
    assert "multiples of 6" in found["interleaved-1f1b"]["note"]
    assert "bubble" not in found["amdp"]


def test_short_batches_show_both_policies():
    found = by_name(8, 4)
    stall, uniform = found["pipedream-2bw (stall)"], found["pipedream-2bw (uniform)"]
    assert (stall["delay"], uniform["delay"]) == (1, 2)
    assert stall["relative_throughput"] == pytest.approx(2) and uniform["relative_throughput"] == pytest.approx(2.75)


def test_bytes_are_those_of_the_device_that_needs_most():
    row = by_name(4, 4, sizes=Sizes(40, 400, 4000, 40_000))["1f1b"]
    assert row["bytes"] == 10 + 100 + 1000 + 40_000
    parts = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
    assert sum(row[part] for part in parts) == row["bytes"]


def test_unbalanced_stages_slow_the_asynchronous_systems():
    found = {row["name"]: row for row in compare(4, 8, Costs([1, 1, 1, 3], [2, 2, 2, 6]))}
    assert found["pipedream-2bw"]["bubble"] == pytest.approx(1 - 18 / 36)
    assert found["interleaved-1f1b"]["note"].startswith("forward = ")  # has 8 model stages


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="stages = 0"):
        compare(0, 4)
    with pytest.raises(InputError, match="microbatches = 2.5"):
        compare(4, 2.5)
    with pytest.raises(InputError, match="forward = .*: allowed are one number, or 4"):
        compare(4, 4, Costs([1, 2]))
