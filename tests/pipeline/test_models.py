"""The GPT: weights that do not depend on the partition, layers that differ, a partition that fits, tie and dropout."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

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


@pytest.mark.parametrize("dropout", [1.5, 1, -0.1, math.nan, True, "0.1", None])
def test_bad_dropout_is_refused(dropout):
    with pytest.raises(InputError, match="dropout = .*: allowed are numbers of at least 0 and below 1") as caught:
        GPTConfig(dropout=dropout)
    assert f"dropout = {dropout!r}:" in str(caught.value)


@pytest.mark.parametrize("tied", [1, "yes", None])
def test_a_tie_that_is_no_truth_value_is_refused(tied):
    with pytest.raises(InputError, match=f"tied = {tied!r}: allowed are True and False"):
        GPTConfig(tied=tied)


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def some_tokens(rows=4, context=8, seed=0):
    return torch.randint(0, 256, (rows, context), generator=torch.Generator().manual_seed(seed))


def literal(layers, tokens, p=0.0):
    """The model written out, with dropout of probability ``p`` in the places of GPT-2."""
    embedding, *blocks, head = layers
    x = embedding.byte_embedding.weight[tokens] + embedding.position_embedding.weight[: tokens.shape[1]]
    x = F.dropout(x, p)
    for b in blocks:
        N, T, C = x.shape
        qkv = b.query_key_value(b.attention_norm(x)).view(N, T, 3, b.heads, C // b.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True).transpose(1, 2).reshape(N, T, C)
        x = x + F.dropout(b.projection(y), p)
        x = x + F.dropout(b.down(F.gelu(b.up(b.feed_forward_norm(x)))), p)
    return head.head(head.norm(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_defaults_are_the_rule_written_out_to_the_last_bit(dtype):
    layers = gpt_layers(SMALL, 3, dtype)
    for index, layer in enumerate(layers):
        generator = torch.Generator().manual_seed(3_000_009 + index)
        for name, p in layer.named_parameters():
            if p.ndim == 1:
                assert (p == (1 if name.endswith("weight") else 0)).all()
                continue
            std = 0.02 if "embedding" in name else 1 / math.sqrt(p.shape[1])
            std = std / math.sqrt(6) if name in ("projection.weight", "down.weight") else std
            draw = std * torch.randn(p.shape, generator=generator, dtype=torch.float64)
            assert torch.equal(p, draw.float().to(dtype)), name
    before = torch.get_rng_state()
    assert torch.equal(run(layers, some_tokens()), literal(layers, some_tokens()))
    assert torch.equal(torch.get_rng_state(), before)  # no random number is drawn without dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_tie_is_one_parameter_in_two_layers_in_every_precision(dtype):
    layers = gpt_layers(replace(SMALL, tied=True), 0, dtype)
    assert layers[-1].head.weight is layers[0].byte_embedding.weight
    assert layers[0].byte_embedding.weight.dtype == dtype
    model = LayerStack(dict(enumerate(layers)))
    assert "layers.4.head.weight" not in dict(model.named_parameters())
    untied = LayerStack(dict(enumerate(gpt_layers(SMALL, 0, dtype))))
    count = sum(p.numel() for p in model.parameters())
    assert count == sum(p.numel() for p in untied.parameters()) - 256 * 16
    assert torch.equal(layers[0].byte_embedding.weight, untied.layers["0"].byte_embedding.weight)
    sent = pickle.loads(pickle.dumps(layers))
    assert sent[-1].head.weight is sent[0].byte_embedding.weight


def test_untied_layers_share_nothing():
    layers = gpt_layers(SMALL, 0)
    assert layers[-1].head.weight is not layers[0].byte_embedding.weight


@pytest.mark.parametrize("width", [16, 64, 256])
def test_the_tied_loss_at_the_start_is_near_a_uniform_guess(width):
    layers = gpt_layers(GPTConfig(width=width, tied=True), 0)
    with torch.no_grad():
        loss = cross_entropy(run(layers, some_tokens(64, 64)), some_tokens(64, 64, seed=1)).item()
    assert loss - math.log(256) == pytest.approx(2e-4 * width, abs=0.01)  # 4096 targets, logits of std <= 0.32


def test_the_gradient_of_a_tie_is_the_sum_of_both_uses():
    tied, untied = (gpt_layers(replace(SMALL, tied=t), 0, torch.float64) for t in (True, False))
    with torch.no_grad():
        untied[-1].head.weight.copy_(untied[0].byte_embedding.weight)
    for layers in (tied, untied):
        cross_entropy(run(layers, some_tokens()), some_tokens(seed=1)).backward()
    as_embedding, as_head = untied[0].byte_embedding.weight.grad, untied[-1].head.weight.grad
    assert as_embedding.abs().max() > 1e-4 and as_head.abs().max() > 1e-4
    torch.testing.assert_close(tied[0].byte_embedding.weight.grad, as_embedding + as_head, rtol=1e-12, atol=1e-15)


def test_dropout_is_in_the_places_of_gpt2():
    layers = gpt_layers(replace(SMALL, dropout=0.3), 0)
    torch.manual_seed(5)
    output = run(layers, some_tokens())
    torch.manual_seed(5)
    assert torch.equal(output, literal(layers, some_tokens(), 0.3))
    assert not torch.equal(output, run(layers, some_tokens()))


def test_dropout_ends_with_training():
    model = LayerStack(dict(enumerate(gpt_layers(replace(SMALL, dropout=0.3), 0)))).eval()
    assert torch.equal(model(some_tokens()), run(gpt_layers(SMALL, 0), some_tokens()))
