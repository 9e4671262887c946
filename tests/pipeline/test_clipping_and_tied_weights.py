"""What stages agree on before a step: one norm for the whole model, one sum of a tied weight's gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipeline.data.tensors import TensorBatches
from pipeline.engine.pool import gather
from pipeline.engine.result import StageResult
from pipeline.engine.run_stage import share_of
from pipeline.errors import InputError, RunError
from pipeline.oracle import largest_difference
from pipeline.run import oracle_of
from pipeline.training import train, train_oracle
from tests.pipeline.small_models import MODEL, SMALL, TEXT, job_of, tensors

pytestmark = pytest.mark.processes

ONE_VERSION = ("gpipe", "1f1b", "pipedream-2bw", "uniform")


def relative_difference(a: dict[int, dict[str, Tensor]], b: dict[int, dict[str, Tensor]]) -> float:
    largest = max(float(w.abs().max()) for weights in b.values() for w in weights.values())
    return largest_difference(a, b)[0] / largest


def plain_step(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named], lr=1.0)


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
