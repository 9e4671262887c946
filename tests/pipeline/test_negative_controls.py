"""What is broken on purpose must be seen: by the comparison with the oracle, by a version check, or by a refusal."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner, FileSystemReader, FileSystemWriter

from pipeline.data.tensors import TensorBatches
from pipeline.engine.checkpoint import MANIFEST, folder_of
from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.stage import VersionedStage
from pipeline.engine.store import VersionStore
from pipeline.errors import InputError, VersionError
from pipeline.models.gpt import GPTConfig
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of
from pipeline.schedules import make_schedule
from pipeline.schedules.pipedream_2bw import PipeDream2BW
from pipeline.training import TrainConfig, train, train_oracle

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
BW = TrainConfig(steps=5, microbatches=2, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)
PD = replace(BW, schedule="pipedream", microbatches=1)

#: Far above round-off, far below what a wrong version changes.
SEEN = 1e-8
EQUAL = (0.0, "")


# -- a small job whose parts can be broken one at a time


def linear_layers() -> list[nn.Module]:
    return [nn.Linear(4, 8).double(), nn.Tanh(), nn.Linear(8, 8).double(), nn.Linear(8, 2).double()]


def fused_adamw(named: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for _, p in named], lr=0.01, fused=True)


def sgd(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=0.05)


def small(S: int = 1, **changes: Any) -> Job:
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (torch.randn(24, n, generator=generator, dtype=torch.float64) for n in (4, 2))
    job = Job(
        schedule=make_schedule("pipedream-2bw", S, 2),
        layers=linear_layers,
        optimizer=fused_adamw,
        data=TensorBatches(inputs, targets, batch=4, microbatches=2),
        loss=nn.functional.mse_loss,
        steps=5,
        snapshot_every=1,
    )
    return replace(job, **changes)


# -- another trajectory is seen


@pytest.mark.parametrize(
    ("config", "shifts"),
    [(BW, (2, -2)), (PD, (1, -1)), (replace(BW, schedule="uniform", tau=2), (2, -2))],
    ids=["2bw", "pipedream", "uniform"],
)
def test_a_version_off_by_one_is_seen(workers, config, shifts):
    engine, job = train(config, TEXT, workers(2)), config.job(TEXT)
    assert largest_difference(engine.snapshots, oracle_of(job).snapshots) == EQUAL
    for shift in shifts:
        gap, place = largest_difference(engine.snapshots, oracle_of(job, shift=shift).snapshots)
        assert gap > SEEN, shift
        assert place.startswith("step ")


def test_a_synchronous_oracle_is_not_2bw(workers):
    engine = train(BW, TEXT, workers(2))
    for schedule in ("1f1b", "gpipe"):
        wrong = train_oracle(BW, TEXT, schedule=schedule)
        assert largest_difference(engine.snapshots, wrong.snapshots)[0] > SEEN
        # The first step is the same: there is no older version yet.
        assert largest_difference({1: engine.snapshots[1]}, {1: wrong.snapshots[1]}) == EQUAL


@dataclass(frozen=True)
class OneStepLate(PipeDream2BW):
    """2BW by name, with a delay of 2."""

    @property
    def delay(self) -> int:
        return 2


def test_a_schedule_that_reads_one_version_too_old_is_seen(workers):
    job = BW.job(TEXT)
    late = workers(2).run(replace(job, schedule=OneStepLate(2, 2)))
    assert largest_difference(late.snapshots, oracle_of(job).snapshots)[0] > SEEN
    assert largest_difference(late.snapshots, oracle_of(job, shift=2).snapshots) == EQUAL


# -- resuming from the newest weights alone


def with_newest_weights_only(path: Path, target: Path) -> int:
    """A copy of a checkpoint in which every older version holds the newest weights; returns how many tensors moved."""
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    metadata = FileSystemReader(path).read_metadata().state_dict_metadata
    state = {key: torch.empty(item.size, dtype=item.properties.dtype) for key, item in metadata.items()}
    shutil.rmtree(target, ignore_errors=True)
    changed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planner = DefaultLoadPlanner(flatten_state_dict=False)
        dcp.load(state, storage_reader=FileSystemReader(path), planner=planner, no_dist=True)
        for key, value in state.items():
            if key.startswith("weights/"):
                newest = state[f"weights/{manifest['step']}/{key.split('/', 2)[2]}"]
                changed += not torch.equal(value, newest)
                state[key] = newest.clone()
        dcp.save(
            state,
            storage_writer=FileSystemWriter(target),
            planner=DefaultSavePlanner(flatten_state_dict=False),
            no_dist=True,
        )
    manifest["files"] = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in target.iterdir()}
    (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return changed


@pytest.mark.parametrize("config", [BW, PD], ids=["2bw", "pipedream"])
def test_a_resume_from_the_newest_weights_alone_is_seen(workers, tmp_path, config):
    config = replace(config, steps=8)
    whole = train_oracle(config, TEXT).snapshots
    saving = config.job(TEXT, Checkpoints(str(tmp_path / "kept"), every=4))
    assert largest_difference(workers(2).run(saving).snapshots, whole) == EQUAL
    kept = folder_of(tmp_path / "kept", 4)
    later = {step: whole[step] for step in range(5, 9)}
    honest = workers(2).run(config.job(TEXT, resume=str(kept)))
    assert largest_difference(honest.snapshots, later) == EQUAL
    assert with_newest_weights_only(kept, tmp_path / "doctored") > 0
    doctored = workers(2).run(config.job(TEXT, resume=str(tmp_path / "doctored")))
    assert largest_difference(doctored.snapshots, later)[0] > SEEN


# -- an optimizer that writes into weights that are still read


class HoldsAddresses(torch.optim.AdamW):
    """Fused AdamW that keeps the storages that it was built on, and steps on those: the live version 0."""

    def __init__(self, named: Any) -> None:
        parameters = [p for _, p in named]
        super().__init__(parameters, lr=0.01, fused=True)
        self.kept = [p.data for p in parameters]

    def step(self, closure: Any = None) -> None:
        for p, storage in zip(self.param_groups[0]["params"], self.kept, strict=True):
            p.data = storage
        super().step(closure)


@pytest.mark.parametrize("schedule", ["pipedream-2bw", "1f1b", "pipedream"])
def test_a_fused_optimizer_through_the_engine_equals_the_oracle(workers, schedule):
    job = small(2, schedule=make_schedule(schedule, 2, 2), confirm=True)
    assert largest_difference(workers(2).run(job).snapshots, oracle_of(job).snapshots) == EQUAL


def test_an_optimizer_that_holds_on_to_live_weights_is_caught(two_workers):
    job = small(2, optimizer=HoldsAddresses)
    assert largest_difference(two_workers.run(job).snapshots, oracle_of(small(2)).snapshots)[0] > SEEN
    with pytest.raises(VersionError, match="weights tagged as version 0 are not what was written as that version"):
        two_workers.run(replace(job, confirm=True))


def steps_on_the_newest(store: VersionStore) -> None:
    """begin_step without its last act: the handles stay where they are, on the newest version's storage."""
    before = {name: handle.data for name, handle in store.handles.items()}
    right_begin_step(store)
    for name, handle in store.handles.items():
        handle.data = before[name]


