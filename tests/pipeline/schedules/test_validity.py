"""Validity: true of every schedule that ships, and each way to break one is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pipeline.errors import InputError
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.amdp import AMDP
from pipeline.schedules.base import Action, Schedule
from pipeline.schedules.local_sgd import LocalSGD
from pipeline.schedules.one_f_one_b import OneFOneB
from pipeline.schedules.pipedream import PipeDream
from pipeline.schedules.pipedream_2bw import PipeDream2BW
from pipeline.schedules.zb_h1 import ZBH1
from pipeline.validity import check


def allowed(name: str, S: int, m: int) -> Schedule | None:
    try:
        return make_schedule(name, S, m)
    except InputError:
        return None


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("S", [1, 2, 3, 4, 6, 8])
def test_schedules_are_valid(name, S):
    schedules = [s for m in {1, max(S - 1, 1), S, S + 1, 2 * S, 3 * S} if (s := allowed(name, S, m))]
    for schedule in schedules:
        result = check(schedule)
        assert result.problems == [], schedule
        assert result.valid
    assert schedules or name == "amdp"


@pytest.mark.parametrize("S", [12, 16])
def test_deep_amdp_is_valid(S):
    for cycles in (1, 2):
        result = check(AMDP(S, cycles * S))
        assert result.problems == [] and result.deadlocks["paired"] is None


@pytest.mark.parametrize("policy", ["stall", "uniform"])
@pytest.mark.parametrize(("S", "m"), [(3, 1), (4, 1), (4, 2), (6, 4), (8, 3), (8, 6)])
def test_short_batches_are_valid_under_both_policies(S, m, policy):
    result = check(PipeDream2BW(S, m, policy))
    assert result.problems == [] and result.deadlocks["paired"] is None


@pytest.mark.parametrize(
    "name", ["1f1b", "zb-h1", "pipedream", "pipedream-2bw", "paci", "pipemare", "localsgd", "amdp"]
)
@pytest.mark.parametrize("S", [4, 8])
def test_one_by_one_rendezvous_deadlocks_and_paired_sends_do_not(name, S):
    found = check(make_schedule(name, S, S)).deadlocks
    assert found["buffered"] is None and found["paired"] is None
    assert found["rendezvous"] is not None and "waits to send the forward" in found["rendezvous"]


def test_gpipe_needs_no_buffer():
    # All forwards flow one way, then all backwards the other.
    assert set(check(make_schedule("gpipe", 4, 8)).deadlocks.values()) == {None}


def test_interleaved_needs_receives_further_ahead_once_m_exceeds_s():
    assert check(make_schedule("interleaved-1f1b", 4, 4)).deadlocks["paired"] is None
    assert check(make_schedule("interleaved-1f1b", 4, 8)).deadlocks["paired"] is not None


def test_one_stage_sends_nothing():
    for name in SCHEDULES:
        if schedule := allowed(name, 1, 2):
            assert set(check(schedule).deadlocks.values()) == {None}


@dataclass(frozen=True)
class Dropped(OneFOneB):
    """The last backward of stage 1 is missing."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        if device == 1:
            last = max(n for n, a in enumerate(actions) if a.kind == "backward")
            del actions[last]
        return iter(actions)


@dataclass(frozen=True)
class Twice(OneFOneB):
    """Stage 0 runs its first backward again after the last of the batch."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        for action in super().actions(device, steps):
            if action.kind == "step" and device == 0:
                yield self.backward(0, self.microbatches * action.step)
            yield action


@dataclass(frozen=True)
class EarlyStep(OneFOneB):
    """Stage 0 steps before the last backward of the batch."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        for n, action in enumerate(actions):
            if action.kind == "step" and device == 0:
                actions[n - 1], actions[n] = actions[n], actions[n - 1]
        return iter(actions)


@dataclass(frozen=True)
class TooNew(PipeDream):
    """Reads a version before it is written."""

    def version(self, stage: int, microbatch: int) -> int:
        return super().version(stage, microbatch) + 1


@dataclass(frozen=True)
class Negative(PipeDream):
    """Reads versions before version 0."""

    def version(self, stage: int, microbatch: int) -> int:
        return super().version(stage, microbatch) - 1


@dataclass(frozen=True)
class Stashes(PipeDream):
    """States one version too few."""

    def versions_stored(self, stage: int) -> int:
        return max(super().versions_stored(stage) - 1, 1)


@dataclass(frozen=True)
class Early(OneFOneB):
    """The first backward comes before its forward."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        if device == self.stages - 1:
            actions[0], actions[1] = actions[1], actions[0]
        return iter(actions)


@dataclass(frozen=True)
class Backwards(OneFOneB):
    """Stage 1 expects the first two microbatches in the wrong order."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        if device == 1:
            forwards = [n for n, a in enumerate(actions) if a.kind == "forward"][:2]
            actions[forwards[0]], actions[forwards[1]] = actions[forwards[1]], actions[forwards[0]]
        return iter(actions)


