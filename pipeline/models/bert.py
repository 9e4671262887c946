"""A small byte-level BERT (Devlin et al. 2019) as a list of layers: embedding, bidirectional blocks, head.

Pre-norm, where Devlin et al. have post-norm: it trains without warm-up (Xiong et al. 2020) and shares the GPT's blocks.
There are no segment embeddings, and the head is a norm and one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.models.gpt import VOCABULARY, Block, Embedding, Head, TransformerConfig, initialise

MASK = VOCABULARY  # the token after the bytes
IGNORED = -100  # target of a position that is not predicted


@dataclass(frozen=True)
class BERTConfig(TransformerConfig):
    """Sizes of a BERT. Tied, its head is the whole embedding, 257 outputs with the mask token's; untied it has 256."""


def bert_layers(config: BERTConfig, seed: int, dtype: torch.dtype = torch.float32) -> list[nn.Module]:
    """The layers of the model, initialised like the GPT's: (N, T) integers up to MASK -> (N, T, 256 or 257) logits."""
    tokens = VOCABULARY + 1
    blocks = (Block(config, causal=False) for _ in range(config.layers))
    head = Head(config, tokens if config.tied else VOCABULARY)
    return initialise(Embedding(config, tokens), blocks, head, config, seed, dtype)


def masked_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats over the targets that are not IGNORED; NaN where there are none."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
