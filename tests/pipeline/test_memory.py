"""Peak memory, counted by hand on small schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.clock import simulate
from pipeline.correction_buffers import FORMS, NAMES, CorrectionBuffers
from pipeline.delays import delay_summary
from pipeline.errors import InputError
from pipeline.memory import Sizes, memory, peak_memory, with_correction
from pipeline.optim.corrections import CORRECTIONS, CorrectionOptions, corrected
from pipeline.schedules import SCHEDULES, make_schedule
from tests.pipeline.toys import toy_job

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


@pytest.mark.parametrize("field", ["weight", "gradient", "optimizer", "activation", "boundary", "correction"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2", True])
def test_bad_sizes_are_refused_by_field(field, value):
    with pytest.raises(InputError, match=f"^{field}_bytes = "):
        Sizes(**{f"{field}_bytes": value})


def test_sizes_of_the_wrong_length_are_refused():
    with pytest.raises(InputError, match=r"weight_bytes = \[1, 2\]: allowed are one number, or 3 of them"):
        memory(make_schedule("1f1b", 3), Sizes([1, 2]))


# -- steps that are put off: a batch's gradients wait while the next one's add up


def sets(schedule: Any, put_off: bool = True) -> list[int]:
    return [device.gradient_sets[s] for s, device in enumerate(memory(schedule, put_off=put_off))]


def test_a_step_that_waits_takes_a_second_buffer():
    # Step k waits for the first forward of batch k + 2, and backwards of batch k + 1 come before that one.
    assert sets(make_schedule("pipedream-2bw", 4, 4)) == [2, 2, 2, 2]
    assert sets(make_schedule("pipedream-2bw", 4, 4), put_off=False) == [1, 1, 1, 1]
    # A longer delay than the depth needs can wait longer.
    assert sets(make_schedule("uniform", 2, 2, tau=3)) == [4, 4]
    assert sets(make_schedule("1f1b", 4, 4)) == [1, 1, 1, 1]
    last = memory(make_schedule("pipedream-2bw", 4, 4), SIZES, put_off=True)[3]
    assert (last.gradients, last.optimizer) == (200, 1000)
    assert memory(make_schedule("pipedream-2bw", 4, 4), SIZES)[3].gradients == 100


def test_steps_that_cannot_wait_are_refused():
    with pytest.raises(InputError, match="^put_off = True: allowed where a microbatch reads one weight version"):
        memory(make_schedule("pipedream", 4), put_off=True)


PUT_OFF: list[tuple[str, int, int, dict[str, Any]]] = [
    ("1f1b", 2, 2, {}),
    ("gpipe", 2, 4, {}),
    ("pipedream-2bw", 2, 1, {}),
    ("pipedream-2bw", 4, 3, {}),
    ("pipedream-2bw", 4, 5, {}),
    ("pipedream-2bw", 4, 2, {"policy": "stall"}),
    ("pipedream-2bw", 4, 2, {"policy": "uniform"}),
    ("pipedream-2bw", 2, 2, {"synchronous_steps": 4}),
    ("uniform", 2, 2, {"tau": 3}),
]


@pytest.mark.processes
@pytest.mark.parametrize(("name", "S", "m", "options"), PUT_OFF)
def test_a_run_holds_as_many_gradients_as_are_counted(workers, name, S, m, options):
    job = toy_job(name, S, m, options=options, steps=12)
    plan, waiting = job.schedule, replace(job, skip_nonfinite=True)
    for run, put_off in ((workers(S).run(job), False), (workers(S).run(waiting), True)):
        assert run.peak_gradient_sets == sets(plan, put_off)
        # The trace itself says the same, without being told that its steps came late.
        traced = [device.gradient_sets[s] for s, device in enumerate(peak_memory(run.events, plan))]
        assert run.peak_gradient_sets == traced


# -- what error feedback keeps


KEPT = [
    CorrectionBuffers(name, form, adaptive)
    for name in NAMES
    for form in (FORMS if name == "error-feedback" else FORMS[:1])
    for adaptive in ((False, True) if name == "delay-compensation" else (False,))
]


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: f"{kept.name}-{kept.form}{'-adaptive' * kept.adaptive}")
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_the_buffers_of_a_correction_are_those_that_it_keeps(kept, tau):
    model = nn.Linear(5, 7)
    options = CorrectionOptions(
        form=kept.form if kept.name == "error-feedback" else None,
        adaptive=kept.adaptive or None,
        anneal_steps=9 if kept.name == "lr-discount" else None,
    )
    optimizer = corrected(torch.optim.SGD(model.parameters(), lr=0.1), kept.name, tau, options)
    for _ in range(tau + 2):
        optimizer.zero_grad()
        model(torch.randn(2, 5)).square().sum().backward()
        optimizer.step()
    measured = sum(t.numel() * t.element_size() for t in tensors_in(optimizer.state_dict()[optimizer.KEY]))
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    schedule = make_schedule("uniform", 1, 1, tau=tau)
    sizes = with_correction(Sizes(weights, weights), schedule, delay_summary(schedule)["optimizer_step_delay"], kept)
    assert memory(schedule, sizes)[0].correction == measured == weights * kept.count(tau)


def test_every_correction_of_the_optimizers_is_counted():
    assert tuple(CORRECTIONS) == NAMES


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from tensors_in(inner)


def test_a_correction_is_counted_where_the_optimizer_is():
    # PipeDream, 100 bytes of gradients a stage: delays 3 2 1 0.
    schedule = make_schedule("pipedream", 4)
    telescoped, one = (
        with_correction(SIZES, schedule, [3, 2, 1, 0], CorrectionBuffers("error-feedback", form))
        for form in ("telescoped", "extrapolate")
    )
    assert [d.correction for d in memory(schedule, telescoped)] == [300, 200, 100, 0]
    assert [d.correction for d in memory(schedule, one)] == [100, 100, 100, 0]
    assert [a.total - b.total for a, b in zip(memory(schedule, one), memory(schedule, SIZES), strict=True)] == [
        100, 100, 100, 0
    ]  # fmt: skip
    amdp = make_schedule("amdp", 8, 8)
    delays = delay_summary(amdp)["optimizer_step_delay"]
    # 50 bytes a stage; the copy that steps keeps them, on one device each.
    found = memory(amdp, with_correction(SIZES, amdp, delays, CorrectionBuffers("error-feedback", "telescoped")))
    assert sum(device.correction for device in found) == 50 * sum(delays)
    for settings, message in (
        (("error-feedback", "both"), "^form: 'both'; allowed are extrapolate, telescoped$"),
        (("both",), "^correction: 'both'; allowed are none, error-feedback"),
        (("lr-discount", "telescoped"), "^form: 'telescoped' with correction 'lr-discount'; allowed with error-"),
        (("lr-discount", "extrapolate", True), "^adaptive: True with correction 'lr-discount'"),
    ):
        with pytest.raises(InputError, match=message):
            CorrectionBuffers(*settings)