@dataclass(frozen=True)
class Elsewhere(OneFOneB):
    """Says that its stages lie on other devices than they do."""

    def device_of(self, stage: int, pipeline: int = 0) -> int:
        return self.stages - 1 - stage


@dataclass(frozen=True)
class NoWeight(ZBH1):
    """The weight gradient of microbatch 0 is forgotten at stage 0."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        return (a for a in super().actions(device, steps) if (a.kind, device, a.microbatch) != ("weight", 0, 0))


@dataclass(frozen=True)
class LateStep(AMDP):
    """As in the authors' code: on edge devices the step comes after the first backward of the new window."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        if device % 4 in (0, 3):
            for n in range(len(actions) - 1):
                if actions[n].kind == "step" and actions[n + 1].kind == "backward":
                    first = n
                    while actions[first - 1].kind == "step":
                        first -= 1
                    actions.insert(first, actions.pop(n + 1))
        return iter(actions)


@dataclass(frozen=True)
class NoReduction(AMDP):
    """One copy's gradient is left out of the sum."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        return (a for a in super().actions(device, steps) if (a.kind, a.copy, a.step) != ("reduce", (0, 1), 0))


@dataclass(frozen=True)
class NeverAverages(LocalSGD):
    """Stage 1 never averages its replicas."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        return (a for a in super().actions(device, steps) if (a.kind, device) != ("reduce", 1))


@dataclass(frozen=True)
class AveragesTwice(LocalSGD):
    """Every average is made twice."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        for action in super().actions(device, steps):
            yield action
            if action.kind == "reduce":
                yield action


@dataclass(frozen=True)
class AveragesEarly(LocalSGD):
    """The average comes before the last replica's last step."""

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        actions = list(super().actions(device, steps))
        for n, action in enumerate(actions):
            if action.kind == "reduce":
                actions[n - 1], actions[n] = actions[n], actions[n - 1]
        return iter(actions)


@dataclass(frozen=True)
class NeverSettles(PipeDream):
    """Reads version 0 for ever."""

    def version(self, stage: int, microbatch: int) -> int:
        return 0

    def versions_stored(self, stage: int) -> int:
        return 2


def test_a_short_run_is_no_problem_by_itself():
    for name, S, m in (("pipedream", 4, 1), ("pipedream-2bw", 4, 4), ("amdp", 4, 4), ("localsgd", 3, 3)):
        for steps in (1, 2, 3):
            assert check(make_schedule(name, S, m), steps).problems == []


def test_long_start_up_settles_in_the_end():
    assert check(make_schedule("pipedream-2bw", 9, 1, policy="uniform")).valid


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Dropped(3, 3), "backward of microbatch 17 at stage 1 occurs 0 times"),
        (Twice(3, 3), "gradient of microbatch 0 at stage 0 is counted 2 times"),
        (EarlyStep(3, 3), "gradient of microbatch 2 at stage 0 belongs to step 0 and enters step 1"),
        (TooNew(3, 1), "forward of microbatch 0 at stage 0 reads version 1; the newest there is 0"),
        (Negative(3, 1), "reads version -1"),
        (Stashes(3, 1), "device 0 holds up to 3 versions of stage 0; the schedule states 2"),
        (Early(3, 3), "backward of microbatch 0 at stage 2 comes before its forward"),
        (Backwards(3, 3), "device 0 sends to device 1 in another order than that one receives"),
        (Elsewhere(3, 3), "is on device"),
        (NoWeight(3, 3), "weight of microbatch 0 at stage 0 occurs 0 times"),
        (LateStep(4, 4), "backward of microbatch 5 at stage 3 reads version 1; the newest there is 0"),
        (NoReduction(4, 4), "comes without a reduction"),
        (NeverAverages(3, 6), "device 1 averages its replicas 0 times"),
        (NeverAverages(3, 6), "forward of microbatch 6 at stage 1 comes before the average of its round"),
        (AveragesTwice(3, 6), "device 0 averages at the end of round 0 after 1 averages"),
        (AveragesEarly(3, 6), "averages at the end of round 0 after 0 averages, with versions [1, 2] instead of 2"),
        (NeverSettles(3, 1), "delays of stage 0 do not settle"),
    ],
)
def test_a_broken_schedule_is_named(broken, said):
    result = check(broken)
    assert not result.valid
    assert any(said in line for line in (*result.problems, result.deadlocks["buffered"] or "")), result
