"""Which parameter goes where: the parts of a model that the recipes treat differently, and the checks on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AnySet
from typing import Any

from torch.nn import Parameter

from pipeline.errors import InputError

Named = list[tuple[str, Parameter]]

PARTS = ("hidden", "embedding", "head", "vector", "other")
DECAY = 0.1  # decoupled, on matrices; vectors have none
_EMBEDDING = ("embed", "wte", "wpe")
_HEAD = re.compile(r"(^|[._])head(\d*)([._]|$)")  # head, lm_head, head1; not multihead


def split_parameters(
    named_parameters: Iterable[tuple[str, Parameter]], assign: Mapping[str, str] | None = None
) -> dict[str, Named]:
    """Every trainable parameter in exactly one of "hidden", "embedding", "head", "vector", "other".

    vector: fewer than two dimensions; embedding: the name contains embed, wte or wpe; head: one of its words is head;
    hidden: every other matrix; other: more than two dimensions (convolution kernels).
    assign: name -> part, for parameters that the names would put elsewhere.
    Frozen parameters are in none; a parameter listed twice (tied weights) counts once, under its first name.
    Raises InputError, naming the parameter, for an assignment that its shape does not allow, for a name that two
    parameters share, and for a set, which has no order.
    """
    if isinstance(named_parameters, AnySet):
        raise InputError("named_parameters: a set has no order; allowed is a list of (name, parameter)")
    parts: dict[str, Named] = {part: [] for part in PARTS}
    seen: dict[int, str] = {}
    left = dict(assign or {})
    for item in named_parameters:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise InputError(
                f"named_parameters: {type(item).__name__}; allowed are pairs (name, parameter) of named_parameters()"
            )
        name, p = item
        wanted = left.pop(name, None)
        if not p.requires_grad or id(p) in seen:
            continue
        if name in seen.values():
            raise InputError(f"named_parameters: {name!r} names two parameters; allowed is one name each")
        seen[id(p)] = name
        parts[_rule(name, p) if wanted is None else _checked(wanted, name, p)].append((name, p))
    if left:
        raise InputError(f"assign: {next(iter(left))!r} is not a parameter; allowed are names of named_parameters")
    return parts


def _rule(name: str, p: Parameter) -> str:
    if p.ndim < 2:
        return "vector"
    if any(word in name.lower() for word in _EMBEDDING):
        return "embedding"
    if _HEAD.search(name.lower()):
        return "head"
    return "hidden" if p.ndim == 2 else "other"


def _checked(part: str, name: str, p: Parameter) -> str:
    if part not in PARTS:
        raise InputError(f"assign: {part!r} for parameter {name}; allowed are {', '.join(PARTS)}")
    allowed = {"hidden": p.ndim == 2, "embedding": p.ndim >= 2, "head": p.ndim >= 2, "vector": p.ndim < 2}
    if not allowed.get(part, p.ndim >= 2):
        dimensions = {"hidden": "2 dimensions", "vector": "fewer than 2 dimensions"}.get(part, "2 dimensions or more")
        raise InputError(f"assign: {part!r} for parameter {name} of shape {tuple(p.shape)}; allowed are {dimensions}")
    return part


def everything(parts: Mapping[str, Named], *names: str) -> Named:
    """The parameters of these parts (of all, if none is named), in the order of the parts."""
    return [pair for part in names or PARTS for pair in parts[part]]


def decayed(named: Named, **settings: Any) -> list[dict[str, Any]]:
    """Groups of an optimizer with decoupled weight decay: matrices with it, vectors without; empty ones left out."""
    matrices = [(name, p) for name, p in named if p.ndim >= 2]
    vectors = [(name, p) for name, p in named if p.ndim < 2]
    pairs = ((matrices, DECAY), (vectors, 0.0))
    return [{"params": part, "weight_decay": decay, **settings} for part, decay in pairs if part]


def refuse_duplicates(groups: Iterable[Mapping[str, Any]]) -> None:
    """Raises InputError, naming the parameter and both groups, for a parameter in two places of an optimizer."""
    place: dict[int, int] = {}
    for number, group in enumerate(groups):
        params = group["params"]
        names = group.get("param_names") or [f"of shape {tuple(p.shape)}" for p in params]
        for name, p in zip(names, params, strict=True):
            if id(p) in place:
                raise InputError(
                    f"param_groups: parameter {name} is in group {place[id(p)]} and in group {number}; allowed is one"
                )
            place[id(p)] = number
