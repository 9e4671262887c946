"""Recipes over the optimizers of the library `pytorch_optimizer`, the package's extra `optimizers`.

Batched ("foreach") operations are off and nothing is summed over parameters: the same result for any partition of them.
The library is imported when one of its optimizers is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.parts import DECAY, Named, decayed, everything
from pipeline.optim.torch_optimizers import ADAMW_SHARE

Parts = Mapping[str, Named]


def library_class(name: str) -> Any:
    """A class of the library. Raises InputError, naming the extra, where it is not installed."""
    try:
        library = import_module("pytorch_optimizer")
    except ImportError:
        raise InputError(
            f"optimizer: {name.lower()} needs the extra 'optimizers' (pytorch_optimizer): pip install '.[optimizers]'"
        ) from None
    return getattr(library, name)


def soap(parts: Parts, lr: float) -> Optimizer:
    return library_class("SOAP")(
        decayed(everything(parts)), lr=lr, betas=(0.95, 0.95), precondition_frequency=10, precondition_1d=False
    )


def adan(parts: Parts, lr: float) -> Optimizer:
    return library_class("Adan")(
        decayed(everything(parts)),
        lr=lr,
        betas=(0.98, 0.92, 0.99),
        weight_decouple=True,
        max_grad_norm=0.0,
        foreach=False,
    )


def mars(parts: Parts, lr: float) -> Optimizer:
    return library_class("MARS")(
        everything(parts),
        lr=lr,
        betas=(0.95, 0.99),
        gamma=0.025,
        mars_type="adamw",
        optimize_1d=False,
        lr_1d=lr,
        betas_1d=(0.9, 0.95),
        weight_decay=DECAY,
        weight_decay_1d=0.0,
        foreach=False,
    )


def lion(parts: Parts, lr: float) -> Optimizer:
    return library_class("Lion")(
        decayed(everything(parts)), lr=lr, betas=(0.9, 0.99), weight_decouple=True, foreach=False
    )


def normuon(parts: Parts, lr: float) -> Optimizer:
    return library_class("NorMuon")(
        _muon_groups(parts, lr, lr * ADAMW_SHARE),
        momentum=0.95,
        beta2=0.95,
        nesterov=True,
        update_scale="preserve_norm",
        use_adjusted_lr=False,
        adamw_betas=(0.9, 0.95),
        foreach=False,
    )


def adamuon(parts: Parts, lr: float) -> Optimizer:
    return library_class("AdaMuon")(
        _muon_groups(parts, lr, lr),  # its updates have AdamW's size, so one rate is meant for all
        betas=(0.95, 0.95),
        use_adjusted_lr=True,
        adamw_betas=(0.9, 0.95),
        foreach=False,
    )


def _muon_groups(parts: Parts, lr: float, adamw_lr: float) -> list[dict[str, Any]]:
    """Hidden matrices by the Muon rule, the rest by the library's AdamW."""
    rest = everything(parts, "embedding", "head", "vector", "other")
    groups = decayed(parts["hidden"], lr=lr, use_muon=True)
    return groups + decayed(rest, lr=adamw_lr, use_muon=False)
