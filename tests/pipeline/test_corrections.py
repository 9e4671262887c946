"""Every correction in the engine, in the oracle and without a pipeline: the same numbers from step 0 on."""

from __future__ import annotations

import pytest
import torch

from pipeline.engine.checkpoint import folder_of
from pipeline.engine.job import Checkpoints
from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.optim import Delayed, ErrorFeedback
from pipeline.optim.corrections import CORRECTIONS, CorrectionOptions
from pipeline.oracle import largest_difference
from pipeline.training import TrainConfig, train, train_oracle
from tests.pipeline.toys import toy_job

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
STEPS = 7
#: Corrections that are the paper's at one step of delay and differ from each other beyond.
OPTIONS = [
    ("error-feedback", CorrectionOptions()),
    ("error-feedback", CorrectionOptions(form="telescoped")),
    ("error-feedback", CorrectionOptions(coefficient=0.3)),
    ("weight-prediction", CorrectionOptions()),
    ("gradient-extrapolation", CorrectionOptions()),
    ("delay-compensation", CorrectionOptions(strength=2.0)),
    ("delay-compensation", CorrectionOptions(strength=0.5, adaptive=True)),
    ("lr-discount", CorrectionOptions(anneal_steps=5)),
]
NAMES = ["-".join([name, *(f"{k}={v}" for k, v in vars(o).items() if v is not None)]) for name, o in OPTIONS]


def config(schedule: str, S: int, m: int, correction: str, options: CorrectionOptions, **changes) -> TrainConfig:
    return TrainConfig(
        schedule=schedule,
        stages=S,
        microbatches=m,
        sequences=2,
        steps=STEPS,
        correction=correction,
        correction_options=options,
        dtype="float64",
        model=GPTConfig(layers=2, width=16, heads=2, context=16),
        snapshot_every=1,
        **changes,
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    ("schedule", "S", "m", "more", "numbers"),
    [
        ("pipedream-2bw", 2, 2, {"optimizer": "adamw"}, (0, 3, 6)),  # at one step of delay others are these
        ("uniform", 2, 1, {"tau": 3, "optimizer": "sgd"}, range(8)),
        ("pipedream", 4, 1, {"optimizer": "muon"}, range(8)),
    ],
    ids=["2bw", "uniform", "pipedream"],
)
def test_the_engine_equals_the_oracle(workers, schedule, S, m, more, numbers):
    for number in numbers:
        check(config(schedule, S, m, *OPTIONS[number], **more), workers(S))


def check(run: TrainConfig, pool) -> None:
    engine, oracle = train(run, TEXT, pool), train_oracle(run, TEXT)
    assert largest_difference(engine.snapshots, oracle.snapshots) == (0.0, ""), run
    assert largest_difference({0: engine.solution}, {0: oracle.solution}) == (0.0, ""), run
    assert engine.losses == oracle.losses, run


@pytest.mark.parametrize(("correction", "options"), OPTIONS, ids=NAMES)
@pytest.mark.parametrize(("tau", "optimizer"), [(1, "adamw"), (3, "sgd")])
def test_the_wrapper_without_a_pipeline_equals_the_oracle(tau, optimizer, correction, options):
    run = config("uniform", 1, 2, correction, options, tau=tau, optimizer=optimizer)
    layers = run.make_layers()
    named = [(f"layers.{i}.{name}", p) for i, layer in enumerate(layers) for name, p in layer.named_parameters()]
    delayed = Delayed(run.make_optimizer(named), tau)
    data, path = run.data(TEXT), {}
    for k in range(STEPS):
        delayed.zero_grad()
        for j in (2 * k, 2 * k + 1):
            h, targets = data.microbatch(j)
            for layer in layers:
                h = layer(h)
            (run.loss(h, targets) / 2).backward()
        delayed.step()
        path[k + 1] = {name: x.detach().clone() for (name, _), x in zip(named, in_order(delayed, named), strict=True)}
    oracle = train_oracle(run, TEXT)
    assert largest_difference(path, oracle.snapshots) == (0.0, "")
    solution = dict(zip([id(p) for g in delayed.param_groups for p in g["params"]], delayed.solution(), strict=True))
    found = {name: solution[id(p)] for name, p in named}
    assert largest_difference({0: found}, {0: oracle.solution}) == (0.0, "")
    assert path[STEPS].keys() == found.keys()
    assert (largest_difference({0: found}, {0: path[STEPS]})[0] > 0) == (correction == "weight-prediction")


