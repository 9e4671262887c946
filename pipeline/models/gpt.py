"""A small byte-level GPT as a list of layers: embedding, pre-norm blocks, head (untied)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.errors import InputError

VOCABULARY = 256  # bytes


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of the model: ``layers`` blocks of ``width`` features with ``heads`` heads, ``context`` bytes."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    context: int = 64

    def __post_init__(self) -> None:
        for field in ("layers", "width", "heads", "context"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{field} = {value!r}: allowed are integers of at least 1")
        if self.width % self.heads:
            raise InputError(f"width = {self.width}: must be a multiple of heads = {self.heads}")


class Embedding(nn.Module):
    """Byte and position embedding: (sequences, context) integers -> (sequences, context, width)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.byte_embedding = nn.Embedding(VOCABULARY, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.byte_embedding(tokens) + self.position_embedding(positions)  # (N, T, C)


class Block(nn.Module):
    """Pre-norm transformer block with causal attention and a 4x feed-forward part."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        C = config.width
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(C)
        self.query_key_value = nn.Linear(C, 3 * C, bias=False)
        self.projection = nn.Linear(C, C, bias=False)
        self.feed_forward_norm = nn.LayerNorm(C)
        self.up = nn.Linear(C, 4 * C, bias=False)
        self.down = nn.Linear(4 * C, C, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        N, T, C = x.shape
        qkv = self.query_key_value(self.attention_norm(x))  # (N, T, 3C)
        q, k, v = qkv.view(N, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)  # 3 x (N, h, T, C/h)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(N, T, C))
        return x + self.down(F.gelu(self.up(self.feed_forward_norm(x))))


class Head(nn.Module):
    """Final norm and the map to byte logits: (N, T, C) -> (N, T, 256)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, VOCABULARY, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


def gpt_layers(config: GPTConfig, seed: int, dtype: torch.dtype = torch.float32) -> list[nn.Module]:
    """The layers of the model, initialised from (seed, layer index) alone: the same for any number of stages.

    Weights are drawn in float64 and rounded to ``dtype``, so runs in two precisions start at the same point.
    """
    layers: list[nn.Module] = [Embedding(config), *(Block(config) for _ in range(config.layers)), Head(config)]
    for index, layer in enumerate(layers):
        generator = torch.Generator().manual_seed(1_000_003 * seed + index)
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if parameter.ndim < 2:
                    continue  # gains 1, biases 0 as built
                std = 0.02 if "embedding" in name else 1 / math.sqrt(parameter.shape[1])
                if name in ("projection.weight", "down.weight"):
                    std /= math.sqrt(2 * config.layers)  # Radford et al. 2019: residual branches scaled by depth
                draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(std * draw)
        layers[index] = layer.to(dtype)
    return layers


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats per byte."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def partition(layers: int, stages: int) -> list[range]:
    """Consecutive layer indices of each stage, as even as possible, later stages first to get one more.

    Raises InputError where there are fewer layers than stages.
    """
    if stages > layers:
        raise InputError(f"stages = {stages}: the model has {layers} layers, at most one stage a layer is allowed")
    cuts = [(layers * s) // stages for s in range(stages + 1)]
    return [range(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
