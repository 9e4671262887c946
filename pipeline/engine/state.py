"""What one stage of a run keeps, under the names of the whole model: flat, so that another partition finds its own.

    weights/<version>/<name>    master/<name>    state/<name>/<key>/...    group/<name>    fresh/<name>
    kept/<name>/<wrapper>       extra/<wrapper>/...    losses    norms    skipped    rng/<stage>    rng-cuda/<stage>

Dicts, lists and tuples of an optimizer's state are opened, to any depth. What is no tensor becomes the bytes of its
JSON, or is refused: nothing changes its type on the way, and loading it runs no code. A tensor keeps its strides: a
matrix that comes back in another layout is multiplied in another order, which changes the last bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.engine.stage import VersionedStage
from pipeline.engine.store import VersionStore
from pipeline.errors import InputError, RunError
from pipeline.optim.wrapper import load_exactly, parameters_of

JSON_MARK = "|json"
STRIDES_MARK = "|strides="
#: The only key of the object that stands for a tuple in JSON.
TUPLE = "tuple"
#: Entries of an optimizer's group that say which parameters it has.
NAMING = {"params", "param_names"}
PLAIN = (bool, int, float, str, type(None))


def stage_state(stage: VersionedStage, optimizer: Optimizer | None, step: int) -> dict[str, Any]:
    """What stage s keeps after ``step`` optimizer steps: flat, tensors and plain objects."""
    store, schedule, s = stage.store, stage.schedule, stage.stage_index
    needed = schedule.version(s, step * schedule.microbatches)
    state: dict[str, Any] = {f"rng/{s}": torch.get_rng_state()}
    if stage.device.type == "cuda":
        state[f"rng-cuda/{s}"] = torch.cuda.get_rng_state(stage.device)
    for version in store.versions:
        if version >= needed:
            for name, leaf in store.leaves(version).items():
                state[f"weights/{version}/{name}"] = leaf.detach()
    if store.masters:
        state |= {f"master/{name}": handle.detach() for name, handle in store.handles.items()}
    if optimizer is not None:
        state |= optimizer_state(optimizer, store)
    return state


def fresh_settings(optimizer: Optimizer, store: VersionStore) -> dict[str, list[str]]:
    """Names of the settings that an optimizer has before its first step, by parameter: what kind of optimizer it is."""
    names = _positions(optimizer, store)
    groups = optimizer.state_dict()["param_groups"]
    return {names[position]: sorted(set(group) - NAMING) for group in groups for position in group["params"]}


def optimizer_state(optimizer: Optimizer, store: VersionStore) -> dict[str, Any]:
    """An optimizer's state_dict, keyed by parameter names instead of positions."""
    names = _positions(optimizer, store)
    saved = optimizer.state_dict()
    state: dict[str, Any] = {}
    for position, values in saved["state"].items():
        for key, value in values.items():
            prefix = f"state/{names[position]}"
            state |= dict(_flatten(f"{prefix}/{_key(prefix, key, ())}", value, ()))
    for group in saved["param_groups"]:
        shared = {key: value for key, value in group.items() if key not in NAMING}
        state |= {f"group/{names[position]}": shared for position in group["params"]}
    for wrapper, own in saved.items():
        if wrapper in ("state", "param_groups"):
            continue
        if type(own) is dict:  # settings may differ between stages, so each parameter has those of its own
            settings = {key: value for key, value in own.items() if isinstance(value, PLAIN)}
            state |= {f"kept/{name}/{wrapper}": settings for name in names}
            own = {key: value for key, value in own.items() if key not in settings}
        state |= dict(_flatten(f"extra/{wrapper}", own, names))
    return state


def _positions(optimizer: Optimizer, store: VersionStore) -> list[str]:
    """Name of each parameter of the optimizer, by its position in a state_dict."""
    name_of = {id(handle): name for name, handle in store.handles.items()}
    positions = []
    for p in parameters_of(optimizer):
        if id(p) not in name_of:
            raise RunError("the optimizer holds a parameter that it was not given: its state cannot be saved by name")
        positions.append(name_of[id(p)])
    return positions


def _key(prefix: str, key: Any, names: Sequence[str]) -> str:
    """A key of a dict as part of a flat name; an integer is the position of a parameter, if ``names`` has it."""
    if isinstance(key, int) and key in range(len(names)):
        return f"#{names[key]}"
    if not isinstance(key, str) or not key or "/" in key or "#" in key:
        raise RunError(f"{prefix}: the key {key!r}; a checkpoint keeps keys that are strings without / and #")
    return key