@pytest.mark.processes
@pytest.mark.parametrize("schedule", ["pipedream", "pipedream-2bw"])
def test_every_correction_goes_on_from_a_checkpoint(workers, tmp_path, schedule):
    """PipeDream's stages have delays of their own, so what a correction is set to differs between them."""
    for number in range(len(OPTIONS)):
        if schedule == "pipedream-2bw" and number not in (1, 3, 6):
            continue
        run = config(schedule, 3, 2 if schedule == "pipedream-2bw" else 1, *OPTIONS[number])
        root = tmp_path / f"{number}"
        whole = workers(3).run(run.job(TEXT, Checkpoints(str(root), 2, keep=9)))
        rest = workers(3).run(run.job(TEXT, resume=str(folder_of(root, 4))))
        later = {k: weights for k, weights in whole.snapshots.items() if k > 4}
        assert largest_difference(rest.snapshots, later) == (0.0, ""), NAMES[number]
        assert largest_difference({0: rest.solution}, {0: whole.solution}) == (0.0, ""), NAMES[number]


@pytest.mark.processes
def test_a_job_has_no_optimizer_that_leaves_out_steps_by_itself(workers):
    with pytest.raises(InputError, match=r"skip_nonfinite of a wrapper .* allowed is Job\(skip_nonfinite=True\)"):
        workers(2).run(toy_job(optimizer=skipping))


def skipping(named):
    return ErrorFeedback(torch.optim.SGD([p for _, p in named], lr=0.1), 1, skip_nonfinite=True)


def in_order(optimizer: Delayed, named) -> list[torch.Tensor]:
    """The newest weights in the order of the names."""
    found = dict(zip([id(p) for g in optimizer.param_groups for p in g["params"]], optimizer.newest(), strict=True))
    return [found[id(p)] for _, p in named]


@pytest.mark.parametrize(("tau", "steps"), [(0, STEPS), (3, STEPS)])
def test_every_correction_is_another_method_unless_there_is_no_delay(tau, steps):
    finals = {
        name: train_oracle(config("uniform", 1, 1, correction, options, tau=tau), TEXT).solution
        for name, (correction, options) in zip(NAMES, OPTIONS, strict=True)
    }
    finals["none"] = train_oracle(config("uniform", 1, 1, "none", CorrectionOptions(), tau=tau), TEXT).solution
    names = list(finals)
    for i, a in enumerate(names):
        for b in names[:i]:
            assert (largest_difference({0: finals[a]}, {0: finals[b]})[0] == 0.0) == (tau == 0), (a, b)


def test_options_of_another_correction_are_refused():
    for correction in ("none", *CORRECTIONS):
        takes = CORRECTIONS[correction].options if correction != "none" else ()
        for field, value in {
            "form": "telescoped", "coefficient": 0.5, "strength": 0.1, "adaptive": True, "anneal_steps": 3
        }.items():  # fmt: skip
            options = CorrectionOptions(**{field: value})
            if field in takes:
                config("pipedream-2bw", 2, 2, correction, options)
                continue
            with pytest.raises(InputError, match=f"{field}: {value!r} with correction {correction!r}; allowed with"):
                config("pipedream-2bw", 2, 2, correction, options)
    with pytest.raises(InputError, match="correction: 'both'; allowed are none, error-feedback, weight-prediction"):
        config("pipedream-2bw", 2, 2, "both", CorrectionOptions())
    with pytest.raises(InputError, match="form: 'round'; allowed are extrapolate, telescoped"):
        config("pipedream-2bw", 2, 2, "error-feedback", CorrectionOptions(form="round"))


def test_a_stage_with_several_delays_has_none_to_correct_for():
    with pytest.raises(InputError, match=r"one delay; pipedream with 2 microbatches has up to \[1, 0\], on average"):
        config("pipedream", 2, 2, "error-feedback", CorrectionOptions())
