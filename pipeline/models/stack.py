"""Consecutive layers as one module, with parameter names that do not depend on the partition."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn


class LayerStack(nn.Module):
    """Runs layers one after another; parameters are named ``layers.<global index>.<name>``.

    layers: global layer index -> module, in order.
    """

    def __init__(self, layers: Mapping[int, nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({str(index): layer for index, layer in layers.items()})

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers.values():
            x = layer(x)
        return x
