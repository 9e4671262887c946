"""The model as a whole: precision, random numbers, partitions, torch's own schedules."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.data.batches import ByteBatches
from pipeline.data.masked import MaskedBatches
from pipeline.data.tensors import TensorBatches
from pipeline.engine.job import Job
from pipeline.engine.run_stage import share_of
from pipeline.models.bert import BERTConfig, bert_layers, masked_cross_entropy
from pipeline.models.stack import LayerStack
from pipeline.oracle import largest_difference
from pipeline.run import losses_at_newest, oracle_of
from pipeline.schedules import engine_schedules
from pipeline.training import train, train_oracle
from tests.pipeline.small_models import EQUAL, MODEL, SMALL, TEXT, job_of, mlp, sgd, tensors

pytestmark = pytest.mark.processes


def frozen_too(named: Any) -> torch.optim.Optimizer:
    """Given everything; torch skips what has no gradient."""
    return torch.optim.SGD([p for _, p in named], lr=0.1)


def rmsprop(named: Any) -> torch.optim.Optimizer:
    return torch.optim.RMSprop([p for _, p in named], lr=1e-3, momentum=0.5, centered=True)


def adamw(named: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for _, p in named], lr=0.01, foreach=False)


def standing_still(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=0.0)


# -- bf16 with float32 masters


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
@pytest.mark.parametrize(
    ("schedule", "correction"), [("1f1b", "none"), ("pipedream-2bw", "none"), ("pipedream-2bw", "error-feedback")]
)
def test_bfloat16_with_full_precision_masters_equals_the_oracle(workers, optimizer, schedule, correction):
    config = replace(SMALL, dtype="bfloat16", optimizer=optimizer, schedule=schedule, correction=correction)
    engine, oracle = train(config, TEXT, workers(2)), train_oracle(config, TEXT)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert engine.losses == oracle.losses
    assert {w.dtype for weights in engine.snapshots.values() for w in weights.values()} == {torch.float32}
    # The optimizer's weights are not rounded to what the layers compute with.
    assert any(not torch.equal(w, w.bfloat16().float()) for w in engine.weights.values())


# -- random numbers belong to (seed, layer, microbatch)

DROPOUT = replace(SMALL, schedule="1f1b", microbatches=4, model=replace(MODEL, dropout=0.3))


@pytest.fixture(scope="module")
def with_dropout() -> Any:
    return train_oracle(DROPOUT, TEXT)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("S", [1, 2, 4])
def test_dropout_depends_on_neither_partition_nor_recomputation(workers, with_dropout, S, recompute):
    engine = train(replace(DROPOUT, stages=S, recompute=recompute), TEXT, workers(S))
    assert largest_difference(engine.snapshots, with_dropout.snapshots) == EQUAL


def test_dropout_is_at_work(with_dropout):
    for changes in ({"model": MODEL}, {"seed": 1}):
        other = train_oracle(DROPOUT, TEXT, **changes)
        assert largest_difference(with_dropout.snapshots, other.snapshots)[0] > 1e-6


@dataclass
class NotesTheState:
    """Data that notes torch's global random state whenever it is asked."""

    inner: Any
    states: list[Tensor]

    def microbatch(self, j: int) -> Any:
        self.states.append(torch.get_rng_state())
        return self.inner.microbatch(j)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_run_with_dropout_leaves_the_global_random_state_alone(alone, recompute):
    job = replace(DROPOUT, stages=1, recompute=recompute, schedule="pipedream-2bw").job(TEXT)
    data = NotesTheState(job.data, [])
    alone(replace(job, data=data))
    data.states.append(torch.get_rng_state())
    assert len(data.states) == 1 + 20 + 1  # shapes, 5 steps of 4 microbatches, the end
    assert all(torch.equal(state, data.states[0]) for state in data.states)


def test_a_layer_draws_the_same_for_a_microbatch_whatever_came_before():
    x = torch.ones(4, 100)
    one = LayerStack({3: nn.Dropout(0.5)}, seed=7)
    one.microbatch = 5
    first = one(x)
    two = LayerStack({2: nn.Dropout(0.5), 3: nn.Dropout(0.5)}, seed=7)
    two(x)
    two.microbatch = 5
    assert torch.equal(two._run(3, two.layers["3"], 5, x), first)
    assert not torch.equal(two._run(2, two.layers["2"], 5, x), first)
    assert not torch.equal(two._run(3, two.layers["3"], 6, x), first)