def _flatten(prefix: str, value: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Leaves of nested dicts, lists and tuples as ``prefix/key/...``; integer keys are positions of parameters."""
    if type(value) is dict:  # no other mapping: loading makes plain ones
        yield f"{prefix}/", "dict"
        for key, inner in value.items():
            yield from _flatten(f"{prefix}/{_key(prefix, key, names)}", inner, names)
    elif type(value) in (list, tuple):
        yield f"{prefix}/", len(value) if type(value) is list else f"tuple of {len(value)}"
        for index, inner in enumerate(value):
            yield from _flatten(f"{prefix}/[{index}]", inner, names)
    else:
        yield prefix, value


def _unflatten(prefix: str, flat: Mapping[str, Any], positions: Mapping[str, int]) -> Any:
    if f"{prefix}/" not in flat:
        return flat[prefix]
    shape = flat[f"{prefix}/"]
    if shape != "dict":
        length = shape if isinstance(shape, int) else int(shape.removeprefix("tuple of "))
        items = [_unflatten(f"{prefix}/[{index}]", flat, positions) for index in range(length)]
        return items if length == shape else tuple(items)
    own = len(prefix) + 1
    keys: dict[str, None] = {}
    for key in flat:
        if key.startswith(f"{prefix}/") and len(key) > own:
            keys[key[own:].split("/", 1)[0]] = None
    return {
        positions[key[1:]] if key[0] == "#" else key: _unflatten(f"{prefix}/{key}", flat, positions)
        for key in keys
        if key[0] != "#" or key[1:] in positions
    }


def encode(state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Host tensors only. Raises RunError naming what would not come back as it is."""
    encoded = {}
    for key, value in state.items():
        if isinstance(value, Tensor):
            host = value.detach().cpu().clone()
            strides = host.stride()
            if strides != torch.empty(host.shape, device="meta").stride():
                key += STRIDES_MARK + ",".join(map(str, strides))
                host = host.permute(sorted(range(host.ndim), key=lambda d: -strides[d])).contiguous()
            encoded[key] = host
            continue
        try:
            text = json.dumps(_tag(value))
        except (TypeError, ValueError):
            text = ""
        if not text or repr(_untag(json.loads(text))) != repr(value):
            raise RunError(f"{key} = {value!r}: a checkpoint keeps tensors and plain values, with strings as keys")
        encoded[key + JSON_MARK] = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    return encoded


def decode(encoded: Mapping[str, Tensor]) -> dict[str, Any]:
    """The inverse of :func:`encode`."""
    state: dict[str, Any] = {}
    for key, value in encoded.items():
        if key.endswith(JSON_MARK):
            state[_bare(key)] = _untag(json.loads(bytes(value.numpy())))
        elif STRIDES_MARK in key:
            strides = list(map(int, key.split(STRIDES_MARK)[1].split(",")))
            sizes: list[int] = [0] * len(strides)
            for d, size in zip(sorted(range(len(strides)), key=lambda d: -strides[d]), value.shape, strict=True):
                sizes[d] = size
            state[_bare(key)] = value.as_strided(sizes, strides)
        else:
            state[key] = value
    return state


def _bare(key: str) -> str:
    """The key of an entry without what says how it is encoded."""
    return key.removesuffix(JSON_MARK).split(STRIDES_MARK)[0]


def _tag(value: Any) -> Any:
    """The value with its tuples, to any depth, as what JSON can tell from lists."""
    if type(value) is tuple:
        return {TUPLE: [_tag(item) for item in value]}
    if type(value) is list:
        return [_tag(item) for item in value]
    return {key: _tag(item) for key, item in value.items()} if type(value) is dict else value


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(item) for item in value]
    if not isinstance(value, dict):
        return value
    return tuple(map(_untag, value[TUPLE])) if list(value) == [TUPLE] else {k: _untag(v) for k, v in value.items()}


def belongs(key: str, store: VersionStore, stage: VersionedStage) -> bool:
    """Whether a stage needs this entry of a checkpoint."""
    kind, _, rest = _bare(key).partition("/")
    if kind == "weights":
        return rest.split("/", 1)[1] in store.handles
    if kind in ("master", "group", "fresh"):
        return rest in store.handles
    if kind in ("state", "kept"):
        return rest.split("/", 1)[0] in store.handles
    if kind in ("rng", "rng-cuda"):
        return rest == str(stage.stage_index)
    named = re.search(r"/#([^/]+)", rest)
    return named is None or named[1] in store.handles


def load_optimizer(optimizer: Optimizer, store: VersionStore, flat: Mapping[str, Any]) -> None:
    """The inverse of :func:`optimizer_state`, for the parameters that this optimizer holds."""
    names = _positions(optimizer, store)
    positions = {name: position for position, name in enumerate(names)}
    new = optimizer.state_dict()
    state: dict[int, dict[str, Any]] = {}
    for key in flat:
        if key.startswith("state/"):
            name, field = key.split("/")[1:3]
            own = state.setdefault(positions[name], {})
            if field not in own:
                own[field] = _unflatten(f"state/{name}/{field}", flat, positions)
    for name, mine in fresh_settings(optimizer, store).items():
        theirs = flat[f"fresh/{name}"]
        if theirs != mine:
            raise InputError(
                f"resume: the checkpoint's optimizer has the settings {', '.join(theirs)} for {name}, this one "
                f"({type(optimizer).__name__}) {', '.join(mine)}"
            )
    groups = []
    for group in new["param_groups"]:
        shared = [flat[f"group/{names[position]}"] for position in group["params"]]
        if any(values != shared[0] for values in shared):
            raise InputError("resume: parameters of one group were saved with different settings")
        groups.append(group | (shared[0] if shared else {}))
    saved: dict[str, Any] = {"state": state, "param_groups": groups}
    wrappers = {key.split("/", 2)[1] for key in flat if key.startswith("extra/")}
    if wrappers != set(new) - {"state", "param_groups"}:
        raise InputError(
            f"resume: the checkpoint's optimizer has {', '.join(sorted(wrappers)) or 'no'} wrappers, this one "
            f"{', '.join(sorted(set(new) - {'state', 'param_groups'})) or 'none'}"
        )
    for wrapper in wrappers:
        saved[wrapper] = _unflatten(f"extra/{wrapper}", flat, positions)
        kept = [flat[key] for name in names if (key := f"kept/{name}/{wrapper}") in flat]
        if any(settings != kept[0] for settings in kept):
            raise InputError(f"resume: parameters of one stage were saved with different settings of {wrapper}")
        if kept:
            saved[wrapper] |= kept[0]
    if wrappers:
        optimizer.load_state_dict(saved)
    else:
        load_exactly(optimizer, saved)
