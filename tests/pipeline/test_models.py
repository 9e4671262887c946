"""The GPT: weights that do not depend on the partition, layers that differ, a partition that fits."""

from __future__ import annotations

import pytest
import torch

from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers, partition
from pipeline.models.stack import LayerStack

SMALL = GPTConfig(layers=3, width=16, heads=2, context=8)


def test_weights_depend_on_seed_and_layer_only():
    a, b = gpt_layers(SMALL, 1), gpt_layers(SMALL, 1)
    for x, y in zip(a, b, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(x.parameters(), y.parameters(), strict=True))
    assert not torch.equal(a[1].up.weight, a[2].up.weight)
    assert not torch.equal(a[1].up.weight, gpt_layers(SMALL, 2)[1].up.weight)


def test_both_precisions_start_at_the_same_point():
    single, double = gpt_layers(SMALL, 0), gpt_layers(SMALL, 0, torch.float64)
    for x, y in zip(single, double, strict=True):
        assert all(torch.equal(p, q.float()) for p, q in zip(x.parameters(), y.parameters(), strict=True))


def test_the_loss_at_the_start_is_that_of_a_uniform_guess():
    model = LayerStack(dict(enumerate(gpt_layers(SMALL, 0))))
    tokens = torch.randint(0, 256, (16, 8), generator=torch.Generator().manual_seed(0))
    assert 5.0 < cross_entropy(model(tokens), tokens).item() < 7.0  # ln 256 = 5.55, head of unit variance above it


def test_attention_is_causal():
    model = LayerStack(dict(enumerate(gpt_layers(SMALL, 0))))
    tokens = torch.zeros(1, 8, dtype=torch.int64)
    changed = tokens.clone()
    changed[0, 5] = 7
    a, b = model(tokens), model(changed)
    assert torch.equal(a[:, :5], b[:, :5])
    assert not torch.equal(a[:, 5:], b[:, 5:])


def test_default_model_is_the_size_the_runs_speak_of():
    assert sum(p.numel() for layer in gpt_layers(GPTConfig(), 0) for p in layer.parameters()) == 135_808


@pytest.mark.parametrize(("layers", "stages"), [(4, 1), (4, 2), (4, 3), (4, 4), (7, 3)])
def test_partition_covers_all_layers_in_order(layers, stages):
    parts = partition(layers, stages)
    assert [i for part in parts for i in part] == list(range(layers))
    assert {len(part) for part in parts} <= {layers // stages, -(-layers // stages)}


def test_fewer_layers_than_stages_is_refused():
    with pytest.raises(InputError, match="stages = 5: the model has 4 layers"):
        partition(4, 5)


@pytest.mark.parametrize("field", ["layers", "width", "heads", "context"])
def test_bad_sizes_are_refused(field):
    with pytest.raises(InputError, match=f"{field} = 0"):
        GPTConfig(**{field: 0})


def test_heads_must_divide_the_width():
    with pytest.raises(InputError, match="width = 10: must be a multiple of heads = 4"):
        GPTConfig(width=10)