@pytest.mark.parametrize("seed", [None, 7])
def test_a_recomputation_draws_the_same_numbers(seed):
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(0)
        stack = LayerStack({0: nn.Sequential(nn.Linear(6, 50), nn.Dropout(0.5), nn.Tanh())}, seed, recompute)
        stack(torch.ones(3, 6)).sum().backward()
        weight = stack.get_parameter("layers.0.0.weight")
        assert weight.grad is not None
        gradients.append(weight.grad)
    assert torch.equal(*gradients)


# -- default initialisation


def equal_linears() -> list[nn.Module]:
    return [nn.Linear(6, 6).double() for _ in range(8)]


def initial_job(S: int) -> Job:
    x, _ = tensors()
    data = TensorBatches(x, x, batch=4, microbatches=4)
    return job_of(equal_linears, S, "1f1b", optimizer=standing_still, data=data, steps=1, seed=3)


def initial_weights(S: int) -> dict[str, Tensor]:
    shares = [share_of(initial_job(S), s).module for s in range(S)]
    return {name: p.detach().clone() for share in shares for name, p in share.named_parameters()}


@pytest.mark.parametrize("S", [1, 2, 4, 8])
def test_default_initial_weights_do_not_depend_on_the_number_of_stages(S):
    whole, found = initial_weights(1), initial_weights(S)
    assert len(found) == 16
    assert largest_difference({0: found}, {0: whole}) == EQUAL
    weights = [w for name, w in found.items() if name.endswith("weight")]
    assert not any(torch.equal(a, b) for i, a in enumerate(weights) for b in weights[:i])
    torch.manual_seed(3)
    assert torch.equal(nn.Linear(6, 6).double().weight, weights[0])  # nothing is drawn before


@pytest.mark.parametrize("S", [1, 2, 4])
def test_processes_start_from_these_weights(workers, S):
    assert largest_difference(workers(S).run(initial_job(S)).snapshots, {1: initial_weights(8)}) == EQUAL


# -- other models, parts and optimizers


@pytest.mark.parametrize("schedule", ["1f1b", "pipedream-2bw"])
def test_bert_trains_on_two_stages(workers, schedule):
    config = BERTConfig(layers=2, width=16, heads=2, context=16, dropout=0.1)
    job = job_of(
        functools.partial(bert_layers, config, 0, torch.float64),
        schedule=schedule,
        m=2,
        data=MaskedBatches(ByteBatches(b"abcdefgh" * 100, 16, 4, seed=0)),
        loss=masked_cross_entropy,
        optimizer=adamw,
        steps=25,
    )
    engine, oracle = workers(2).run(job), oracle_of(job)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert engine.losses == oracle.losses
    assert sum(engine.losses[-5:]) < 0.7 * sum(engine.losses[:5])


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().sum()


def slow_sgd(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=1e-3, momentum=0.9)


@pytest.mark.parametrize(
    ("reduction", "loss", "optimizer"), [("mean", nn.functional.mse_loss, sgd), ("sum", squared_error, slow_sgd)]
)
@pytest.mark.parametrize("schedule", ["1f1b", "pipedream-2bw"])
def test_a_batch_does_not_depend_on_how_it_is_cut(workers, reduction, loss, optimizer, schedule):
    results = {
        m: workers(2).run(job_of(m=m, schedule=schedule, reduction=reduction, loss=loss, optimizer=optimizer))
        for m in (1, 2, 3, 4, 6, 12)
    }
    whole = results.pop(1)
    for m, result in results.items():
        assert largest_difference(result.snapshots, whole.snapshots)[0] < 1e-10, m
        assert result.losses == pytest.approx(whole.losses, rel=1e-10)
    if schedule == "1f1b":
        # The first step is the gradient of the loss of all twelve rows, by torch alone.
        job = job_of(m=1)
        torch.manual_seed(job.seed)
        model = nn.Sequential(*job.layers())
        before = [p.detach().clone() for p in model.parameters()]
        loss(model(job.data.microbatch(0)[0]), job.data.microbatch(0)[1]).backward()
        lr = 0.1 if reduction == "mean" else 1e-3
        for p, old, new in zip(model.parameters(), before, whole.snapshots[1].values(), strict=True):
            assert p.grad is not None
            assert float((old - lr * p.grad - new).abs().max()) < 1e-14


