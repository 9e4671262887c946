"""Period, bubble and fill: facts of the field, and one function for the clock and for a run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pipeline.clock import Costs, simulate
from pipeline.errors import InputError
from pipeline.schedules import make_schedule
from pipeline.timing import timing, timing_of_events


@pytest.mark.parametrize(("S", "bubble"), [(4, Fraction(1, 13)), (8, Fraction(1, 25)), (12, Fraction(1, 37))])
@pytest.mark.parametrize("cycles", [1, 2, 4])
def test_amdp_bubble_at_twice_the_forward(S, bubble, cycles):
    # arXiv 2605.29664's schedule, 1/(3S + 1), whatever the window; fill and drain 3 forwards once.
    found = timing(make_schedule("amdp", S, cycles * S), Costs(1, 2))
    assert (found.bubble, found.fill_and_drain, found.exact) == (bubble, 3, True)


def test_textbook_bubbles():
    costs = Costs(1, 2)
    assert timing(make_schedule("1f1b", 4, 8), costs).bubble == Fraction(3, 11)
    assert timing(make_schedule("gpipe", 4, 8), costs).bubble == Fraction(3, 11)
    assert timing(make_schedule("interleaved-1f1b", 4, 8), costs).bubble == Fraction(3, 19)
    assert timing(make_schedule("pipedream", 8), costs).bubble == 0
    # ZB-H1: (S - 1)(F + B - W) idle with B the gradient of the inputs.
    assert timing(make_schedule("zb-h1", 4, 8), costs).period == 8 * 3 + 3 * (1 + 1 - 1)


def test_pipedream_and_localsgd_slots():
    # T = 2N + 2(S - 1) for N microbatches; a round of LocalSGD with R = S costs 2SH + 2(S - 1).
    S, N, H = 5, 40, 3
    assert max(e.end for e in simulate(make_schedule("pipedream", S), N)) == 2 * N + 2 * (S - 1)
    found = timing(make_schedule("localsgd", S, S * H))
    assert found.period == 2 * S * H + 2 * (S - 1)
    assert found.utilisation == Fraction(H) / (H + 1 - Fraction(1, S))


def test_the_slowest_stage_sets_the_pace_of_an_asynchronous_pipeline():
    found = timing(make_schedule("pipedream-2bw", 4, 8), Costs([1, 1, 3, 1], [2, 2, 6, 2]))
    assert found.period == 8 * 9
    assert found.bubble == 1 - Fraction(8 * (3 + 3 + 9 + 3), 4 * 72)


@pytest.mark.parametrize(("S", "m"), [(4, 1), (4, 2), (6, 4), (8, 3)])
def test_stalling_costs_what_it_should(S, m):
    stall = timing(make_schedule("pipedream-2bw", S, m, policy="stall"), Costs(1, 2))
    assert stall.period == Fraction(m + S - 1, 2) * 3
    assert timing(make_schedule("pipedream-2bw", S, m, policy="uniform"), Costs(1, 2)).period == 3 * m


def test_optimizer_and_reduction_are_not_work():
    plain, paid = (timing(make_schedule("1f1b", 2, 4), Costs(1, 2, optimizer=t)) for t in (0, 6))
    assert paid.work == plain.work
    assert paid.period == plain.period + 6
    assert paid.bubble > plain.bubble


def test_a_trace_in_seconds_is_read_by_the_same_function():
    schedule = make_schedule("pipedream-2bw", 2, 4)
    events = simulate(schedule, 12, Costs(1, 2))
    # A real trace: floats, an offset, jitter.
    jitter = [0.003 * ((7 * n) % 5) for n in range(len(events))]
    trace = [
        replace(e, start=10 + 0.1 * e.start + x, end=10 + 0.1 * e.end + x) for e, x in zip(events, jitter, strict=True)
    ]
    clock, run = timing_of_events(events, schedule), timing_of_events(trace, schedule)
    assert clock.exact and not run.exact
    assert run.period == pytest.approx(0.1 * float(clock.period), rel=0.02)
    assert run.bubble == pytest.approx(float(clock.bubble), abs=0.02)


@pytest.mark.parametrize("S", [3, 9, 16])
def test_hops_lengthen_a_step_by_the_round_trip_of_what_is_in_flight(S):
    # S microbatches in flight go round in S (F + B) + 2 (S - 1) hops: the pattern repeats after S steps.
    found = timing(make_schedule("pipedream", S), Costs(1, 2, hop=1))
    assert found.exact and found.period == Fraction(3 * S + 2 * (S - 1), S)


def test_nothing_takes_time():
    found = timing(make_schedule("1f1b", 2, 2), Costs(0, 0))
    assert (found.period, found.bubble, found.microbatches_per_time()) == (0, 0, 0)


def test_one_step_has_no_period():
    schedule = make_schedule("1f1b", 2, 2)
    with pytest.raises(InputError, match="steps = 1: a period needs at least 2"):
        timing_of_events(simulate(schedule, 1), schedule)
    lost = [e for e in simulate(schedule, 3) if not (e.kind == "step" and e.device == 1 and e.step == 2)]
    with pytest.raises(InputError, match="same number of optimizer steps"):
        timing_of_events(lost, schedule)
