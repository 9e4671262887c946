"""Schedules, clock and delay counts: facts of the field, bad input, and that an off-by-one is seen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.block_delays import block_update_delay
from pipeline.clock import Costs, simulate
from pipeline.delays import delays_of, delays_per_microbatch, optimizer_step_delay, version_mismatch
from pipeline.errors import InputError
from pipeline.events import Event, as_rows, from_rows
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.pipedream import PipeDream
from pipeline.schedules.pipedream_2bw import PipeDream2BW

NAMES = sorted(SCHEDULES)


@given(name=st.sampled_from(NAMES), S=st.integers(1, 9), extra=st.integers(0, 6), steps=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_the_clock_respects_dependencies_and_devices(name, S, extra, steps):
    try:
        schedule = make_schedule(name, S, max(S - 1, 1) + extra)
    except InputError:  # amdp and the schedules that need multiples
        S = 4 * (1 + S % 2)
        schedule = make_schedule(name, S, S * (1 + extra % 3))
    events = simulate(schedule, steps, Costs(forward=1, backward=2, hop=0.5))
    last = schedule.model_stages - 1
    end = {(e.kind, e.stage, e.microbatch): e.end for e in events}
    free = dict.fromkeys(range(schedule.devices), 0.0)
    written = {copy: 0 for d in range(schedule.devices) for copy in schedule.copies(d)}
    # A step and the forward after it share an instant; on its device the step comes first.
    for e in sorted(events, key=lambda e: (e.start, e.kind != "step")):
        assert e.start >= free[e.device] and e.device == schedule.device_of(*e.copy)
        free[e.device] = e.end
        apart = 0.0 if schedule.devices == 1 else 0.5
        if e.kind == "forward":
            assert e.version <= written[e.copy], "a version is read before it is written"
            if e.stage > 0:
                assert e.start >= end["forward", e.stage - 1, e.microbatch] + apart
        elif e.kind == "backward":
            needed = ("forward", e.stage) if e.stage == last else ("backward", e.stage + 1)
            assert e.start >= end[(*needed, e.microbatch)] + (0.0 if e.stage == last else apart)
        elif e.kind == "weight":
            assert e.start >= end["backward", e.stage, e.microbatch]
        elif e.kind == "step":
            assert e.version == written[e.copy] + 1
            written[e.copy] = e.version


@pytest.mark.parametrize("S", [1, 2, 4, 8])
def test_optimizer_step_delays_of_the_three_schedules(S):
    assert delays_of("1f1b", S)["optimizer_step_delay"] == [0] * S
    assert delays_of("pipedream", S)["optimizer_step_delay"] == [S - 1 - s for s in range(S)]
    assert delays_of("pipedream-2bw", S)["optimizer_step_delay"] == [1] * S


def test_start_up_of_2bw_is_one_ordinary_step():
    delays = delays_per_microbatch(simulate(make_schedule("pipedream-2bw", 3, 4), 3))
    assert delays == {s: [0] * 4 + [1] * 8 for s in range(3)}


def test_pipedream_block_update_delay_for_four_stages():
    # Randomized PipeDream (arXiv 2606.03498): delta = S^2 - S/2 + O(1); the entries were counted by hand for S = 4.
    block = delays_of("pipedream", 4)["block_update_delay"]
    assert block["matrix"] == [[14, 11, 9, 6], [12, 9, 7, 4], [11, 8, 6, 3], [9, 6, 4, 1]]
    assert (block["max"], block["mean"], block["min"]) == (14, 7.5, 1)
    assert (block["startup_max"], block["minimal_max"]) == (16, 12)


def test_steady_state_needs_enough_microbatches():
    with pytest.raises(InputError, match="too few"):
        block_update_delay(simulate(make_schedule("pipedream", 4), 9), 4)


@pytest.mark.parametrize("S", [2, 3, 4])
def test_synchronous_1f1b_has_the_textbook_bubble(S):
    # Bubble (S-1)/(m+S-1) of a flushing pipeline, Narayanan et al. 2019: from the period of one step.
    m = 2 * S
    events = simulate(make_schedule("1f1b", S, m), 3, Costs(forward=1, backward=2))
    steps = sorted(e.end for e in events if e.kind == "step" and e.stage == 0)
    assert steps[2] - steps[1] == 3 * (m + S - 1)


@dataclass(frozen=True)
class NewestOfTwo(PipeDream2BW):
    """2BW with its version rule off by one."""

    def version(self, stage, microbatch):
        return microbatch // self.microbatches


@dataclass(frozen=True)
class OlderPipeDream(PipeDream):
    """PipeDream that stashes one version too old."""

    def version(self, stage, microbatch):
        return max(super().version(stage, microbatch) - 1, 0)


@pytest.mark.parametrize(("broken", "sound"), [(NewestOfTwo(2, 4), [1, 1]), (OlderPipeDream(3, 1), [2, 1, 0])])
def test_an_off_by_one_in_the_version_rule_changes_the_count(broken, sound):
    assert optimizer_step_delay(simulate(type(broken).__mro__[1](broken.stages, broken.microbatches), 8)) == sound
    assert optimizer_step_delay(simulate(broken, 8)) != sound


def test_a_lost_gradient_is_seen():
    events = simulate(make_schedule("pipedream-2bw", 2, 2), 3)
    last_step = max(i for i, e in enumerate(events) if e.kind == "step")
    with pytest.raises(InputError, match="no step applied"):
        delays_per_microbatch(events[:last_step] + events[last_step + 1 :])


def test_a_gradient_counted_twice_is_seen():
    events = simulate(make_schedule("1f1b", 2, 2), 2)
    twice = next(e for e in events if e.kind == "backward")
    with pytest.raises(InputError, match="two backwards"):
        delays_per_microbatch([*events, twice])


def test_a_backward_on_another_version_is_a_mismatch():
    forward, step = Event("forward", 0, 3, 3, 2, 0, 1), Event("step", 0, 3, 3, 4, 2, 2)
    assert version_mismatch([forward, Event("backward", 0, 3, 3, 2, 1, 2), step]) == 0
    assert version_mismatch([forward, Event("backward", 0, 3, 3, 3, 1, 2), step]) == 1


def test_events_survive_json_rows():
    events = simulate(make_schedule("pipedream", 3), 5)
    assert from_rows(as_rows(events)) == events


@pytest.mark.parametrize(
    ("name", "S", "m", "message"),
    [
        ("gpipe2", 2, None, "'gpipe2': allowed are"),
        ("1f1b", 0, None, "stages = 0"),
        ("1f1b", 2, 0, "microbatches = 0"),
        ("1f1b", True, 1, "stages = True"),
        ("1f1b", 2.0, 1, r"stages = 2\.0"),
        ("uniform", 5, 1.5, "microbatches = 1.5"),
        ("pipedream-2bw", 5, 3, "microbatches = 3: pipedream-2bw with 5 stages needs at least 4"),
    ],
)
def test_bad_schedules_are_refused_by_field(name, S, m, message):
    with pytest.raises(InputError, match=message):
        make_schedule(name, S, m)


