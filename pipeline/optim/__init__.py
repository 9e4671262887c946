"""Optimizers of this room: the LMO method, the wrappers for delay and correction, and the named recipes.

The names below load on first use, so that the plain recipes can be imported without loading any wrapper.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.optim.chained import Chained
    from pipeline.optim.delayed import Delayed
    from pipeline.optim.error_feedback import FORMS, ErrorFeedback
    from pipeline.optim.layer_norms import inexactness
    from pipeline.optim.lmo import LMO, lmo_direction
    from pipeline.optim.parts import split_parameters
    from pipeline.optim.recipes import OPTIMIZERS, default_lr, make_optimizer
    from pipeline.optim.registry import REGISTRY

_HOME = {
    "Chained": "chained",
    "Delayed": "delayed",
    "ErrorFeedback": "error_feedback",
    "FORMS": "error_feedback",
    "LMO": "lmo",
    "inexactness": "layer_norms",
    "lmo_direction": "lmo",
    "OPTIMIZERS": "recipes",
    "REGISTRY": "registry",
    "default_lr": "recipes",
    "make_optimizer": "recipes",
    "split_parameters": "parts",
}

__all__ = [
    "FORMS",
    "LMO",
    "OPTIMIZERS",
    "REGISTRY",
    "Chained",
    "Delayed",
    "ErrorFeedback",
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
