"""A small byte-level GPT as a list of layers: embedding, pre-norm blocks, head (untied by default).

The layers and their initialisation also serve the encoder of :mod:`pipeline.models.bert`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.errors import InputError

VOCABULARY = 256  # bytes


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a model: ``layers`` blocks of ``width`` features with ``heads`` heads, ``context`` bytes.

    tied: the head's weight is the byte embedding's Parameter, one object in two layers.
    dropout: probability, in training, on the embedding's sum, on attention and on each residual branch, as in GPT-2.
    """

    layers: int = 2
    width: int = 64
    heads: int = 4
    context: int = 64
    tied: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for field in ("layers", "width", "heads", "context"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{field} = {value!r}: allowed are integers of at least 1")
        if self.width % self.heads:
            raise InputError(f"width = {self.width}: must be a multiple of heads = {self.heads}")
        if not isinstance(self.tied, bool):
            raise InputError(f"tied = {self.tied!r}: allowed are True and False")
        p = self.dropout
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p < 1:
            raise InputError(f"dropout = {p!r}: allowed are numbers of at least 0 and below 1")


@dataclass(frozen=True)
class GPTConfig(TransformerConfig):
    """Sizes of a GPT (Radford et al. 2019)."""


class Embedding(nn.Module):
    """Byte and position embedding: (sequences, context) integers -> (sequences, context, width)."""

    def __init__(self, config: TransformerConfig, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.byte_embedding = nn.Embedding(vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.byte_embedding(tokens) + self.position_embedding(positions)  # (N, T, C)
        return F.dropout(x, self.dropout, self.training)


class Block(nn.Module):
    """Pre-norm transformer block with a 4x feed-forward part; causal: no position sees a later one."""

    def __init__(self, config: TransformerConfig, causal: bool = True) -> None:
        super().__init__()
        C = config.width
        self.heads = config.heads
        self.causal = causal
        self.dropout = config.dropout
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
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.causal)
        x = x + self._drop(self.projection(y.transpose(1, 2).reshape(N, T, C)))
        return x + self._drop(self.down(F.gelu(self.up(self.feed_forward_norm(x)))))

    def _drop(self, branch: Tensor) -> Tensor:
        return F.dropout(branch, self.dropout, self.training)


class Head(nn.Module):
    """Final norm and the map to logits: (N, T, C) -> (N, T, outputs), by default one for each byte."""

    def __init__(self, config: TransformerConfig, outputs: int = VOCABULARY) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


def gpt_layers(config: GPTConfig, seed: int, dtype: torch.dtype = torch.float32) -> list[nn.Module]:
    """The layers of the model, initialised from (seed, layer index) alone: the same for any number of stages."""
    blocks = (Block(config) for _ in range(config.layers))
    return initialise(Embedding(config), blocks, Head(config), config, seed, dtype)


def initialise(
    embedding: Embedding,
    blocks: Iterable[Block],
    head: Head,
    config: TransformerConfig,
    seed: int,
    dtype: torch.dtype,
) -> list[nn.Module]:
    """The layers in order, with weights drawn from (seed, layer index) and tied if the config says so.

    Weights are drawn in float64 and rounded to ``dtype``, so runs in two precisions start at the same point.
    """
    layers: list[nn.Module] = [embedding, *blocks, head]
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
    if config.tied:
        # After the cast, so that it is one object whatever the cast replaces. The tied matrix is the embedding's own
        # draw, std 0.02, not the head's 1/sqrt(width): on normed features its logits have variance 4e-4 width, so
        # the loss starts at about ln 256 + 2e-4 width, 0.013 above a uniform guess at width 64.
        head.head.weight = embedding.byte_embedding.weight
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
