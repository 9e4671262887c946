"""The byte-level GPT on a finite pool of windows: full gradient, covariance and a lower bound of f by enumeration.

A causal model's output at a position is a function of the bytes up to there. Where several windows share such a prefix
and go on differently, no weights can be right about all of them: f is at least the entropy of the next byte given the
prefix, counted over the pool. That is the floor, sharper than 0 and exact.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import torch
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.objective import FiniteObjective
from empirics.problems.finite_sum import FiniteSum, weights_of
from pipeline.data.batches import ByteBatches
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers


def prefix_entropy(inputs: Tensor, targets: Tensor) -> float:
    """Entropy in nats per byte of the next byte given all bytes of its window before it, over windows [N, context]."""
    following: dict[bytes, Counter[int]] = defaultdict(Counter)
    for row, ends in zip(inputs.tolist(), targets.tolist(), strict=True):
        for t, end in enumerate(ends):
            following[bytes(row[: t + 1])][end] += 1
    total = math.fsum(
        count * math.log(sum(counts.values()) / count) for counts in following.values() for count in counts.values()
    )
    return total / targets.numel()


def gpt(
    text: bytes,
    sequences: int = 8,
    layers: int = 1,
    width: int = 16,
    heads: int = 2,
    context: int = 16,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> FiniteSum:
    """A GPT on `sequences` fixed windows of a text, from its usual start."""
    if sequences < 1:
        raise InputError(f"sequences: {sequences!r}; allowed is an integer >= 1")
    config = GPTConfig(layers=layers, width=width, heads=heads, context=context)
    inputs, targets = ByteBatches(text, context, 1, seed=0, pool=sequences).full_pool()
    objective = FiniteObjective(gpt_layers(config, seed, dtype), inputs, targets, cross_entropy)
    floor = (prefix_entropy(inputs, targets), "entropy of the next byte given its prefix, over the pool")
    return FiniteSum("gpt", objective, weights_of(objective), floor=floor)
