"""The order of each schedule, against what its paper describes; written out by hand where it is short."""

from __future__ import annotations

from collections import Counter

import pytest

from pipeline.errors import InputError
from pipeline.schedules import make_schedule
from pipeline.schedules.amdp import AMDP
from pipeline.schedules.base import Schedule

LETTER = {"forward": "F", "backward": "B", "weight": "W"}


def order(schedule: Schedule, device: int, steps: int = 1) -> str:
    """The passes of a device as text, e.g. "F0 F1 B0 B1"."""
    return " ".join(
        f"{LETTER[a.kind]}{a.microbatch}" for a in schedule.actions(device, steps) if a.kind in LETTER
    )


def test_gpipe_runs_all_forwards_first():
    assert order(make_schedule("gpipe", 3, 3), 2) == "F0 F1 F2 B0 B1 B2"


def test_1f1b_warms_up_with_s_minus_1_minus_s_forwards():
    schedule = make_schedule("1f1b", 4, 5)
    assert order(schedule, 0) == "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4"
    assert order(schedule, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"


def test_zb_h1_puts_weight_gradient_n_minus_s_after_backward_n():
    # Qi et al. 2024, figure of ZB-H1: 1F1B, W(n - s) right after B(n) at stage s, the rest at the end.
    schedule = make_schedule("zb-h1", 3, 4)
    assert order(schedule, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3"
    assert order(schedule, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3"


def test_interleaved_order_of_megatron():
    # Narayanan et al. 2021b: S = 2, v = 2, m = 4. Device 0 holds stages 0 and 2; groups of S microbatches a chunk.
    schedule = make_schedule("interleaved-1f1b", 2, 4, chunks=2)
    actions = [a for a in schedule.actions(0, 1) if a.kind != "step"]
    assert [(LETTER[a.kind], a.stage, a.microbatch) for a in actions] == [
        ("F", 0, 0),
        ("F", 0, 1),
        ("F", 2, 0),
        ("F", 2, 1),
        ("F", 0, 2),
        ("B", 2, 0),
        ("F", 0, 3),
        ("B", 2, 1),
        ("F", 2, 2),
        ("B", 0, 0),
        ("F", 2, 3),
        ("B", 0, 1),
        ("B", 2, 2),
        ("B", 2, 3),
        ("B", 0, 2),
        ("B", 0, 3),
    ]


def test_pipemare_shares_a_slot_between_forward_and_backward():
    # Stage s: backward j - (2(S - s) - 1) after forward j.
    schedule = make_schedule("pipemare", 2, 1)
    assert order(schedule, 0, 6) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5"
    assert order(schedule, 1, 4) == "F0 F1 B0 F2 B1 F3 B2 B3"


def test_localsgd_waits_for_its_replica():
    schedule = make_schedule("localsgd", 4, 6, replicas=2)
    assert order(schedule, 0) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5"
    assert order(schedule, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"
    steps = [(a.pipeline, a.version) for a in schedule.actions(0, 1) if a.kind == "step"]
    assert steps == [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]  # three local steps of each replica
    assert [a.kind for a in schedule.actions(0, 2)].count("reduce") == 2  # one average a round


# arXiv 2605.29664, S = 4: ids within a cycle, ' = of the cycle before.
AMDP_FOUR = {
    0: "F0 F2 B2' F1 B1 F3 B3 B0",
    1: "F0 F1 F2 F3 B1 B0 B3 B2",
    2: "F1 F0 F3 F2 B0 B1 B2 B3",
    3: "F1 F3 B3' F0 B0 F2 B2 B1",
}


@pytest.mark.parametrize("device", range(4))
def test_amdp_order_of_four_stages(device):
    # The second cycle of a run: 8 microbatches, ids from 4.
    steady = order(make_schedule("amdp", 4, 8), device).split()
    first = 7 if "'" in AMDP_FOUR[device] else 8
    cycle = []
    for word in steady[first : first + 8]:
        kind, j = word[0], int(word[1:])
        cycle.append(f"{kind}{j - 4}" if j >= 4 else f"{kind}{j}'")
    assert " ".join(cycle) == AMDP_FOUR[device]


@pytest.mark.parametrize("S", [4, 8, 12])
def test_amdp_step_stands_before_the_first_backward_of_the_next_window(S):
    schedule = make_schedule("amdp", S, 2 * S)
    for device in range(S):
        actions = list(schedule.actions(device, 3))
        at = [n for n, a in enumerate(actions) if a.kind == "step"]
        assert len(at) == 3 * S // 2
        for n in at[: 2 * S // 2]:
            k = actions[n].step
            backwards = [a.step for a in actions[n:] if a.kind == "backward"]
            assert set(backwards) == set(range(k + 1, 3))
            assert all(a.step <= k for a in actions[:n] if a.kind == "backward")


def test_amdp_places_every_stage_of_every_pipeline():
    schedule = AMDP(8, 8)
    for pipeline in range(4):
        assert sorted(schedule.device_of(stage, pipeline) for stage in range(8)) == list(range(8))
    for device in range(8):
        held = schedule.copies(device)
        assert len(held) == 4 and len({stage for stage, _ in held}) == 4  # half the model
        assert {stage for stage, _ in held} >= ({0, 7} if device % 4 in (0, 3) else set())


@pytest.mark.parametrize("S", [4, 8, 12, 16])
@pytest.mark.parametrize("cycles", [1, 3])
def test_amdp_gap_is_one_step_on_the_first_cycle_of_a_window(S, cycles):
    schedule = AMDP(S, cycles * S)
    for k in (0, 1, 2):
        gaps: Counter[int] = Counter()
        for stage in range(S):
            for j in range(k * cycles * S, (k + 1) * cycles * S):
                gap = schedule.backward_version(stage, j) - schedule.version(stage, j)
                assert gap in (0, 1)
                assert gap == 0 or j - k * cycles * S < S
                gaps[stage] += gap
        expected = {} if k == 0 else {stage: S if stage < S - 1 else S // 2 for stage in range(S)}
        assert {stage: count for stage, count in gaps.items() if count} == expected


def test_stalling_2bw_runs_a_ready_backward_first():
    schedule = make_schedule("pipedream-2bw", 4, 1, policy="stall")
    assert order(schedule, 0, 4) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert order(schedule, 3, 4) == "F0 B0 F1 B1 F2 B2 F3 B3"


def test_uniform_2bw_keeps_the_plain_order_and_a_longer_delay():
    schedule = make_schedule("pipedream-2bw", 8, 3, policy="uniform")
    assert (schedule.delay, schedule.versions_stored(0)) == (3, 4)
    assert order(schedule, 2, 8) == order(make_schedule("pipedream", 8, 3), 2, 8)
    assert make_schedule("pipedream-2bw", 8, 7, policy="uniform").delay == 1
    assert make_schedule("pipedream-2bw", 1, 1, policy="uniform").delay == 1


def test_uniform_delay_is_at_least_what_the_depth_needs():
    assert make_schedule("uniform", 8, 3).tau == 3
    assert make_schedule("uniform", 1, 1).tau == 0
    assert (make_schedule("uniform", 4, 4, tau=2).versions_stored(0), make_schedule("uniform", 4, 4).tau) == (3, 1)
    two = make_schedule("pipedream-2bw", 4, 4)
    same = make_schedule("uniform", 4, 4, tau=1)
    assert all(list(two.actions(d, 3)) == list(same.actions(d, 3)) for d in range(4))
    for tau in (2, True, 1.0, "3"):
        with pytest.raises(InputError, match="tau = .*: uniform with 8 stages and 3 microbatches allows integers"):
            make_schedule("uniform", 8, 3, tau=tau)
