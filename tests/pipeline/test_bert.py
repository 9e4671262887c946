"""The masked-language encoder: sees both sides, predicts only what is masked, and cuts into microbatches exactly."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from pipeline.data.batches import ByteBatches
from pipeline.data.masked import MaskedBatches
from pipeline.data.tensors import TensorBatches
from pipeline.errors import InputError
from pipeline.models.bert import IGNORED, MASK, BERTConfig, bert_layers, masked_cross_entropy
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers
from pipeline.models.stack import LayerStack

SMALL = BERTConfig(layers=2, width=16, heads=2, context=8)
TEXT = bytes((7 * i * i + i) % 256 for i in range(4000))


def model_of(config, seed=0, dtype=torch.float32):
    return LayerStack(dict(enumerate(bert_layers(config, seed, dtype))))


def test_attention_sees_earlier_and_later_positions():
    model = model_of(SMALL)
    tokens = torch.zeros(1, 8, dtype=torch.int64)
    changed = tokens.clone()
    changed[0, 5] = MASK
    moved = (model(tokens) != model(changed)).any(dim=2)
    assert moved.all()


def test_weights_depend_on_seed_and_layer_only_and_not_on_the_precision():
    a, b, double = bert_layers(SMALL, 1), bert_layers(SMALL, 1), bert_layers(SMALL, 1, torch.float64)
    for x, y, z in zip(a, b, double, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(x.parameters(), y.parameters(), strict=True))
        assert all(torch.equal(p, q.float()) for p, q in zip(x.parameters(), z.parameters(), strict=True))
    assert not torch.equal(a[1].up.weight, a[2].up.weight)
    assert not torch.equal(a[1].up.weight, bert_layers(SMALL, 2)[1].up.weight)


def test_sizes_are_those_of_the_gpt_and_a_mask_token():
    gpt = gpt_layers(GPTConfig(layers=2, width=16, heads=2, context=8), 0)
    bert = bert_layers(SMALL, 0)
    shapes = [[(n, tuple(p.shape)) for n, p in layer.named_parameters()] for layer in bert]
    assert shapes[0] == [("byte_embedding.weight", (257, 16)), ("position_embedding.weight", (8, 16))]
    assert shapes[1:] == [[(n, tuple(p.shape)) for n, p in layer.named_parameters()] for layer in gpt[1:]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("tied", "outputs"), [(False, 256), (True, 257)])
def test_a_tied_head_has_an_output_for_the_mask_token_too(tied, outputs, dtype):
    layers = bert_layers(replace(SMALL, tied=tied), 0, dtype)
    assert (layers[-1].head.weight is layers[0].byte_embedding.weight) == tied
    logits = LayerStack(dict(enumerate(layers)))(torch.full((3, 8), MASK))
    assert logits.shape == (3, 8, outputs) and logits.dtype == dtype


def test_the_gradient_of_a_tie_is_the_sum_of_both_uses():
    inputs, targets = MaskedBatches(ByteBatches(TEXT, 8, 4, seed=0)).microbatch(0)
    tied, other = (bert_layers(replace(SMALL, tied=True), 0, torch.float64) for _ in range(2))
    other[-1].head.weight = torch.nn.Parameter(other[0].byte_embedding.weight.detach().clone())
    for layers in (tied, other):
        masked_cross_entropy(LayerStack(dict(enumerate(layers)))(inputs), targets).backward()
    both = other[0].byte_embedding.weight.grad + other[-1].head.weight.grad
    torch.testing.assert_close(tied[0].byte_embedding.weight.grad, both, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("tied", "low", "high"), [(False, 5.0, 7.0), (True, 5.5, 5.6)])
def test_the_loss_at_the_start_is_that_of_a_uniform_guess(tied, low, high):
    inputs, targets = MaskedBatches(ByteBatches(TEXT, 8, 64, seed=0)).microbatch(0)
    loss = masked_cross_entropy(model_of(replace(SMALL, tied=tied))(inputs), targets).item()
    assert low < loss < high  # ln 256 = 5.545, untied a head of unit variance above it


def test_dropout_is_for_training_only():
    tokens = torch.arange(16).view(2, 8)
    model, plain = model_of(replace(SMALL, dropout=0.3)), model_of(SMALL)
    assert not torch.equal(model(tokens), model(tokens))
    assert torch.equal(model.eval()(tokens), plain(tokens))


def test_the_loss_is_the_mean_over_what_is_not_ignored():
    logits = torch.randn(2, 3, 256, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = torch.tensor([[7, IGNORED, IGNORED], [IGNORED, 0, 255]])
    terms = [-logits[n, t].log_softmax(0)[targets[n, t]].item() for n, t in ((0, 0), (1, 1), (1, 2))]
    assert masked_cross_entropy(logits, targets).item() == pytest.approx(math.fsum(terms) / 3, rel=1e-14)


def masked_rows():
    return MaskedBatches(ByteBatches(TEXT, 8, 30, seed=4), rate=0.3).microbatch(0), masked_cross_entropy


def byte_rows():
    return ByteBatches(TEXT, 8, 30, seed=4).microbatch(0), cross_entropy


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rows", [masked_rows, byte_rows])
def test_the_gradient_of_a_batch_does_not_depend_on_the_number_of_microbatches(rows, tied):
    (inputs, targets), loss = rows()
    model = model_of(replace(SMALL, tied=tied), dtype=torch.float64)

    def gradients(microbatches, k=3):
        data = TensorBatches(inputs, targets, 12, microbatches, seed=9)
        model.zero_grad()
        for j in range(k * microbatches, (k + 1) * microbatches):
            x, y = data.microbatch(j)
            (loss(model(x), y) / microbatches).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters()}

    whole = gradients(1)
    assert max(g.abs().max() for g in whole.values()) > 1e-3
    for microbatches in (2, 3, 4, 6, 12):
        for name, gradient in gradients(microbatches).items():
            assert (gradient - whole[name]).abs().max() < 1e-12, (microbatches, name)
    other = gradients(1, k=2)
    assert any((other[name] - whole[name]).abs().max() > 1e-6 for name in whole)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("layers", 0, "layers = 0: allowed are integers of at least 1"),
        ("width", 10, "width = 10: must be a multiple of heads = 4"),
        ("tied", 1, "tied = 1: allowed are True and False"),
        ("dropout", 1.0, "dropout = 1.0: allowed are numbers of at least 0 and below 1"),
    ],
)
def test_bad_settings_are_refused(field, value, message):
    with pytest.raises(InputError, match=message):
        BERTConfig(**{field: value})
