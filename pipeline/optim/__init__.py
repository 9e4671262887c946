"""Optimizers of this room: the LMO method, wrappers for delay and what is done about it, and the named recipes.

The names below load on first use, so that the plain recipes can be imported without loading any wrapper.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.optim.chained import Chained
    from pipeline.optim.corrections import CORRECTIONS, CorrectionOptions, corrected
    from pipeline.optim.delay_compensation import DelayCompensation
    from pipeline.optim.delayed import Delayed
    from pipeline.optim.error_feedback import FORMS, ErrorFeedback
    from pipeline.optim.gradient_extrapolation import GradientExtrapolation
    from pipeline.optim.layer_norms import inexactness
    from pipeline.optim.lmo import LMO, lmo_direction
    from pipeline.optim.lr_discount import LRDiscount
    from pipeline.optim.parts import split_parameters
    from pipeline.optim.recipes import OPTIMIZERS, default_lr, make_optimizer
    from pipeline.optim.registry import REGISTRY
    from pipeline.optim.weight_prediction import WeightPrediction

_HOME = {
    "CORRECTIONS": "corrections",
    "FORMS": "error_feedback",
    "LMO": "lmo",
    "OPTIMIZERS": "recipes",
    "REGISTRY": "registry",
    "Chained": "chained",
    "CorrectionOptions": "corrections",
    "DelayCompensation": "delay_compensation",
    "Delayed": "delayed",
    "ErrorFeedback": "error_feedback",
    "GradientExtrapolation": "gradient_extrapolation",
    "LRDiscount": "lr_discount",
    "WeightPrediction": "weight_prediction",
    "corrected": "corrections",
    "default_lr": "recipes",
    "inexactness": "layer_norms",
    "lmo_direction": "lmo",
    "make_optimizer": "recipes",
    "split_parameters": "parts",
}

__all__ = [
    "CORRECTIONS",
    "FORMS",
    "LMO",
    "OPTIMIZERS",
    "REGISTRY",
    "Chained",
    "CorrectionOptions",
    "DelayCompensation",
    "Delayed",
    "ErrorFeedback",
    "GradientExtrapolation",
    "LRDiscount",
    "WeightPrediction",
    "corrected",
    "default_lr",
    "inexactness",
    "lmo_direction",
    "make_optimizer",
    "split_parameters",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