right_begin_step = VersionStore.begin_step


def test_a_store_whose_handles_share_the_live_storage_is_caught(alone, monkeypatch):
    job = small()
    oracle = oracle_of(job)
    assert largest_difference(alone(replace(job, confirm=True)).snapshots, oracle.snapshots) == EQUAL
    monkeypatch.setattr(VersionStore, "begin_step", steps_on_the_newest)
    assert largest_difference(alone(job).snapshots, oracle.snapshots)[0] > SEEN
    with pytest.raises(VersionError, match="weights tagged as version 0 are not what was written"):
        alone(replace(job, confirm=True))


# -- a write past autograd into a live version


class Drifting(nn.Linear):
    """Its weights move in every forward, behind autograd's back."""

    def forward(self, x: Tensor) -> Tensor:
        self.weight.data.add_(1e-3)
        return super().forward(x)


def drifting_layers() -> list[nn.Module]:
    return [nn.Linear(4, 8).double(), nn.Tanh(), Drifting(8, 2).double()]


class Watched(nn.Linear):
    """Leaves the weights of its last forward where the loss below finds them."""

    def forward(self, x: Tensor) -> Tensor:
        LAST[:] = [self.weight]
        return super().forward(x)


LAST: list[nn.Parameter] = []


def watched_layers() -> list[nn.Module]:
    return [nn.Linear(4, 8).double(), nn.Tanh(), Watched(8, 2).double()]


