"""The norm of a whole model under the LMO optimizer, by parameter name: a weighted maximum over layers, and its dual.

norm(x) = max_l norm_l(x_l) / w_l, dual(g) = sum_l w_l dual_l(g_l), with w_l the layer's share of the step length, so
that one step of the optimizer has norm at most eta. Layer norms and their duals: :mod:`pipeline.optim.layer_norms`.
:class:`EuclideanNorm` is the Frobenius norm of everything together, which is no maximum over layers. Both have norm,
dual, rho and direction: the estimators take either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from empirics.errors import InputError
from pipeline.optim.layer_norms import check_norm, layer_rho, weighted_dual, weighted_norm
from pipeline.optim.lmo import lmo_direction

#: "layers": spectral for matrices, sign for vectors, the maximum over layers; the others are one norm for everything.
MODEL_NORMS = ("spectral", "sign", "row-l2", "frobenius", "layers")


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

    def direction(self, g: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """d with norm(d) <= 1 and <g, d> = dual(g); 0 in the layers where g is 0."""
        return {name: w * lmo_direction(g[name], norm) for name, (norm, w) in self.layers.items()}


@dataclass(frozen=True)
class EuclideanNorm:
    """The Frobenius norm of all parameters together, its own dual."""

    def norm(self, x: Mapping[str, Tensor]) -> float:
        size = max((float(v.abs().max()) for v in x.values() if v.numel()), default=0.0)
        if size == 0.0 or not math.isfinite(size):
            return size
        return size * math.sqrt(sum(float(((v.double() / size) ** 2).sum()) for v in x.values()))

    def dual(self, g: Mapping[str, Tensor]) -> float:
        return self.norm(g)

    def rho(self, x: Mapping[str, Tensor]) -> float:
        return 1.0

    def direction(self, g: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """g / ||g||; 0 for g = 0."""
        size = self.norm(g)
        return {name: v / size if size else torch.zeros_like(v) for name, v in g.items()}


AnyNorm = ModelNorm | EuclideanNorm


def model_norm(name: str, x: Mapping[str, Tensor]) -> AnyNorm:
    """The norm of that name for a model with these parameters, all weights 1.

    Raises InputError for an unknown name, and for one that needs matrices where a parameter is a vector.
    """
    if name == "frobenius":
        return EuclideanNorm()
    if name == "layers":
        return ModelNorm({key: ("spectral" if v.ndim > 1 else "sign", 1.0) for key, v in x.items()})
    if name not in MODEL_NORMS:
        raise InputError(f"norm: {name!r}; allowed are {', '.join(MODEL_NORMS)}")
    check_norm(name)
    flat = next((key for key, v in x.items() if v.ndim < 2), None)
    if name in ("spectral", "row-l2") and flat is not None:
        shape = tuple(x[flat].shape)
        raise InputError(f"norm: {name!r} for {flat!r} of shape {shape}; allowed are sign, frobenius, layers")
    return ModelNorm({key: (name, 1.0) for key in x})
