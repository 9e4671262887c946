"""Named optimizers for a model's named parameters.

A recipe is a function (named parameters, learning rate or None) -> torch optimizer. The learning rates are
constant over a run and chosen for a byte-level GPT of about 1e5 parameters over 200 steps.

    sgd     SGD, momentum 0.9                                                      lr 0.1
    adamw   AdamW, betas (0.9, 0.95), decay 0.1 on matrices, none on vectors       lr 3e-3
    muon    torch's Muon (momentum 0.95, Nesterov, decay 0.1) on hidden matrices: lr 0.02, times
            sqrt(max(1, rows/columns)) by torch's "original" rule; adamw as above on the rest with 0.15 of
            that rate (3e-3).
            torch runs the Newton-Schulz iteration in bfloat16 whatever the dtype of the parameter.
    lmo     spectral on hidden matrices, row-l2 on embeddings and heads, sign on vectors; alpha 0.05, lr 0.01

`foreach` is off where torch offers it and no fused kernel is used: the same order of operations at every
number of stages, and autograd's version counters stay true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from torch.nn import Parameter
from torch.optim import SGD, AdamW, Muon, Optimizer

from pipeline.errors import InputError
from pipeline.optim.chained import Chained
from pipeline.optim.lmo import LMO

if TYPE_CHECKING:
    from pipeline.optim.corrections import CorrectionOptions

Named = list[tuple[str, Parameter]]

_EMBEDDING = ("embed", "wte", "wpe")
_DEFAULT_LR = {"sgd": 0.1, "adamw": 3e-3, "muon": 0.02, "lmo": 0.01}
_ADAMW_SHARE = 3e-3 / 0.02  # AdamW's rate inside "muon", as a share of Muon's


def split_parameters(named_parameters: Iterable[tuple[str, Parameter]]) -> dict[str, Named]:
    """Every trainable parameter in exactly one of "hidden", "embedding", "head", "vector", "other".

    vector: fewer than two dimensions; embedding: the name contains embed, wte or wpe; head: it contains head;
    hidden: every other matrix; other: more than two dimensions (convolution kernels).
    Frozen parameters are in none; a parameter listed twice (tied weights) counts once, under its first name.
    """
    parts: dict[str, Named] = {"hidden": [], "embedding": [], "head": [], "vector": [], "other": []}
    seen: set[int] = set()
    for name, p in named_parameters:
        if not p.requires_grad or id(p) in seen:
            continue
        seen.add(id(p))
        if p.ndim < 2:
            part = "vector"
        elif any(word in name.lower() for word in _EMBEDDING):
            part = "embedding"
        elif "head" in name.lower():
            part = "head"
        else:
            part = "hidden" if p.ndim == 2 else "other"
        parts[part].append((name, p))
    return parts


def _sgd(named: Named, lr: float) -> Optimizer:
    return SGD(named, lr=lr, momentum=0.9, foreach=False)


def _adamw(named: Named, lr: float) -> Optimizer:
    matrices = [(name, p) for name, p in named if p.ndim >= 2]
    vectors = [(name, p) for name, p in named if p.ndim < 2]
    groups = [{"params": part, "weight_decay": decay} for part, decay in ((matrices, 0.1), (vectors, 0.0)) if part]
    return AdamW(groups, lr=lr, betas=(0.9, 0.95), foreach=False)


def _muon(named: Named, lr: float) -> Optimizer:
    parts = split_parameters(named)
    rest = [pair for part in ("embedding", "head", "vector", "other") for pair in parts[part]]
    optimizers: list[Optimizer] = []
    if parts["hidden"]:
        optimizers.append(Muon(parts["hidden"], lr=lr, momentum=0.95, nesterov=True, weight_decay=0.1))
    if rest:
        optimizers.append(_adamw(rest, lr * _ADAMW_SHARE))
    return Chained(optimizers)


def _lmo(named: Named, lr: float) -> Optimizer:
    parts = split_parameters(named)
    groups = [
        {"params": parts["hidden"] + parts["other"], "norm": "spectral"},
        {"params": parts["embedding"] + parts["head"], "norm": "row-l2"},
        {"params": parts["vector"], "norm": "sign"},
    ]
    return LMO([group for group in groups if group["params"]], lr=lr, alpha=0.05)


_BUILD: dict[str, Callable[[Named, float], Optimizer]] = {
    "sgd": _sgd,
    "adamw": _adamw,
    "muon": _muon,
    "lmo": _lmo,
}


def default_lr(name: str) -> float:
    """The learning rate a recipe uses when none is given."""
    return _DEFAULT_LR[_known(name)]


def _known(name: str) -> str:
    if name not in _BUILD:
        raise InputError(f"optimizer: {name!r}; allowed are {', '.join(sorted(_BUILD))}")
    return name


def _recipe(name: str) -> Callable[[Iterable[tuple[str, Parameter]], float | None], Optimizer]:
    def build(named_parameters: Iterable[tuple[str, Parameter]], lr: float | None = None) -> Optimizer:
        rate = default_lr(name) if lr is None else lr
        if not 0 < rate < float("inf"):
            raise InputError(f"lr: {lr!r}; allowed is a finite number > 0")
        named = [pair for part in split_parameters(named_parameters).values() for pair in part]
        if not named:
            raise InputError("named_parameters: no trainable parameter; allowed is at least one")
        return _BUILD[name](named, rate)

    build.__name__ = name
    build.__doc__ = f"The recipe {name!r} of this module for (name, parameter) pairs."
    return build


OPTIMIZERS = {name: _recipe(name) for name in _BUILD}


def make_optimizer(
    name: str,
    named_parameters: Iterable[tuple[str, Parameter]],
    lr: float | None = None,
    correction: str = "none",
    tau: int = 1,
    options: CorrectionOptions | None = None,
) -> Optimizer:
    """A recipe by name, with a correction for a delay of tau steps around it if asked for.

    correction: "none" or one of `pipeline.optim.corrections`; options: its settings.
    Raises InputError for an unknown name or correction, listing the known ones.
    """
    base = OPTIMIZERS[_known(name)](named_parameters, lr)
    if correction == "none":
        return base
    from pipeline.optim.corrections import corrected  # here: the plain recipes load no wrapper

    return corrected(base, correction, tau, options)
