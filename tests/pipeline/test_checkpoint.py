"""Saving and going on: the run that was interrupted equals, bit for bit, the one that was not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pipeline.engine.checkpoint import (
    check_fits,
    complete_checkpoints,
    folder_of,
    latest_checkpoint,
    read_manifest,
)
from pipeline.engine.job import Checkpoints
from pipeline.engine.pool import RunResult
from pipeline.errors import InputError, RunError
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.training import TrainConfig
from tests.pipeline.toys import Langevin, optimizer, toy_job

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=6, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)


def assert_goes_on(rest: RunResult, whole: RunResult, done: int) -> None:
    """``rest`` started from ``done`` steps: its snapshots, and all losses and norms, are those of ``whole``."""
    later = {k: weights for k, weights in whole.snapshots.items() if k > done}
    assert largest_difference(rest.snapshots, later) == (0.0, "")
    assert rest.losses == whole.losses
    assert rest.norms == whole.norms


#: Their groups count steps and hold lists of tuples; some keep a float32 scalar beside float64 weights.
LISTS_AND_COUNTERS = ("adan", "mars", "lion", "normuon", "adamuon", "nadam", "asyncpp")
CASES = {
    "2bw adamw": {"optimizer": "adamw"},
    "2bw muon, error feedback": {"optimizer": "muon", "correction": "error-feedback", "microbatches": 3},
    "uniform 2, error feedback": {"schedule": "uniform", "tau": 2, "correction": "error-feedback"},
    "2bw soap, error feedback": {"optimizer": "soap", "correction": "error-feedback"},
    **{f"2bw {name}": {"optimizer": name, "correction": "error-feedback"} for name in LISTS_AND_COUNTERS},
    "pipedream": {"schedule": "pipedream", "optimizer": "muon"},
    "1f1b": {"schedule": "1f1b", "optimizer": "adamw"},
    "dropout": {"model": replace(MODEL, dropout=0.2), "recompute": True},
    "bf16 masters": {"dtype": "bfloat16", "optimizer": "muon", "correction": "error-feedback"},
    "clip": {"clip": 0.5},
    "clip, uniform 2": {"clip": 0.5, "schedule": "uniform", "tau": 2},
    "clip, uniform 3, tied": {"clip": 0.5, "schedule": "uniform", "tau": 3, "model": replace(MODEL, tied=True)},
    "tied, momentum": {"model": replace(MODEL, tied=True), "optimizer": "sgd", "lr": 0.01},
    "all": {
        "model": replace(MODEL, tied=True, dropout=0.1),
        "dtype": "bfloat16",
        "clip": 1.0,
        "correction": "error-feedback",
    },
}


QUICK = (
    "2bw muon, error feedback",
    "2bw soap, error feedback",
    "uniform 2, error feedback",
    "pipedream",
    "clip, uniform 2",
    "all",
)
MARKED = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", MARKED)
def test_a_run_that_goes_on_is_the_run_that_never_stopped(two_workers, tmp_path, name):
    config = replace(SMALL, **CASES[name])
    job = config.job(TEXT)
    whole = two_workers.run(job)
    saving = two_workers.run(replace(job, checkpoints=Checkpoints(str(tmp_path), 1, keep=10)))
    assert_goes_on(saving, whole, 0)  # to save disturbs nothing
    for done in (1, 4):  # after step 1 the start-up is not over
        rest = two_workers.run(replace(job, resume=str(folder_of(tmp_path, done))))
        assert_goes_on(rest, whole, done)


def test_five_and_five_and_ten_steps_are_twenty(two_workers, tmp_path):
    job = replace(SMALL, steps=20, optimizer="muon", correction="error-feedback").job(TEXT)
    whole = two_workers.run(job)
    saves = Checkpoints(str(tmp_path), 5)
    two_workers.run(replace(job, steps=5, checkpoints=saves))
    assert latest_checkpoint(tmp_path) == folder_of(tmp_path, 5)
    ten = two_workers.run(replace(job, steps=10, checkpoints=saves, resume=str(latest_checkpoint(tmp_path))))
    assert ten.losses == whole.losses[:10]
    assert latest_checkpoint(tmp_path) == folder_of(tmp_path, 10)
    rest = two_workers.run(replace(job, checkpoints=saves, resume=str(latest_checkpoint(tmp_path))))
    assert_goes_on(rest, whole, 10)
    assert [step for step, _ in complete_checkpoints(tmp_path)] == [15, 20]  # keep = 2


def test_noise_from_the_global_generator_goes_on(two_workers, tmp_path):
    job = toy_job(optimizer=Langevin, snapshot_every=1)
    whole = two_workers.run(job)
    assert_goes_on(two_workers.run(replace(job, checkpoints=Checkpoints(str(tmp_path), 5))), whole, 0)
    assert_goes_on(two_workers.run(replace(job, resume=str(folder_of(tmp_path, 5)))), whole, 5)


def test_a_checkpoint_holds_tensors_only(two_workers, tmp_path):
    job = toy_job(optimizer=optimizer("adamw", "error-feedback"), checkpoints=Checkpoints(str(tmp_path), 12))
    two_workers.run(job)
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    folder = latest_checkpoint(tmp_path)
    assert {file.suffix for file in folder.iterdir()} == {".json", ".distcp", ""}
    metadata = FileSystemReader(folder).read_metadata()
    assert all(isinstance(item, TensorStorageMetadata) for item in metadata.state_dict_metadata.values())
    for where in metadata.storage_data.values():
        with (folder / where.relative_path).open("rb") as stream:
            stream.seek(where.offset)
            content = stream.read(where.length)
        import io

        assert isinstance(torch.load(io.BytesIO(content), weights_only=True), torch.Tensor)


def test_buffers_that_forwards_change_are_refused_by_name(two_workers, tmp_path):
    from tests.pipeline.toys import normed_layers

    job = toy_job(layers=normed_layers, checkpoints=Checkpoints(str(tmp_path), 2))
    with pytest.raises(RunError, match=r"stage 0 of 2, step 1: RunError: buffer layers\.1\.running_mean changes"):
        two_workers.run(job)
    assert complete_checkpoints(tmp_path) == []


def test_2bw_goes_on_at_another_number_of_stages(workers, alone, tmp_path):
    config = replace(SMALL, stages=4, microbatches=3, optimizer="muon", correction="error-feedback")
    for model in (MODEL, replace(MODEL, tied=True, dropout=0.1)):
        root = tmp_path / str(model.tied)
        whole = workers(4).run(replace(config, model=model).job(TEXT, Checkpoints(str(root), 3)))
        for stages in (2, 1):
            goes_on = replace(config, model=model, stages=stages)
            rest = workers(stages).run(goes_on.job(TEXT, resume=str(folder_of(root, 3))))
            gap, place = largest_difference(rest.snapshots, {k: w for k, w in whole.snapshots.items() if k > 3})
            # Gradients of a tied weight are added up in another order where its layers share a stage.
            assert gap <= (1e-12 if model.tied else 0.0), (model.tied, stages, place)
            assert rest.losses == (pytest.approx(whole.losses, rel=1e-12) if model.tied else whole.losses)
    for changes, message in (
        ({"microbatches": 4}, r"microbatches = 4: the checkpoint is of pipedream-2bw with 4 stages and .* = 3"),
        ({"schedule": "1f1b"}, r"schedule = '1f1b': the checkpoint is of pipedream-2bw with 4 stages"),
    ):
        changed = replace(config, stages=1, correction="none", **changes)
        with pytest.raises(InputError, match=message):
            alone(changed.job(TEXT, resume=str(folder_of(root, 3))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["soap", *LISTS_AND_COUNTERS])
def test_other_optimizers_go_on_at_another_number_of_stages(workers, tmp_path, name):
    config = replace(SMALL, stages=4, microbatches=3, steps=15, optimizer=name, correction="error-feedback")
    whole = workers(4).run(config.job(TEXT, Checkpoints(str(tmp_path), 11)))
    rest = workers(2).run(replace(config, stages=2).job(TEXT, resume=str(folder_of(tmp_path, 11))))
    assert_goes_on(rest, whole, 11)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["pipedream", "pipedream-2bw"])
def test_three_stages_go_on_while_microbatches_are_in_flight(workers, tmp_path, schedule):
    job = toy_job(schedule, 3, 2, snapshot_every=1, optimizer=optimizer("adamw"))
    whole = workers(3).run(replace(job, checkpoints=Checkpoints(str(tmp_path), 1, keep=20)))
    for done in range(1, 12):
        rest = workers(3).run(replace(job, resume=str(folder_of(tmp_path, done))))
        assert_goes_on(rest, whole, done)


def test_pipedream_refuses_another_number_of_stages(two_workers, tmp_path):
    job = toy_job("pipedream", 2, 1, checkpoints=Checkpoints(str(tmp_path), 12))
    two_workers.run(job)
    with pytest.raises(InputError) as caught:
        check_fits(read_manifest(latest_checkpoint(tmp_path)), toy_job("pipedream", 4, 1, steps=20))
    assert str(caught.value) == (
        "stages = 4: the checkpoint is of pipedream with 2 stages and stages = 2: each stage keeps versions of its own"
    )
