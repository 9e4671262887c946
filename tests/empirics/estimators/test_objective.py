"""The finite objective against literal transcriptions of its formulas."""

from __future__ import annotations

import math

import pytest
import torch

from empirics.estimators.objective import FiniteObjective
from pipeline.data.batches import ByteBatches
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers

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
