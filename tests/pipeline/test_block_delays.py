"""Block-update delays: counted by hand, under every convention, and constant in the steady state."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.block_delays import CONVENTIONS, block_delays, block_update_delay
from pipeline.clock import simulate
from pipeline.delays import delays_of
from pipeline.errors import InputError
from pipeline.schedules import make_schedule

# Randomized PipeDream (arXiv 2606.03498), S = 4: row = active stage, column = block read; counted by hand.
STAGE_ORDER = [[14, 11, 9, 6], [12, 9, 7, 4], [11, 8, 6, 3], [9, 6, 4, 1]]


def pipedream(S: int, microbatches: int | None = None) -> list:
    return simulate(make_schedule("pipedream", S), microbatches or 6 * S)


def test_four_stages_in_stage_order():
    block = block_update_delay(pipedream(4), 4)
    assert block["matrix"] == STAGE_ORDER
    assert (block["max"], block["mean"], block["min"]) == (14, 7.5, 1)
    assert (block["startup_max"], block["minimal_max"], block["convention"]) == (16, 12, "stage order")


def test_conventions_at_sixteen_stages():
    found = {name: block_update_delay(pipedream(16), 16, name) for name in CONVENTIONS}
    assert {name: (b["max"], b["mean"]) for name, b in found.items()} == {
        "stage order": (248, 127.5),
        "physical": (248, 131.5),
        "slot": (248, 128.0),
        "minimal": (240, 120.0),
    }
    # The slot convention on an even number of stages: S/2 (2S - r - a + 1), exactly.
    one_based = np.arange(1, 17)
    assert found["slot"]["matrix"] == (8 * (33 - one_based[:, None] - one_based[None, :])).tolist()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("S", [1, 2, 3, 7, 8])
def test_every_steady_microbatch_has_the_same_delays(S, convention):
    delays = block_delays(pipedream(S, 8 * S), S, convention)
    steady = delays[2 * S : -S]
    assert (steady == steady[0]).all()


def naive(events: list, S: int, convention: str) -> np.ndarray:
    """The definitions, word by word, with loops."""
    updates = sorted((e.start, e.stage, e.microbatch) for e in events if e.kind == "backward")
    reads = {(e.microbatch, e.stage): e.start for e in events if e.kind == "forward"}
    out = np.zeros((len(updates) // S, S, S), dtype=int)
    for index, (slot, a, j) in enumerate(updates):
        for r in range(S):
            start = reads[j, r]
            if convention in ("stage order", "minimal"):
                seen = sum((t, s) < (start, r) for t, s, _ in updates)
            else:
                seen = sum(t < start for t, _, _ in updates)
            if convention == "slot":
                index = sum(t < slot for t, _, _ in updates)
            if convention == "minimal":
                # The longest prefix of updates after which block r still has the value that was read.
                while seen < index and updates[seen][1] != r:
                    seen += 1
            out[j, a, r] = max(index - seen, 0)
    return out


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("S", [1, 2, 3, 5])
def test_arrays_equal_the_definitions(S, convention):
    events = pipedream(S, 4 * S)
    assert (block_delays(events, S, convention) == naive(events, S, convention)).all()


def test_start_up_is_worse_than_the_steady_state_from_three_stages_on():
    for S in range(1, 13):
        block = block_update_delay(pipedream(S), S)
        assert block["startup_max"] == 5 * S * S // 4 - S
        assert (block["startup_max"] > block["max"]) == (S >= 3)


def test_a_trace_in_seconds_is_counted_too():
    events = simulate(make_schedule("pipedream", 2), 12)
    from dataclasses import replace

    shifted = [replace(e, start=0.01 * e.start + 1e-4 * e.stage, end=0.01 * e.end + 1e-4 * e.stage) for e in events]
    assert block_update_delay(shifted, 2)["matrix"] == block_update_delay(events, 2)["matrix"]


@pytest.mark.mutation
def test_a_read_one_slot_late_is_seen():
    from dataclasses import replace

    events = [replace(e, start=e.start + 1, end=e.end + 1) if e.kind == "forward" else e for e in pipedream(4)]
    assert block_update_delay(events, 4)["matrix"] != STAGE_ORDER


def test_bad_input():
    with pytest.raises(InputError, match="convention = 'slots': allowed are stage order, physical, slot, minimal"):
        block_delays(pipedream(2), 2, "slots")
    with pytest.raises(InputError, match="9 microbatches are too few for a steady state of 4 stages"):
        block_update_delay(pipedream(4, 9), 4)
    with pytest.raises(InputError, match="expected one for each of 3 stages"):
        block_delays(pipedream(2), 3)
    with pytest.raises(InputError, match="convention = 'x'"):
        delays_of("pipedream", 2, convention="x")