def writing_loss(output: Tensor, target: Tensor) -> Tensor:
    LAST[0].data.add_(1e-3)
    return nn.functional.mse_loss(output, target)


def test_a_write_in_a_forward_is_caught_by_a_worker(two_workers):
    with pytest.raises(VersionError, match=r"stage 1 of 2, step 0: .*weights tagged as version 0 are not what was"):
        two_workers.run(small(2, layers=drifting_layers, confirm=True))


def test_a_write_between_forward_and_backward_is_caught(alone):
    job = small(layers=watched_layers, confirm=True)
    assert largest_difference(alone(job).snapshots, oracle_of(job).snapshots) == EQUAL
    with pytest.raises(VersionError, match="weights tagged as version 0 are not what was written as that version"):
        alone(replace(job, loss=writing_loss))
    # Unseen without the checksums: neither tags nor autograd's counters notice such a write.
    unchecked = alone(replace(job, loss=writing_loss, confirm=False))
    assert largest_difference(unchecked.snapshots, oracle_of(job).snapshots)[0] > SEEN


def test_weights_of_another_version_are_named(alone, monkeypatch):
    right_bind = VersionStore.bind

    def overwrite(store: VersionStore, version: int) -> None:
        """A binding that puts the newest weights into the storage of the version asked for."""
        right_bind(store, version)
        newest = store.leaves(store.newest)
        for name, leaf in store.leaves(version).items():
            leaf.data.copy_(newest[name])

    monkeypatch.setattr(VersionStore, "bind", overwrite)
    with pytest.raises(VersionError, match="weights tagged as version 0 are those of version 1"):
        alone(small(confirm=True))


# -- a stage on the wrong version


def test_a_recomputation_on_a_wrong_version_is_caught(alone, monkeypatch):
    job = small(recompute=True)
    assert largest_difference(alone(job).snapshots, oracle_of(job).snapshots) == EQUAL
    right = VersionedStage.backward_microbatch

    def bound_to_the_newest(stage: VersionedStage, j: int, loss: Tensor | None) -> int:
        bind = stage.store.bind
        with monkeypatch.context() as patch:
            patch.setattr(stage.store, "bind", lambda version: bind(stage.store.newest))
            return right(stage, j, loss)

    monkeypatch.setattr(VersionedStage, "backward_microbatch", bound_to_the_newest)
    with pytest.raises(VersionError, match=r"backward of microbatch 2 at stage 0 mixed versions \[0, 1\]"):
        alone(job)


def test_a_forward_on_a_wrong_version_is_seen_in_the_trace(alone, monkeypatch):
    right = VersionedStage.forward_microbatch

    def bound_to_the_newest(stage: VersionedStage, j: int, args: tuple[Any, ...]) -> tuple[Tensor, int]:
        bind = stage.store.bind
        with monkeypatch.context() as patch:
            patch.setattr(stage.store, "bind", lambda version: bind(stage.store.newest))
            return right(stage, j, args)

    job = small()
    honest = alone(job)
    assert [e.version for e in honest.events if e.kind == "forward"] == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    monkeypatch.setattr(VersionedStage, "forward_microbatch", bound_to_the_newest)
    wrong = alone(job)
    assert [e.version for e in wrong.events if e.kind == "forward"] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


# -- refusals


@pytest.mark.parametrize(("S", "m"), [(3, 1), (4, 1), (4, 2), (8, 6)])
def test_too_few_microbatches_need_a_policy(S, m):
    with pytest.raises(InputError, match=f"microbatches = {m}: pipedream-2bw with {S} stages needs at least {S - 1}"):
        replace(BW, stages=S, microbatches=m, model=replace(MODEL, layers=6))
    for policy in ("stall", "uniform"):
        assert replace(BW, stages=S, microbatches=m, policy=policy, model=replace(MODEL, layers=6)).plan.short
