"""Consecutive layers as one module, with parameter names and random numbers that do not depend on the partition."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def layer_seed(seed: int, layer: int, microbatch: int) -> int:
    """Seed of the random numbers that a layer draws for a microbatch: 64 well-mixed bits of the three numbers."""
    digest = hashlib.blake2b(f"{seed} {layer} {microbatch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class LayerStack(nn.Module):
    """Runs layers one after another; parameters are named ``layers.<global index>.<name>``.

    layers: global layer index -> module, in order.
    seed: what a layer draws (dropout) depends on (seed, layer, :attr:`microbatch`) alone, and torch's global random
    state is left as it was; None: layers draw from the global state.
    recompute: keep only the inputs of the layers and run each again in the backward, on the weights that are bound
    then and with the same random numbers.
    """

    def __init__(self, layers: Mapping[int, nn.Module], seed: int | None = None, recompute: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({str(index): layer for index, layer in layers.items()})
        self.seed = seed
        self.recompute = recompute
        #: Global index of the microbatch that the next forward is for.
        self.microbatch = 0

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in self.layers.items():
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(
                    self._run,
                    int(index),
                    layer,
                    self.microbatch,
                    x,
                    use_reentrant=False,
                    preserve_rng_state=self.seed is None,  # with a seed the layer sets it itself
                )
            else:
                x = self._run(int(index), layer, self.microbatch, x)
        return x

    def _run(self, index: int, layer: nn.Module, microbatch: int, x: Tensor) -> Tensor:
        try:
            y = layer(x) if self.seed is None else self._seeded(index, layer, microbatch, x)
        except Exception as error:
            error.add_note(f"in layers.{index} ({type(layer).__name__})")
            raise
        if not isinstance(y, Tensor):
            kind = type(y).__name__
            raise TypeError(f"layers.{index} ({type(layer).__name__}) returns a {kind}; a layer must return one tensor")
        return y

    def _seeded(self, index: int, layer: nn.Module, microbatch: int, x: Tensor) -> Tensor:
        assert self.seed is not None
        generators = [torch.default_generator]
        if x.device.type == "cuda":
            generators.append(torch.cuda.default_generators[x.device.index or 0])
        before = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(layer_seed(self.seed, index, microbatch))
            y: Tensor = layer(x)
            return y
        finally:
            for generator, state in zip(generators, before, strict=True):
                generator.set_state(state)
