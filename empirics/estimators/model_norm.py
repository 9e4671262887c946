"""The norm of a whole model under the LMO optimizer, by parameter name: a weighted maximum over layers, and its dual.

norm(x) = max_l norm_l(x_l) / w_l, dual(g) = sum_l w_l dual_l(g_l), with w_l the layer's share of the step length, so
that one step of the optimizer has norm at most eta. Layer norms and their duals: :mod:`pipeline.optim.layer_norms`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from pipeline.optim.layer_norms import layer_rho, weighted_dual, weighted_norm


@dataclass(frozen=True)
class ModelNorm:
    """layers: parameter name -> (norm, weight)."""

    layers: Mapping[str, tuple[str, float]]

    @classmethod
    def of_optimizer(cls, groups: Iterable[Mapping[str, object]], names: Mapping[int, str]) -> ModelNorm:
        """From the parameter groups of an LMO optimizer; ``names``: id of a parameter -> its name."""
        layers: dict[str, tuple[str, float]] = {}
        for group in groups:
            for p in group["params"]:  # type: ignore[attr-defined]
                layers[names[id(p)]] = (str(group["norm"]), float(group["weight"]))  # type: ignore[arg-type]
        return cls(layers)

    def norm(self, x: Mapping[str, Tensor]) -> float:
        return weighted_norm((x[name], norm, w) for name, (norm, w) in self.layers.items())

    def dual(self, g: Mapping[str, Tensor]) -> float:
        return weighted_dual((g[name], norm, w) for name, (norm, w) in self.layers.items())

    def rho(self, x: Mapping[str, Tensor]) -> float:
        """dual(v) <= rho ||v||_F over the whole model, by Cauchy-Schwarz over the layers; attained."""
        return math.sqrt(sum((w * layer_rho(x[name].shape, norm)) ** 2 for name, (norm, w) in self.layers.items()))
