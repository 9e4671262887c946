"""The engine on real processes: equal to the oracle bit for bit, with a trace that equals the enumeration."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pipeline.clock import simulate
from pipeline.delays import delays_per_microbatch, version_mismatch
from pipeline.engine.pool import WorkerPool
from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.schedules import SCHEDULES
from pipeline.training import TrainConfig, train, train_oracle

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=6, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)


@pytest.mark.parametrize(
    ("schedule", "m", "optimizer", "correction"),
    [
        ("1f1b", 1, "sgd", "none"),
        ("1f1b", 4, "adamw", "none"),
        ("gpipe", 3, "adamw", "none"),
        ("pipedream", 1, "muon", "none"),
        ("pipedream-vertical-sync", 1, "adamw", "none"),
        ("pipedream-vertical-sync", 1, "sgd", "error-feedback"),
        ("pipedream", 2, "adamw", "none"),
        ("pipedream-2bw", 1, "adamw", "none"),
        ("pipedream-2bw", 2, "muon", "error-feedback"),
        ("pipedream-2bw", 4, "sgd", "error-feedback"),
        ("pipedream-2bw", 2, "lmo", "none"),
        ("pipedream-2bw", 2, "adamw", "error-feedback"),
    ],
)
def test_two_processes_equal_the_oracle(two_workers, schedule, m, optimizer, correction):
    config = replace(SMALL, schedule=schedule, microbatches=m, optimizer=optimizer, correction=correction)
    engine, oracle = train(config, TEXT, two_workers), train_oracle(config, TEXT)
    assert sorted(engine.snapshots) == sorted(oracle.snapshots) == list(range(1, 7))
    assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, "")
    assert engine.losses == oracle.losses
    assert (engine.input_digest, engine.target_digest) == (oracle.input_digest, oracle.target_digest)


def test_the_comparison_can_fail(two_workers):
    engine = train(SMALL, TEXT, two_workers)
    for wrong in ({"schedule": "1f1b"}, {"seed": 1}, {"correction": "error-feedback"}, {"lr": 3.001e-3}):
        gap, place = largest_difference(engine.snapshots, train_oracle(SMALL, TEXT, **wrong).snapshots)
        assert gap > 0
        assert "step" in place


RUNNABLE = [name for name, cls in SCHEDULES.items() if cls(4, 4).runs_on_engine]


def test_what_the_engine_runs():
    assert RUNNABLE == ["gpipe", "1f1b", "pipedream", "pipedream-vertical-sync", "pipedream-2bw", "uniform"]
    for schedule in set(SCHEDULES) - set(RUNNABLE):
        with pytest.raises(InputError, match=f"schedule = '{schedule}': the engine runs gpipe, 1f1b, "):
            TrainConfig(schedule=schedule, stages=4, microbatches=4, model=MODEL)


@pytest.mark.parametrize("schedule", RUNNABLE)
def test_the_trace_is_the_enumeration(two_workers, schedule):
    config = replace(SMALL, schedule=schedule)
    result = train(config, TEXT, two_workers)
    enumerated = simulate(config.plan, config.steps)
    assert delays_per_microbatch(result.events) == delays_per_microbatch(enumerated)
    assert version_mismatch(result.events) == 0
    key = [(e.stage, e.kind, e.microbatch, e.step, e.version) for e in result.events]
    assert sorted(key) == sorted((e.stage, e.kind, e.microbatch, e.step, e.version) for e in enumerated)
    assert result.peak_versions == [config.plan.versions_stored(s) for s in range(2)]
    assert result.peak_in_flight == [config.plan.in_flight(s) for s in range(2)]
    assert all(e.end >= e.start >= 0 for e in result.events)


@pytest.mark.slow
@pytest.mark.parametrize("S", [1, 4])
def test_other_numbers_of_stages_equal_the_oracle(S):
    with WorkerPool(S, device="cpu") as pool:
        cases = [(schedule, m, {}) for schedule in RUNNABLE for m in {1: (1, 2), 4: (3, 4, 8)}[S]]
        taus = {1: ((2, 0), (1, 3)), 4: ((1, 3), (4, 2), (2, 4))}[S]
        cases += [("uniform", m, {"tau": tau}) for m, tau in taus]
        if S == 4:  # fewer microbatches than S - 1: the devices wait, or the delay grows to 2 and to 3
            cases += [("pipedream-2bw", m, {"policy": policy}) for m in (1, 2) for policy in ("stall", "uniform")]
        for schedule, m, options in cases:
            plain = replace(SMALL, stages=S, schedule=schedule, microbatches=m, steps=5, **options)
            corrections = ("none", "error-feedback") if options else ("none",)
            for correction in corrections:
                config = replace(plain, correction=correction, optimizer="muon")
                engine, oracle = train(config, TEXT, pool), train_oracle(config, TEXT)
                assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, ""), (schedule, m)
                enumerated = delays_per_microbatch(simulate(config.plan, config.steps))
                assert delays_per_microbatch(engine.events) == enumerated, (schedule, m)


def test_2bw_at_two_depths_is_one_trajectory(two_workers):
    # 2BW's delay is 1 at any depth: the same run in one process and in two.
    config = replace(SMALL, microbatches=2)
    one = train_oracle(replace(config, stages=1), TEXT)
    assert largest_difference(train(config, TEXT, two_workers).snapshots, one.snapshots) == (0.0, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "2bw"}, "schedule '2bw': allowed are"),
        ({"optimizer": "lion9"}, "lion9"),
        ({"correction": "magic"}, "correction = 'magic': allowed are none, error-feedback"),
        ({"stages": 5}, "stages = 5: the model has 4 layers"),
        ({"stages": 0}, "stages = 0"),
        ({"steps": 0}, "steps = 0"),
        ({"dtype": "int8"}, "dtype = 'int8': allowed are"),
        ({"seed": -1}, "seed = -1"),
        ({"lr": -0.1}, r"lr.*-0\.1"),
        ({"schedule": "pipedream", "microbatches": 1, "correction": "error-feedback"}, r"same delay at every stage"),
        # Of four microbatches one is a step old: no single delay to correct for.
        (
            {"schedule": "pipedream-vertical-sync", "microbatches": 4, "correction": "error-feedback"},
            r"same delay at every stage",
        ),
    ],
)
def test_bad_settings_are_refused_before_a_process_starts(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **changes)


def test_a_pool_of_another_size_is_refused(two_workers):
    with pytest.raises(InputError, match="stages = 3: the pool has 2 workers"):
        train(replace(SMALL, stages=3), TEXT, two_workers)


def test_bfloat16_runs_and_stays_finite(two_workers):
    result = train(replace(SMALL, dtype="bfloat16", steps=3), TEXT, two_workers)
    assert all(torch.isfinite(w.float()).all() for w in result.weights.values())
    oracle = train_oracle(replace(SMALL, dtype="bfloat16", steps=3), TEXT)
    assert largest_difference(result.snapshots, oracle.snapshots) == (0.0, "")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_stages_that_share_a_gpu_equal_the_oracle_to_round_off():
    config = replace(SMALL, optimizer="sgd", lr=0.01)
    with WorkerPool(2, device="cuda", transport="gloo") as pool:
        engine = train(config, TEXT, pool)
    gap, _ = largest_difference(engine.snapshots, train_oracle(config, TEXT).snapshots)
    assert gap < 1e-9  # float64; only the order of sums differs between the devices


def test_the_oracle_is_equal_whatever_number_of_threads_its_process_uses(two_workers):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        config = replace(SMALL, sequences=8, model=GPTConfig(layers=2, width=64, heads=4, context=64), steps=2)
        oracle = train_oracle(config, TEXT)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert largest_difference(train(config, TEXT, two_workers).snapshots, oracle.snapshots) == (0.0, "")
