"""The byte-level GPT on a finite pool of windows, as replicas: the layers that train, over many weights at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from empirics.errors import InputError
from empirics.estimators.hessian import second_derivatives
from empirics.problems.replicas import ReplicaLoss
from pipeline.data.batches import ByteBatches
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers


def gpt_replicas(
    text: bytes,
    sequences: int = 32,
    layers: int = 1,
    width: int = 16,
    heads: int = 2,
    context: int = 8,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> ReplicaLoss:
    """A GPT on `sequences` fixed windows of a text, from its usual start; parameters by their usual names."""
    if sequences < 1:
        raise InputError(f"sequences: {sequences!r}; allowed is an integer >= 1")
    config = GPTConfig(layers=layers, width=width, heads=heads, context=context)
    model = nn.Sequential(*gpt_layers(config, seed, dtype)).eval()
    inputs, targets = ByteBatches(text, context, 1, seed=0, pool=sequences).full_pool()
    named = {f"layers.{name}": p.detach() for name, p in model.named_parameters()}
    shapes = {name: tuple(p.shape) for name, p in named.items()}
    sizes = [p.numel() for p in named.values()]

    def one(w: Tensor, rows: Tensor) -> Tensor:
        parts = zip(shapes.items(), torch.split(w, sizes), strict=True)
        weights = {name.removeprefix("layers."): part.view(shape) for (name, shape), part in parts}
        return cross_entropy(functional_call(model, weights, (inputs[rows],)), targets[rows])

    def loss(w: Tensor, rows: Tensor) -> Tensor:
        with second_derivatives():
            out: Tensor = vmap(one)(w, rows)
        return out

    start = torch.cat([p.reshape(-1) for p in named.values()])
    return ReplicaLoss("gpt", len(start), sequences, loss, start, shapes)
