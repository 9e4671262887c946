"""The delay that a bound takes from a schedule: exact, and refused where the schedule has no such delay."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipeline.delays import delays_of
from theory import BOUNDS, InputError
from theory.assumptions import FIXED
from theory.delays import CLOSED_FORMS, block_update_delay, optimizer_step_delay
from theory.delays.of_bounds import schedule_delay

SCHEDULES = [name for name in CLOSED_FORMS if "(" not in name]
KINDS = {"fixed-delay", "delayed-gd", "no-delay"}
ONE_STEP = [name for name, bound in BOUNDS.items() if KINDS & set(bound.assumptions)]
BLOCKS = [name for name, bound in BOUNDS.items() if "delta_max" in bound.symbols]
#: One delay for the whole model, gradients at one point; S = 4.
SINGLE = {"gpipe": 0, "1f1b": 0, "interleaved-1f1b": 0, "zb-h1": 0, "pipedream-vertical-sync": 3}
SINGLE |= {"pipedream-2bw": 1, "uniform": 1}
NONE = {"pipedream": "by stage it is 3 2 1 0", "paci": "up to 1 steps newer", "pipemare": "up to 2 steps newer"}
NONE |= {"amdp": "up to 1 steps newer", "localsgd": "replicas"}


def test_every_schedule_has_a_single_delay_or_says_why_not() -> None:
    assert set(SINGLE) | set(NONE) == set(SCHEDULES)
    for schedule, tau in SINGLE.items():
        found = schedule_delay(BOUNDS["delayed-lmo"], schedule, 4)
        assert found.values == {"tau": tau} and optimizer_step_delay(schedule, 4)[:4] == [tau] * 4
        assert f"{schedule}, S = 4: tau = {tau}" in found.words
    for schedule, why in NONE.items():
        with pytest.raises(InputError, match=rf"bound delayed-lmo: {schedule} has no single delay: .*{why}"):
            schedule_delay(BOUNDS["delayed-lmo"], schedule, 4)


@pytest.mark.parametrize("schedule", SINGLE)
def test_tau_is_the_age_of_every_gradient_that_the_schedule_enumerates(schedule: str) -> None:
    """The assumption itself, read from events: one age, of every stage, on average as at most, no gap."""
    for S in (1, 2, 4):
        counted = delays_of(schedule, S, None)
        tau = schedule_delay(BOUNDS["delayed-gd"], schedule, S).values["tau"]
        assert {Fraction(tau)} == set(counted["mean_delay"]) == set(map(Fraction, counted["optimizer_step_delay"]))
        assert not any(counted["version_gap"])


def test_delta_max_is_the_largest_of_a_whole_run() -> None:
    for S in (1, 2, 3, 4, 7, 16):
        block = block_update_delay(S)
        for name in BLOCKS:
            assert schedule_delay(BOUNDS[name], "pipedream", S).values == {"delta_max": block["startup_max"], "S": S}
        counted = delays_of("pipedream", S, 1)["block_update_delay"]
        assert counted["startup_max"] == block["startup_max"] >= block["max"]
    assert schedule_delay(BOUNDS["rpd-b"], "pipedream", 16).values["delta_max"] == 304
    assert "248 after start-up" in schedule_delay(BOUNDS["rpd-b"], "pipedream", 16).words
    assert schedule_delay(BOUNDS["rpd-b"], "pipedream", 10_000, 1).values["delta_max"] == 5 * 10**8 // 4 - 10**4
    assert schedule_delay(BOUNDS["pipedream-exact"], "pipedream", 16).values == {"S": 16}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_every_bound_takes_its_delay_from_a_schedule_or_refuses(name: str) -> None:
    bound, taken = BOUNDS[name], 0
    for schedule in SCHEDULES:
        try:
            found = schedule_delay(bound, schedule, 4)
        except InputError as error:
            assert "\n" not in str(error) and f"bound {name}: " in str(error)
        else:
            taken += 1
            assert set(found.values) <= set(bound.symbols)
            fixed = [FIXED[one][1] for one in bound.assumptions if one in FIXED]
            assert not fixed or (fixed == [SINGLE[schedule]] and found.values == {})
    assert (taken > 0) == (name in ONE_STEP or "pipedream" in bound.assumptions or name in BLOCKS)


def test_microbatches_and_policies() -> None:
    tau = BOUNDS["delayed-lmo"]
    few = [schedule_delay(tau, "pipedream-2bw", 4, 1, policy).values["tau"] for policy in ("stall", "uniform")]
    assert few == [1, 3] and schedule_delay(tau, "pipedream-vertical-sync", 4, 3).values == {"tau": 1}
    for words, said in (
        (("pipedream-2bw", 4, 2), "m=2 is not allowed: pipedream-2bw needs m >= S - 1"),
        (("pipedream-vertical-sync", 4, 2), "at most 2 steps and 3/2 on average"),
        (("gpipe", 4, 4, "stall"), "policy: 'stall' is not allowed with gpipe"),
        (("amdp", 6), "amdp needs S a multiple of 4"),
        (("gpipe", 0), "S must be an integer >= 1"),
        (("gpipe", 2, 0), "m must be an integer >= 1"),
        (("nothing", 2), "schedule: 'nothing' is unknown; known: gpipe, .*, localsgd$"),
    ):
        with pytest.raises(InputError, match=said):
            schedule_delay(tau, *words)
    with pytest.raises(InputError, match="bound rpd-b: is about steps of single stages.*not of pipedream with 2"):
        schedule_delay(BOUNDS["rpd-b"], "pipedream", 4, 2)
    with pytest.raises(InputError, match=r"error-feedback: gpipe has delay 0; tau = 0 contradicts delay-one"):
        schedule_delay(BOUNDS["error-feedback"], "gpipe", 4)
