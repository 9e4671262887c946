"""The clock: every cost where it belongs, exact arithmetic, and costs that are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipeline.clock import Costs, simulate
from pipeline.errors import InputError
from pipeline.events import Event, as_rows
from pipeline.schedules import make_schedule


def end_of(events: list[Event], kind: str, stage: int, j: int) -> object:
    return next(e.end for e in events if (e.kind, e.stage, e.microbatch) == (kind, stage, j))


def test_one_microbatch_through_three_stages():
    # 3 forwards, 3 backwards, 4 hops, and the step of the first stage.
    events = simulate(make_schedule("1f1b", 3, 1), 1, Costs(forward=2, backward=5, hop=1, optimizer=7))
    assert max(e.end for e in events) == 3 * 2 + 3 * 5 + 4 * 1 + 7
    assert end_of(events, "forward", 2, 0) == 2 + 1 + 2 + 1 + 2


def test_costs_of_each_stage():
    costs = Costs(forward=[1, 10, 100], backward=[1000, 10_000, 100_000], optimizer=[0, 0, 3])
    events = simulate(make_schedule("gpipe", 3, 1), 1, costs)
    assert max(e.end for e in events) == 111_111
    assert end_of(events, "step", 2, 0) == 111 + 100_000 + 3


def test_messages_of_a_link_follow_each_other():
    # 100 bytes at 10 a unit of time: the second message waits for the first, though it was ready long before.
    costs = Costs(forward=1, backward=1, hop=2, bandwidth=10, message=100)
    events = simulate(make_schedule("gpipe", 2, 3), 1, costs)
    assert [e.start for e in events if (e.kind, e.stage) == ("forward", 1)] == [1 + 10 + 2, 1 + 20 + 2, 1 + 30 + 2]


def test_no_message_between_stages_of_one_device():
    costs = Costs(forward=1, backward=1, hop=100)
    events = simulate(make_schedule("interleaved-1f1b", 1, 2, chunks=3), 1, costs)
    assert max(e.end for e in events) == 4


def test_a_split_backward_lets_the_stage_before_go_on():
    costs = Costs(forward=1, backward=3, weight=1)
    events = simulate(make_schedule("zb-h1", 2, 1), 1, costs)
    assert [(e.kind, e.stage, e.start, e.end) for e in events if e.kind != "step"] == [
        ("forward", 0, 0, 1),
        ("forward", 1, 1, 2),
        ("backward", 1, 2, 4),
        ("backward", 0, 4, 6),
        ("weight", 1, 4, 5),
        ("weight", 0, 6, 7),
    ]


def test_recomputation_runs_every_forward_twice():
    events = simulate(make_schedule("1f1b", 3, 1), 1, Costs(forward=2, backward=5, recompute=True))
    assert max(e.end for e in events) == 3 * 2 + 3 * (5 + 2)
    split = simulate(make_schedule("zb-h1", 1, 1), 1, Costs(forward=2, backward=6, recompute=True))
    assert [e.end - e.start for e in split if e.kind != "step"] == [2, 3 + 2, 3]  # the weight gradient stays half of 6


def test_copies_that_share_their_weights_wait_for_the_sum_and_for_the_owner():
    slow = simulate(make_schedule("amdp", 4, 4), 2, Costs(1, 2, reduce=100, optimizer=7))
    for k in (0, 1):
        contributed = {s: max(e.end for e in slow if (e.kind, e.stage, e.step) == ("reduce", s, k)) for s in range(4)}
        for e in slow:
            if e.kind == "step" and e.step == k:
                assert e.end >= contributed[e.stage] + 100 + 7
    owners = [e for e in slow if e.kind == "step" and e.pipeline == 0]
    assert all(e.end - e.start == 7 for e in owners)
    assert all(e.start == e.end for e in slow if e.kind == "step" and e.pipeline > 0)


def test_averaging_replicas_takes_the_device_its_time():
    free = simulate(make_schedule("localsgd", 2, 4), 2, Costs(1, 1))
    paid = simulate(make_schedule("localsgd", 2, 4), 2, Costs(1, 1, reduce=5))
    assert max(e.end for e in paid) == max(e.end for e in free) + 2 * 5


def test_fractions_stay_exact():
    costs = Costs(forward=Fraction(1, 3), backward=Fraction(2, 7), hop=Fraction(1, 5))
    events = simulate(make_schedule("1f1b", 4, 4), 1, costs)
    one = 4 * Fraction(1, 3) + 4 * Fraction(2, 7) + 6 * Fraction(1, 5)
    first = next(e for e in events if (e.kind, e.stage, e.microbatch) == ("backward", 0, 0))
    assert first.end == one
    assert isinstance(as_rows([first])[0]["end"], float)
    assert all(isinstance(e.end, int) for e in simulate(make_schedule("1f1b", 2, 2), 1))


def test_floats_give_the_same_times_to_round_off():
    for name in ("1f1b", "amdp", "interleaved-1f1b"):
        schedule = make_schedule(name, 4, 8)
        exact = simulate(schedule, 3, Costs(Fraction(1, 10), Fraction(3, 10), hop=Fraction(1, 100)))
        rough = simulate(schedule, 3, Costs(0.1, 0.3, hop=0.01))
        order = sorted((e.kind, e.stage, e.microbatch, e.pipeline, float(e.end)) for e in exact)
        other = sorted((e.kind, e.stage, e.microbatch, e.pipeline, float(e.end)) for e in rough)
        assert [row[:4] for row in order] == [row[:4] for row in other]
        # A few hundred additions of numbers below 100.
        assert max(abs(x[4] - y[4]) for x, y in zip(order, other, strict=True)) < 1e-12


@pytest.mark.parametrize("field", ["forward", "backward", "weight", "hop", "message", "optimizer", "reduce"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2", True, [1, -1]])
def test_bad_costs_are_refused_by_field(field, value):
    with pytest.raises(InputError, match=f"^{field} = "):
        Costs(**{field: value})


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_bad_bandwidth_is_refused(value):
    with pytest.raises(InputError, match="^bandwidth = .* above 0"):
        Costs(bandwidth=value)


@pytest.mark.parametrize(("name", "needed"), [("1f1b", 3), ("interleaved-1f1b", 6)])
def test_costs_of_the_wrong_length_are_refused(name, needed):
    with pytest.raises(InputError, match=rf"forward = \[1, 2\]: allowed are one number, or {needed} of them"):
        simulate(make_schedule(name, 3), 1, Costs(forward=[1, 2]))


def test_a_weight_gradient_longer_than_its_backward_is_refused():
    with pytest.raises(InputError, match="weight = 3: allowed is at most backward = 2"):
        simulate(make_schedule("zb-h1", 2), 1, Costs(1, 2, weight=3))
