"""The model as a whole: clipping, tied weights, precision, random numbers, partitions, torch's own schedules."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.data.batches import ByteBatches
from pipeline.data.masked import MaskedBatches
from pipeline.data.tensors import TensorBatches
from pipeline.engine.job import Job
from pipeline.engine.pool import gather
from pipeline.engine.result import StageResult
from pipeline.engine.run_stage import share_of
from pipeline.errors import InputError, RunError
from pipeline.models.bert import BERTConfig, bert_layers, masked_cross_entropy
from pipeline.models.gpt import GPTConfig
from pipeline.models.stack import LayerStack
from pipeline.oracle import largest_difference
from pipeline.run import losses_at_newest, oracle_of
from pipeline.schedules import engine_schedules, make_schedule
from pipeline.training import TrainConfig, train, train_oracle

pytestmark = pytest.mark.processes

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=5, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)
EQUAL = (0.0, "")
ONE_VERSION = ("gpipe", "1f1b", "pipedream-2bw", "uniform")


def tensors(rows: int = 48, inputs: int = 6, targets: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(rows, n, generator=generator, dtype=torch.float64) for n in (inputs, targets))
    return x, y


def sgd(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named if p.requires_grad], lr=0.1, momentum=0.9)


def frozen_too(named: Any) -> torch.optim.Optimizer:
    """Given everything; torch skips what has no gradient."""
    return torch.optim.SGD([p for _, p in named], lr=0.1)


def rmsprop(named: Any) -> torch.optim.Optimizer:
    return torch.optim.RMSprop([p for _, p in named], lr=1e-3, momentum=0.5, centered=True)


def adamw(named: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for _, p in named], lr=0.01, foreach=False)


def plain_step(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=1.0)


def standing_still(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=0.0)


def mlp() -> list[nn.Module]:
    sizes = [(6, 8), (8, 8), (8, 5), (5, 3)]
    return [nn.Sequential(nn.Linear(a, b), nn.Tanh()).double() for a, b in sizes]


def job_of(layers: Any = mlp, S: int = 2, schedule: str = "pipedream-2bw", m: int = 4, **changes: Any) -> Job:
    x, y = tensors()
    job = Job(
        schedule=make_schedule(schedule, S, m),
        layers=layers,
        optimizer=sgd,
        data=TensorBatches(x, y, batch=12, microbatches=m),
        loss=nn.functional.mse_loss,
        steps=5,
        snapshot_every=1,
    )
    return replace(job, **changes)


def relative_difference(a: dict[int, dict[str, Tensor]], b: dict[int, dict[str, Tensor]]) -> float:
    largest = max(float(w.abs().max()) for weights in b.values() for w in weights.values())
    return largest_difference(a, b)[0] / largest


# -- clipping: one norm for the whole model


class Known(nn.Module):
    """x + sum of coefficients times weight: the gradient of a mean over outputs is the coefficients."""

    def __init__(self, coefficients: list[float], weight: nn.Parameter | None = None) -> None:
        super().__init__()
        self.coefficients = torch.tensor(coefficients, dtype=torch.float64)
        self.weight = weight if weight is not None else nn.Parameter(torch.zeros(len(coefficients)).double())

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.coefficients * self.weight).sum()


def norms_three_and_four() -> list[nn.Module]:
    return [Known([3.0]), Known([0.0, -4.0])]


class Both(nn.Module):
    """A weight of its own and one that it shares."""

    def __init__(self, shared: nn.Parameter) -> None:
        super().__init__()
        self.shared = Known([2.0], shared)
        self.own = Known([0.0, -4.0])

    def forward(self, x: Tensor) -> Tensor:
        return self.own(self.shared(x))


def tied_norms_three_and_four() -> list[nn.Module]:
    """Gradient of the shared weight: 1 from the first stage, 2 from the second, 3 in all."""
    first = Known([1.0])
    return [first, Both(first.weight)]


def mean_output(output: Tensor, target: Tensor) -> Tensor:
    return output.mean()


@pytest.mark.parametrize("schedule", ONE_VERSION)
@pytest.mark.parametrize(("clip_norm", "norm"), [(2.0, 5.0), (math.inf, 4.0)])
@pytest.mark.parametrize(
    ("layers", "second"),
    [(norms_three_and_four, "layers.1.weight"), (tied_norms_three_and_four, "layers.1.own.weight")],
)
def test_all_stages_are_scaled_by_the_norm_of_the_whole_model(workers, schedule, clip_norm, norm, layers, second):
    job = job_of(layers, 2, schedule, 2, optimizer=plain_step, loss=mean_output, clip=1.0, clip_norm=clip_norm, steps=3)
    result = workers(2).run(job)
    assert result.norms == [norm] * 3
    scale = 1 / (norm + 1e-6)
    for k, weights in result.snapshots.items():
        assert set(weights) == {"layers.0.weight", second}
        assert float(weights["layers.0.weight"]) == pytest.approx(-3 * scale * k, rel=1e-15)
        assert weights[second].tolist() == pytest.approx([0, 4 * scale * k], rel=1e-15)
    oracle = oracle_of(job)
    assert largest_difference(result.snapshots, oracle.snapshots)[0] < 1e-15
    assert oracle.norms == result.norms


def test_a_gradient_below_the_limit_is_left_alone(workers):
    job = job_of(norms_three_and_four, m=2, optimizer=plain_step, loss=mean_output, clip=5.1, steps=2)
    result = workers(2).run(job)
    assert result.norms == [5.0, 5.0]
    assert float(result.snapshots[2]["layers.0.weight"]) == -6.0


@pytest.mark.parametrize("S", [2, 4])
@pytest.mark.parametrize("schedule", ONE_VERSION)
@pytest.mark.parametrize(("tied", "clip"), [(True, None), (False, 0.5), (True, 0.5)])
def test_clipping_and_tied_weights_follow_the_oracle(workers, S, schedule, tied, clip):
    model = replace(MODEL, tied=tied)
    config = replace(SMALL, stages=S, microbatches=4, schedule=schedule, model=model, clip=clip)
    engine, oracle = train(config, TEXT, workers(S)), train_oracle(config, TEXT)
    assert relative_difference(engine.snapshots, oracle.snapshots) <= 1e-13
    assert engine.norms == pytest.approx(oracle.norms, rel=1e-13)
    if clip is not None:
        assert min(engine.norms) > clip  # it was cut, every time
        unclipped = train_oracle(config, TEXT, clip=None)
        assert relative_difference(engine.snapshots, unclipped.snapshots) > 1e-4
    # The copies of a tied weight were equal at every snapshot, or gathering the result would have raised.
    assert ("layers.3.head.weight" in engine.weights) is not tied


def decaying(named: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for _, p in named], lr=0.1, weight_decay=0.5)


def frozen_and_tied() -> list[nn.Module]:
    """The first and the last layer share a weight that is not trained."""
    layers: list[nn.Module] = [nn.Linear(6, 6).double() for _ in range(4)]
    layers[3].weight = layers[0].weight
    layers[0].weight.requires_grad_(False)
    return layers


def three_users() -> list[nn.Module]:
    layers = frozen_and_tied()
    layers[0].weight.requires_grad_(True)
    layers[2].weight = layers[0].weight
    return layers


@pytest.mark.parametrize("layers", [frozen_and_tied, three_users])
@pytest.mark.parametrize("S", [2, 4])
@pytest.mark.parametrize("schedule", ["1f1b", "pipedream-2bw"])
def test_a_weight_tied_between_several_stages(workers, layers, S, schedule):
    x, _ = tensors()
    job = job_of(layers, S, schedule, clip=0.01, optimizer=decaying, data=TensorBatches(x, x.flip(1), 12, 4))
    engine, oracle = workers(S).run(job), oracle_of(job)
    assert relative_difference(engine.snapshots, oracle.snapshots) <= 1e-12
    frozen_still = torch.equal(engine.snapshots[1]["layers.0.weight"], engine.snapshots[5]["layers.0.weight"])
    assert frozen_still is (layers is frozen_and_tied)


def test_copies_that_differ_are_an_error():
    stages = [StageResult(s, snapshots={1: {"layers.0.weight": torch.tensor([1.0 + s * 1e-7])}}) for s in (0, 1)]
    with pytest.raises(RunError, match=r"after 1 steps the copies of the tied weight layers\.0\.weight differ"):
        gather(stages)


def test_pipedream_refuses_what_all_stages_have_to_agree_on():
    schedule = "pipedream"
    rest = (
        f"allowed where a microbatch reads one weight version at every stage; {schedule} would have to drain the "
        "pipeline before every step"
    )
    with pytest.raises(InputError, match=f"^clip = 1.0: {rest}$"):
        job_of(schedule=schedule, clip=1.0)
    with pytest.raises(InputError, match=f"^tied = True: {rest}$"):
        replace(SMALL, schedule=schedule, model=replace(MODEL, tied=True))
    with pytest.raises(InputError, match=rf"^tied weights = 'layers\.0\.weight': {rest}$"):
        share_of(job_of(tied_norms_three_and_four, schedule=schedule), 0)


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
