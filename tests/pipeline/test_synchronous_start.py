"""The first K0 steps have delay 0, then the asynchronous schedule starts afresh from W(K0).

Order and versions by hand; engine, oracle, trace and enumeration against each other; going on across the switch.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.clock import Costs, simulate
from pipeline.delays import delay_summary, delays_per_microbatch
from pipeline.engine.checkpoint import describe_schedule, folder_of
from pipeline.engine.job import Checkpoints
from pipeline.errors import InputError
from pipeline.memory import memory
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of
from pipeline.schedules import make_schedule
from pipeline.schedules.base import Schedule
from pipeline.timing import timing
from pipeline.training import TrainConfig, train, train_oracle
from pipeline.validity import check
from staleproof.cli import main
from tests.pipeline.toys import optimizer, toy_job

EQUAL = (0.0, "")
LETTER = {"forward": "F", "backward": "B", "step": "|"}
#: Schedule with its options, microbatches a step for S stages.
PLANS: dict[str, Any] = {
    "pipedream-2bw": ({}, lambda S: S),
    "pipedream-2bw stall": ({"policy": "stall"}, lambda S: 2),
    "pipedream-2bw uniform": ({"policy": "uniform"}, lambda S: 2),
    "pipedream": ({}, lambda S: 1),
    "pipedream, m = 2": ({}, lambda S: 2),
    "pipedream-vertical-sync": ({}, lambda S: 1),
    "uniform": ({}, lambda S: S),
    "uniform 3": ({"tau": 3}, lambda S: S),
    "paci": ({}, lambda S: S),
    "pipemare": ({}, lambda S: S),
}
ON_ENGINE = [plan for plan in PLANS if plan not in ("paci", "pipemare")]


def plan_of(plan: str, S: int, K0: int) -> Schedule:
    options, m = PLANS[plan]
    return make_schedule(plan.split(",")[0].split(" ")[0], S, m(S), synchronous_steps=K0, **options)


def order(schedule: Schedule, device: int, steps: int) -> str:
    """F<microbatch>v<version> and so on; | is a step."""
    words = [
        LETTER[a.kind] if a.kind == "step" else f"{LETTER[a.kind]}{a.microbatch}v{a.version}"
        for a in schedule.actions(device, steps)
    ]
    return " ".join(words)


def test_the_order_by_hand():
    schedule = make_schedule("pipedream-2bw", 2, 2, synchronous_steps=1)
    assert order(schedule, 0, 3) == "F0v0 F1v0 B0v0 B1v0 | F2v1 F3v1 B2v1 F4v1 B3v1 | F5v1 B4v1 B5v1 |"
    assert order(schedule, 1, 3) == "F0v0 B0v0 F1v0 B1v0 | F2v1 B2v1 F3v1 B3v1 | F4v1 B4v1 F5v1 B5v1 |"


def test_pipedream_by_hand_with_a_flush_after_every_microbatch():
    schedule = make_schedule("pipedream", 3, synchronous_steps=2)
    assert order(schedule, 0, 5) == "F0v0 B0v0 | F1v1 B1v1 | F2v2 F3v2 F4v2 B2v2 | B3v2 | B4v2 |"
    assert order(schedule, 2, 5) == "F0v0 B0v0 | F1v1 B1v1 | F2v2 B2v2 | F3v3 B3v3 | F4v4 B4v4 |"


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("S", [1, 2, 4])
@pytest.mark.parametrize("K0", [1, 5])
def test_what_settles_is_that_of_the_schedule_behind(plan, S, K0):
    inner, schedule = plan_of(plan, S, 0), plan_of(plan, S, K0)
    m = schedule.microbatches
    assert check(schedule).valid
    for j in range(m * (K0 + 6)):
        for s in range(S):
            for what in ("version", "backward_version"):
                rule, found = (getattr(x, what)(s, j) for x in (inner, schedule))
                # The rule, never older than K0; delay 0 before.
                assert found == (j // m if j // m < K0 else max(rule, K0))
    for costs in (Costs(1, 2), Costs(1, 2, hop=1)):
        a, b = timing(inner, costs), timing(schedule, costs)
        assert (a.period, a.bubble, a.exact) == (b.period, b.bubble, b.exact)
        assert b.fill_and_drain >= a.fill_and_drain
    before, after = delay_summary(inner), delay_summary(schedule)
    for found, whole in zip(after.pop("by_microbatch"), before.pop("by_microbatch"), strict=True):
        assert found == [0] * (K0 * m) + whole
    assert before == after
    assert memory(inner) == memory(schedule)
    assert inner.runs_on_engine == schedule.runs_on_engine
    assert schedule.one_version_everywhere == inner.one_version_everywhere


def test_the_flush_costs_its_bubble_once():
    # S = 4, m = 4, F = B = 1: a flushed step takes (m + S - 1) 2 = 14 slots instead of 8.
    plain, late = (timing(make_schedule("pipedream-2bw", 4, 4, synchronous_steps=K0)) for K0 in (0, 5))
    assert late.fill_and_drain - plain.fill_and_drain == 5 * (14 - 8)


def test_no_start_is_the_schedule_itself():
    schedule = make_schedule("uniform", 4, 4, tau=2, synchronous_steps=0)
    assert schedule == make_schedule("uniform", 4, 4, tau=2) and schedule.synchronous_steps == 0
    late = make_schedule("uniform", 4, 4, tau=2, synchronous_steps=3)
    assert (late.rest_after(3), late.rest_after(7)) == (schedule, schedule)
    assert late.rest_after(1) == make_schedule("uniform", 4, 4, tau=2, synchronous_steps=2)
    assert describe_schedule(late) == describe_schedule(schedule) | {"synchronous_steps": 3}


@pytest.mark.parametrize("value", [-1, 1.0, True, "3", None])
def test_a_number_that_is_none_is_refused(value):
    with pytest.raises(InputError, match=r"^synchronous_steps = .*: allowed are integers of at least 0$"):
        make_schedule("pipedream", 2, synchronous_steps=value)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "amdp", "localsgd"])
def test_schedules_that_cannot_have_one_are_refused(name):
    with pytest.raises(InputError, match=f"^synchronous_steps = 2: allowed with asynchronous .*not with {name}"):
        make_schedule(name, 4, 4, synchronous_steps=2)
    assert make_schedule(name, 4, 4, synchronous_steps=0).name == name


# -- real runs


def job_with(schedule: Schedule, **changes: Any) -> Any:
    return replace(toy_job(), schedule=schedule, snapshot_every=1, steps=8, **changes)


@pytest.mark.processes
@pytest.mark.parametrize("plan", ON_ENGINE)
@pytest.mark.parametrize("S", [2, 4])
@pytest.mark.parametrize("K0", [1, 3])
def test_engine_oracle_trace_and_enumeration(workers, plan, S, K0):
    schedule = plan_of(plan, S, K0)
    job = job_with(schedule, optimizer=optimizer("adamw"), confirm=True)
    engine, oracle, clock = workers(S).run(job), oracle_of(job), simulate(schedule, 8)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert engine.losses == oracle.losses
    assert delays_per_microbatch(engine.events) == delays_per_microbatch(clock)  # start-up included
    for s in range(S):
        actions = [[(e.kind, e.microbatch, e.step, e.version) for e in events if e.stage == s]
                   for events in (engine.events, clock)]  # fmt: skip
        assert actions[0] == actions[1]
    assert engine.peak_versions == [schedule.versions_stored(s) for s in range(S)]
    # Another K0, or a start without the switch, is another trajectory.
    for other in (0, K0 + 1, 8):
        wrong = oracle_of(replace(job, schedule=plan_of(plan, S, other)))
        assert largest_difference(engine.snapshots, wrong.snapshots)[0] > 1e-9, other


@pytest.mark.processes
@pytest.mark.parametrize("plan", ["pipedream-2bw", "pipedream", "uniform 3"])
@pytest.mark.parametrize("S", [2, 4])
def test_a_start_as_long_as_the_run_is_1f1b(workers, plan, S):
    schedule = plan_of(plan, S, 8)
    flushed = make_schedule("1f1b", S, schedule.microbatches)
    for changes in ({}, {"clip": 0.01, "optimizer": optimizer("sgd")}):
        if changes and plan == "pipedream":
            continue
        runs = [workers(S).run(job_with(plan, **changes)) for plan in (schedule, flushed)]
        assert largest_difference(runs[0].snapshots, runs[1].snapshots) == EQUAL
        assert (runs[0].losses, runs[0].norms) == (runs[1].losses, runs[1].norms)


@pytest.mark.processes
@pytest.mark.parametrize("plan", ["pipedream-2bw", "uniform 3"])
def test_steps_that_are_put_off(workers, plan):
    schedule = plan_of(plan, 4, 3)
    job = job_with(schedule, clip=0.01, skip_nonfinite=True)
    engine, oracle = workers(4).run(job), oracle_of(job)
    assert largest_difference(engine.snapshots, oracle.snapshots)[0] <= 1e-14
    assert delays_per_microbatch(engine.events) == delays_per_microbatch(simulate(schedule, 8))


@pytest.mark.processes
@pytest.mark.parametrize("plan", ["pipedream-2bw", "pipedream", "uniform 3"])
def test_going_on_across_the_switch(workers, tmp_path, plan):
    job = job_with(plan_of(plan, 2, 3), optimizer=optimizer("adamw"))
    whole = workers(2).run(replace(job, checkpoints=Checkpoints(str(tmp_path), 1, keep=20)))
    for done in (1, 3, 4, 6):
        rest = workers(2).run(replace(job, resume=str(folder_of(tmp_path, done))))
        later = {k: weights for k, weights in whole.snapshots.items() if k > done}
        assert largest_difference(rest.snapshots, later) == EQUAL
        assert rest.losses == whole.losses
        flushed = [e for e in rest.events if e.kind == "forward" and e.step < 3]
        assert all(e.version == e.step for e in flushed)
    for K0 in (0, 2):
        with pytest.raises(InputError, match="^synchronous_steps = (None|2): the checkpoint is of .*_steps = 3$"):
            workers(2).run(replace(job, schedule=plan_of(plan, 2, K0), resume=str(folder_of(tmp_path, 4))))


# -- a configuration and the commands

MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))


@pytest.mark.processes
@pytest.mark.parametrize("schedule", ["pipedream-2bw", "pipedream"])
def test_a_configuration_equals_the_oracle(workers, schedule):
    config = TrainConfig(schedule=schedule, synchronous_steps=2, steps=5, sequences=2, dtype="float64", model=MODEL)
    config = replace(config, snapshot_every=1, optimizer="muon")
    assert config.delays == [1, 1 if schedule == "pipedream-2bw" else 0]
    engine, oracle = train(config, TEXT, workers(2)), train_oracle(config, TEXT)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL


def test_a_correction_has_nothing_to_correct_in_the_start():
    with pytest.raises(InputError, match=r"^correction = 'error-feedback': allowed without a synchronous start"):
        TrainConfig(synchronous_steps=2, correction="error-feedback")


@pytest.mark.processes
def test_the_command_trains(capsys, tmp_path):
    words = "train --steps 6 --layers 1 --width 8 --heads 1 --context 8 --sync-start 2 --json".split()
    out = str(tmp_path / "run")
    assert main([*words, "--check-oracle", "--out", out, "--checkpoint-every", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["synchronous_steps"], found["max_abs_diff"]) == (2, 0)
    # Steps 0 and 1 by the start, step 2 since W(2) is all there is; two stages, two microbatches.
    assert found["delay_histogram"] == {"0": 3 * 4, "1": 3 * 4}
    assert main(["train", "--out", out, "--resume", "--steps", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["synchronous_steps"] == 2
    assert main(["train", "--schedule", "1f1b", "--sync-start", "2"]) == 2
    assert "synchronous_steps = 2: allowed with asynchronous schedules" in capsys.readouterr().err


def test_the_command_shows_it(capsys):
    words = "schedule pipedream-2bw --stages 4 --sync-start 2".split()
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["synchronous_steps"], found["optimizer_step_delay"], found["bubble"]) == (2, [1] * 4, 0)
    assert {e["version"] for e in found["events"] if e["kind"] == "forward" and e["step"] == 1} == {1}
    assert main(words) == 0
    assert "synchronous start: 2 steps of delay 0; this is what follows" in capsys.readouterr().out
    assert main("schedule pipedream --stages 4 --sync-start 300000".split()) == 2
    assert "sync-start = 300000: allowed are at most 5000 here" in capsys.readouterr().err
