"""Recipes over torch's own optimizers and the LMO method: (parts of the parameters, learning rate) -> optimizer.

`foreach` is off where torch offers it and no fused kernel is used: the same order of operations at every number of
stages, and autograd's version counters stay true.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch.optim import SGD, AdamW, Muon, NAdam, Optimizer

from pipeline.optim.chained import Chained
from pipeline.optim.lmo import LMO
from pipeline.optim.parts import DECAY, Named, decayed, everything

Parts = Mapping[str, Named]

ADAMW_SHARE = 3e-3 / 0.02  # AdamW's rate inside the Muons, as a share of theirs


def sgd(parts: Parts, lr: float) -> Optimizer:
    return SGD(everything(parts), lr=lr, momentum=0.9, foreach=False)


def adamw(parts: Parts, lr: float) -> Optimizer:
    return _adamw(everything(parts), lr)


def _adamw(named: Named, lr: float) -> Optimizer:
    return AdamW(decayed(named), lr=lr, betas=(0.9, 0.95), foreach=False)


def nadam(parts: Parts, lr: float) -> Optimizer:
    return _nadamw(everything(parts), lr, (0.9, 0.95))


def asyncpp(parts: Parts, lr: float) -> Optimizer:
    return _nadamw(everything(parts), lr, (0.99, 0.999))


def _nadamw(named: Named, lr: float, betas: tuple[float, float]) -> Optimizer:
    return NAdam(decayed(named), lr=lr, betas=betas, decoupled_weight_decay=True, foreach=False)


def muon(parts: Parts, lr: float) -> Optimizer:
    rest = everything(parts, "embedding", "head", "vector", "other")
    optimizers: list[Optimizer] = []
    if parts["hidden"]:
        optimizers.append(Muon(parts["hidden"], lr=lr, momentum=0.95, nesterov=True, weight_decay=DECAY))
    if rest:
        optimizers.append(_adamw(rest, lr * ADAMW_SHARE))
    return Chained(optimizers)


def lmo(parts: Parts, lr: float) -> Optimizer:
    groups = [
        {"params": everything(parts, "hidden", "other"), "norm": "spectral"},
        {"params": everything(parts, "embedding", "head"), "norm": "row-l2"},
        {"params": parts["vector"], "norm": "sign"},
    ]
    return LMO([group for group in groups if group["params"]], lr=lr, alpha=0.05)
