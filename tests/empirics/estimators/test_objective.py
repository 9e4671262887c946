"""The finite objective against literal transcriptions of its formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from empirics.estimators.objective import FiniteObjective
from pipeline.data.batches import ByteBatches
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers
from pipeline.models.stack import LayerStack
from pipeline.training import TrainConfig, held_out_loss

CONFIG = GPTConfig(layers=1, width=8, heads=2, context=8)
TEXT = bytes((7 * i * i + i) % 256 for i in range(4000))


@pytest.fixture
def objective():
    inputs, targets = ByteBatches(TEXT, 8, 1, seed=0, pool=10).full_pool()
    return FiniteObjective(gpt_layers(CONFIG, 0, torch.float64), inputs, targets, cross_entropy, chunk=3)


@pytest.fixture
def weights():
    layers = gpt_layers(CONFIG, 1, torch.float64)
    return {f"layers.{i}.{n}": p.detach() for i, layer in enumerate(layers) for n, p in layer.named_parameters()}


def forward(objective, rows):
    h = objective.inputs[rows]
    for layer in objective.layers:
        h = layer(h)
    return cross_entropy(h, objective.targets[rows])


def test_value_and_gradient_do_not_depend_on_the_chunk(objective, weights):
    value, gradient = objective.value_and_gradient(weights)
    assert objective.value(weights) == pytest.approx(value, rel=1e-14)
    whole = forward(objective, slice(None))
    assert whole.item() == pytest.approx(value, rel=1e-13)
    parameters = objective.parameters()
    naive = torch.autograd.grad(whole, list(parameters.values()))
    for (name, _), expected in zip(parameters.items(), naive, strict=True):
        torch.testing.assert_close(gradient[name], expected, rtol=1e-10, atol=1e-14)


def test_sequence_variance_is_the_mean_square_distance(objective, weights):
    _, full = objective.value_and_gradient(weights)
    parameters = objective.parameters()
    total = 0.0
    for i in range(10):
        one = torch.autograd.grad(forward(objective, slice(i, i + 1)), list(parameters.values()))
        total += sum(((g - full[name]) ** 2).sum().item() for name, g in zip(parameters, one, strict=True))
    assert objective.sequence_variance(weights) == pytest.approx(total / 10, rel=1e-10)


def test_the_variance_of_a_batch_follows_the_batch_size_law(objective, weights):
    # B sequences with replacement: E ||g - grad f||^2 = variance / B, checked by enumeration of all pairs.
    _, full = objective.value_and_gradient(weights)
    parameters = objective.parameters()
    single = [
        torch.cat(
            [g.flatten() for g in torch.autograd.grad(forward(objective, slice(i, i + 1)), list(parameters.values()))]
        )
        for i in range(10)
    ]
    mean = torch.cat([full[name].flatten() for name in parameters])
    pairs = [((a + b) / 2 - mean).square().sum().item() for a in single for b in single]
    assert math.fsum(pairs) / 100 == pytest.approx(objective.sequence_variance(weights) / 2, rel=1e-9)


def test_the_objective_has_no_dropout(objective, weights):
    layers = gpt_layers(replace(CONFIG, dropout=0.5), 0, torch.float64)
    dropping = FiniteObjective(layers, objective.inputs, objective.targets, cross_entropy, chunk=3)
    value, gradient = objective.value_and_gradient(weights)
    assert dropping.value(weights) == objective.value(weights)
    value_too, gradient_too = dropping.value_and_gradient(weights)
    assert value_too == value
    assert all(torch.equal(gradient_too[name], g) for name, g in gradient.items())
    assert dropping.sequence_variance(weights) == objective.sequence_variance(weights)


@pytest.mark.parametrize("tied", [False, True])
def test_the_held_out_loss_of_a_run_has_no_dropout(tied):
    # Weights by the names of a stack, in which a tied parameter has one.
    runs = [TrainConfig(steps=1, model=replace(CONFIG, tied=tied, dropout=p), stages=1) for p in (0.0, 0.5)]
    model = LayerStack(dict(enumerate(runs[0].make_layers())))
    weights = {name: p.detach() for name, p in model.named_parameters()}
    losses = [held_out_loss(run, TEXT, weights, 10) for run in runs]
    inputs, targets = runs[0].batches(TEXT).held_out(10)
    assert losses[0] == losses[1] == pytest.approx(cross_entropy(model(inputs), targets).item(), rel=1e-6)


def test_a_tied_parameter_is_counted_once(objective):
    layers = gpt_layers(replace(CONFIG, tied=True), 0, torch.float64)
    tied = FiniteObjective(layers, objective.inputs, objective.targets, cross_entropy, chunk=3)
    parameters = tied.parameters()
    assert set(objective.parameters()) - set(parameters) == {"layers.2.head.weight"}
    weights = {name: p.detach().clone() for name, p in parameters.items()}
    _, full = tied.value_and_gradient(weights)
    total = 0.0
    for i in range(10):
        one = torch.autograd.grad(forward(tied, slice(i, i + 1)), list(parameters.values()))
        total += sum(((g - full[name]) ** 2).sum().item() for name, g in zip(parameters, one, strict=True))
    assert tied.sequence_variance(weights) == pytest.approx(total / 10, rel=1e-10)
