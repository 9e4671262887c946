"""Three ways to a delay meet: the trace of real processes, the clock's enumeration, and theory's closed forms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from pipeline.clock import simulate
from pipeline.delays import delays_per_microbatch, version_mismatch
from pipeline.events import Event
from pipeline.models.gpt import GPTConfig
from pipeline.schedules import engine_schedules
from pipeline.training import TrainConfig, train
from staleproof import agreement

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=8, heads=2, context=8)
BASE = TrainConfig(sequences=1, optimizer="sgd", model=MODEL)


def plans() -> list[TrainConfig]:
    """Every schedule that the engine runs, with one, S - 1, S and 2 S microbatches a step, and its options."""
    found = []
    for S in (1, 2, 4):
        for m in sorted({1, S - 1, S, 2 * S} - {0}):
            for name in engine_schedules():
                if name == "pipedream-2bw" and m < S - 1:
                    continue
                found.append(replace(BASE, schedule=name, stages=S, microbatches=m))
            least = -(-(S - 1) // m)
            found.append(replace(BASE, schedule="uniform", stages=S, microbatches=m, tau=least + 2))
    for m in (1, 2):
        for policy in ("stall", "uniform"):
            found.append(replace(BASE, schedule="pipedream-2bw", stages=4, microbatches=m, policy=policy))
    return [replace(config, steps=config.plan.start_up + 3) for config in found]


PLANS = plans()


def label(config: TrainConfig) -> str:
    words = [f"S{config.stages}", f"m{config.plan.microbatches}", config.schedule]
    words += [config.policy] * (config.policy != "refuse") + [f"tau{config.tau}"] * (config.tau is not None)
    return "-".join(words)


def content(events: Sequence[Event]) -> list[tuple[str, int, int, int, int]]:
    """What happened, whenever it did."""
    return sorted((e.kind, e.stage, e.microbatch, e.step, e.version) for e in events)


def order(events: Sequence[Event], stage: int, steps: bool) -> list[tuple[str, int]]:
    """What a stage did one after another; with or without optimizer steps."""
    return [(e.kind, e.microbatch) for e in events if e.stage == stage and (steps or e.kind != "step")]


def test_these_are_the_schedules():
    assert {config.schedule for config in PLANS} == set(engine_schedules())
    assert len({label(config) for config in PLANS}) == len(PLANS)


@pytest.mark.parametrize("config", PLANS, ids=label)
def test_the_trace_has_the_enumerated_and_the_closed_delays(workers, config):
    result = train(config, TEXT, workers(config.stages))
    plan, enumerated = config.plan, simulate(config.plan, config.steps)
    measured = delays_per_microbatch(result.events)
    # Start-up included, microbatch by microbatch.
    assert measured == delays_per_microbatch(enumerated)
    assert content(result.events) == content(enumerated)
    assert version_mismatch(result.events) == 0
    for s in range(config.stages):
        assert order(result.events, s, steps=True) == order(enumerated, s, steps=True)
    assert all(e.end >= e.start >= 0 for e in result.events)

    # The steady state against the closed forms, nothing of the clock in between.
    form, values = agreement.closed_form_of(plan), agreement.values_of(plan)
    first = plan.start_up * plan.microbatches
    for s, delays in measured.items():
        closed, mean = (form.evaluate(quantity, **values, stage=s) for quantity in ("delay", "mean_delay"))
        by_step = defaultdict(list)
        for j, delay in enumerate(delays):
            by_step[j // plan.microbatches].append(delay)
        assert max(delays) == closed
        assert len(delays) > first
        for k in range(plan.start_up, config.steps):
            assert Fraction(sum(by_step[k]), plan.microbatches) == mean
            assert max(by_step[k]) == closed
            if closed == mean:
                assert set(by_step[k]) == {closed}

    # Memory: what the schedule promises and what the closed forms say is what was held.
    assert result.peak_versions == [plan.versions_stored(s) for s in range(config.stages)]
    assert result.peak_versions == [form.evaluate("versions", **values, stage=s) for s in range(config.stages)]
    assert result.peak_in_flight == [form.evaluate("in_flight", **values, stage=s) for s in range(config.stages)]
    if config.policy != "stall":  # its bound is not always reached
        assert result.peak_in_flight == [plan.in_flight(s) for s in range(config.stages)]


CLIPPED = [config for config in PLANS if config.plan.one_version_everywhere]


@pytest.mark.parametrize("config", CLIPPED, ids=label)
def test_steps_that_are_put_off_change_no_version(workers, config):
    config = replace(config, clip=0.1)
    result = train(config, TEXT, workers(config.stages))
    plan, enumerated = config.plan, simulate(config.plan, config.steps)
    assert len(result.norms) == config.steps
    assert min(result.norms) > 0.1
    assert content(result.events) == content(enumerated)
    assert delays_per_microbatch(result.events) == delays_per_microbatch(enumerated)
    assert version_mismatch(result.events) == 0
    for s in range(config.stages):
        assert order(result.events, s, steps=False) == order(enumerated, s, steps=False)
        steps = [e.step for e in result.events if e.stage == s and e.kind == "step"]
        assert steps == list(range(config.steps))
        assert result.peak_versions[s] <= plan.versions_stored(s)
        assert result.peak_in_flight[s] <= plan.in_flight(s)


def test_steps_are_put_off(workers):
    # Stage 0 is the last to know its gradient; the others go on meanwhile, up to where they need the version.
    config = replace(BASE, stages=4, microbatches=8, steps=6, clip=0.1)
    result, enumerated = train(config, TEXT, workers(4)), simulate(config.plan, 6)
    late = [s for s in range(4) if order(result.events, s, steps=True) != order(enumerated, s, steps=True)]
    assert 3 in late


CONFIRMED = [
    (config, recompute, clip)
    for config in PLANS
    if config.plan.microbatches in (1, 4)
    for recompute, clip in ((False, None), (True, None), (True, 0.1))
    if clip is None or config in CLIPPED
]


@pytest.mark.parametrize(("config", "recompute", "clip"), CONFIRMED, ids=lambda v: label(v) if v in PLANS else None)
def test_checksums_confirm_every_tag(workers, config, recompute, clip):
    config = replace(config, steps=5, recompute=recompute, clip=clip)
    result = workers(config.stages).run(replace(config.job(TEXT), confirm=True))
    assert content(result.events) == content(simulate(config.plan, 5))


@pytest.mark.parametrize("schedule", engine_schedules())
def test_a_closed_form_off_by_one_is_not_the_trace(workers, schedule):
    config = next(c for c in PLANS if c.schedule == schedule and c.stages == 2)
    measured = delays_per_microbatch(train(config, TEXT, workers(2)).events)
    form, values = agreement.closed_form_of(config.plan), agreement.values_of(config.plan)
    wrong = replace(form, delay=form.delay + 1)
    assert any(max(delays) != wrong.evaluate("delay", **values, stage=s) for s, delays in measured.items())