def frozen(which: set[int]) -> list[nn.Module]:
    layers = mlp()
    for index in which:
        layers[index].requires_grad_(False)
    return layers


def activation_at(place: int) -> list[nn.Module]:
    layers: list[nn.Module] = [nn.Linear(6, 6).double(), nn.Linear(6, 6).double(), nn.Linear(6, 3).double()]
    layers.insert(place, nn.Tanh())
    return layers


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "pipedream", "pipedream-2bw"])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    ("S", "layers"),
    [
        (2, functools.partial(frozen, {0, 1})),  # the first stage
        (2, functools.partial(frozen, {2, 3})),  # the last stage
        (4, functools.partial(frozen, {0, 1, 2})),  # everything but the head
        (2, functools.partial(frozen, {0, 2})),
        (4, functools.partial(activation_at, 0)),  # stages without any parameter
        (4, functools.partial(activation_at, 1)),
        (4, functools.partial(activation_at, 3)),
    ],
    ids=["first", "last", "all-but-head", "some", "tanh-first", "tanh-within", "tanh-last"],
)
def test_frozen_and_empty_stages_equal_the_oracle(workers, S, layers, schedule, recompute):
    job = job_of(layers, S, schedule, optimizer=frozen_too, recompute=recompute)
    engine, oracle = workers(S).run(job), oracle_of(job)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert engine.losses == oracle.losses
    torch.manual_seed(job.seed)
    start = dict(LayerStack(dict(enumerate(layers()))).named_parameters())
    assert set(engine.weights) == set(start)
    for name, p in start.items():
        assert torch.equal(engine.weights[name], p) is not p.requires_grad, name


@pytest.mark.parametrize("schedule", engine_schedules())
def test_a_list_of_layers_with_torchs_rmsprop_equals_the_oracle(workers, schedule):
    job = job_of(schedule=schedule, optimizer=rmsprop, parts=(range(0, 1), range(1, 4)))
    engine, oracle = workers(2).run(job), oracle_of(job)
    assert largest_difference(engine.snapshots, oracle.snapshots) == EQUAL
    assert engine.losses == oracle.losses


# -- torch's own schedules, and the loss that a synchronous run would log


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("m", [2, 3])
def test_torchs_own_schedules_take_the_same_steps(workers, schedule, m):
    for job in (
        replace(SMALL, schedule=schedule, microbatches=m, optimizer="adamw").job(TEXT),
        job_of(schedule=schedule, m=m),
        job_of(schedule=schedule, m=m, recompute=True),
        job_of(functools.partial(activation_at, 0), schedule=schedule, m=m),
        job_of(functools.partial(activation_at, 3), schedule=schedule, m=m),
        job_of(functools.partial(activation_at, 3), schedule=schedule, m=m, parts=(range(3), range(3, 4))),
        job_of(functools.partial(frozen, {0, 1}), schedule=schedule, m=m, optimizer=frozen_too),
    ):
        ours, theirs = workers(2).run(job), workers(2).run(replace(job, driver="torch"))
        assert largest_difference(ours.snapshots, theirs.snapshots) == EQUAL
        assert ours.losses == theirs.losses
        assert (ours.input_digest, ours.target_digest) == (theirs.input_digest, theirs.target_digest)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_loss_at_the_newest_weights(workers, dtype):
    for schedule in ("1f1b", "pipedream-2bw"):
        config = replace(DROPOUT, schedule=schedule, stages=2, dtype=dtype)
        result = train(config, TEXT, workers(2))
        newest = losses_at_newest(config.job(TEXT), result.snapshots)
        assert list(newest) == [1, 2, 3, 4]
        used = {k: result.losses[k] for k in newest}
        if schedule == "1f1b":
            assert newest == used
        else:
            assert all(abs(newest[k] - used[k]) > 1e-6 for k in newest)
