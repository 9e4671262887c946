"""Named optimizers for a model's named parameters.

A recipe is a function (named parameters, learning rate or None) -> torch optimizer; pipeline/optim/registry.py says of
each where it comes from, which parameters go where, and what is known to be inexact (`staleproof optimizers`). The
learning rates are constant over a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from torch.nn import Parameter
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.parts import refuse_duplicates, split_parameters
from pipeline.optim.registry import REGISTRY, recipe_of

if TYPE_CHECKING:
    from pipeline.optim.corrections import CorrectionOptions

__all__ = ["OPTIMIZERS", "default_lr", "make_optimizer", "split_parameters"]


def default_lr(name: str) -> float:
    """The learning rate a recipe uses when none is given."""
    return recipe_of(name).lr


def _recipe(
    name: str,
) -> Callable[[Iterable[tuple[str, Parameter]], float | None, Mapping[str, str] | None], Optimizer]:
    def build(
        named_parameters: Iterable[tuple[str, Parameter]],
        lr: float | None = None,
        assign: Mapping[str, str] | None = None,
    ) -> Optimizer:
        recipe = recipe_of(name)
        rate = recipe.lr if lr is None else lr
        if not 0 < rate < float("inf"):
            raise InputError(f"lr: {lr!r}; allowed is a finite number > 0")
        parts = split_parameters(named_parameters, assign)
        if not any(parts.values()):
            raise InputError("named_parameters: no trainable parameter; allowed is at least one")
        optimizer = recipe.build(parts, rate)
        refuse_duplicates(optimizer.param_groups)
        return optimizer

    build.__name__ = name
    build.__doc__ = f"The recipe {name!r} of the registry for (name, parameter) pairs."
    return build


OPTIMIZERS = {name: _recipe(name) for name in REGISTRY}


def make_optimizer(
    name: str,
    named_parameters: Iterable[tuple[str, Parameter]],
    lr: float | None = None,
    correction: str = "none",
    tau: int = 1,
    options: CorrectionOptions | None = None,
    assign: Mapping[str, str] | None = None,
) -> Optimizer:
    """A recipe by name, with a correction for a delay of tau steps around it if asked for.

    correction: "none" or one of `pipeline.optim.corrections`; options: its settings; assign: as in split_parameters.
    Raises InputError for an unknown name or correction, listing the known ones.
    """
    base = OPTIMIZERS[recipe_of(name).name](named_parameters, lr, assign)
    if correction == "none":
        return base
    from pipeline.optim.corrections import corrected  # here: the plain recipes load no wrapper

    return corrected(base, correction, tau, options)
