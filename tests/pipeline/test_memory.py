"""Peak memory, counted by hand on small schedules."""

from __future__ import annotations

import pytest

from pipeline.clock import simulate
from pipeline.errors import InputError
from pipeline.memory import Sizes, memory, peak_memory
from pipeline.schedules import SCHEDULES, make_schedule

SIZES = Sizes(40, 400, 4000, 40_000, 7)


def test_1f1b_by_hand():
    # Stage 0 of 4: one version (10), one gradient buffer (100), state (1000), 4 microbatches of 10 000 in flight.
    first, *_, last = memory(make_schedule("1f1b", 4, 8), SIZES)
    assert (first.weights, first.gradients, first.optimizer, first.activations) == (10, 100, 1000, 40_000)
    assert first.total == 41_110
    assert (last.in_flight_total, last.activations) == (1, 10_000)


def test_recomputation_keeps_stage_inputs_and_one_backward():
    first = memory(make_schedule("1f1b", 4, 8), SIZES, recompute=True)[0]
    # Three stage inputs, and in full the one whose backward runs.
    assert first.activations == 3 * 7 + 10_000


def test_pipedream_stashes_and_2bw_keeps_two():
    assert [d.weights for d in memory(make_schedule("pipedream", 4), SIZES)] == [40, 30, 20, 10]
    assert [d.weights for d in memory(make_schedule("pipedream-2bw", 4, 4), SIZES)] == [20] * 4
    assert [d.weights for d in memory(make_schedule("pipedream-vertical-sync", 4, 1), SIZES)] == [40] * 4


def test_amdp_holds_half_the_model_and_one_stage_of_optimizer_state():
    for device in memory(make_schedule("amdp", 8, 8), SIZES):
        assert device.weights == 20
        assert device.optimizer == 500  # the owner of a stage steps, the other copies receive its weights
        assert device.in_flight_total <= 8


def test_replicas_of_localsgd_have_their_own_weights_and_state():
    first = memory(make_schedule("localsgd", 4, 6, replicas=3), SIZES)[0]
    assert (first.weights, first.optimizer) == (3 * 10, 3 * 1000)


def test_split_backward_holds_activations_until_the_weight_gradient():
    assert [d.in_flight_total for d in memory(make_schedule("zb-h1", 4, 8), SIZES)] == [4] * 4


def test_recomputation_of_a_split_backward():
    # Between B and W a microbatch needs its activations in full: s of them wait at stage s, and one is in its B.
    recomputed = memory(make_schedule("zb-h1", 4, 8), Sizes(0, 0, 0, 4, 0), recompute=True)
    assert [d.activations for d in recomputed] == [1, 2, 3, 4]
    # The gradients of the outputs wait too.
    waiting = memory(make_schedule("zb-h1", 4, 8), Sizes(0, 0, 0, 0, 1))
    assert [d.activations for d in waiting] == [1, 2, 3, 4]


def test_sizes_of_each_stage():
    sizes = Sizes([1, 2, 3], 0, 0, 0)
    assert [d.total for d in memory(make_schedule("1f1b", 3), sizes)] == [1, 2, 3]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("S", [1, 2, 4, 8])
def test_a_schedule_states_its_versions_and_microbatches_in_flight(name, S):
    for m in (S, 2 * S):
        try:
            schedule = make_schedule(name, S, m)
        except InputError:
            assert name == "amdp"
            continue
        for device in memory(schedule):
            assert device.versions == {stage: schedule.versions_stored(stage) for stage in device.versions}
            assert device.in_flight == {stage: schedule.in_flight(stage) for stage in device.in_flight}


def test_a_trace_is_read_like_the_clock():
    schedule = make_schedule("pipedream-2bw", 2, 2)
    events = simulate(schedule, 6)
    assert peak_memory(events, schedule, SIZES) == memory(schedule, SIZES)


@pytest.mark.parametrize("field", ["weight", "gradient", "optimizer", "activation", "boundary"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2", True])
def test_bad_sizes_are_refused_by_field(field, value):
    with pytest.raises(InputError, match=f"^{field}_bytes = "):
        Sizes(**{f"{field}_bytes": value})


def test_sizes_of_the_wrong_length_are_refused():
    with pytest.raises(InputError, match=r"weight_bytes = \[1, 2\]: allowed are one number, or 3 of them"):
        memory(make_schedule("1f1b", 3), Sizes([1, 2]))
