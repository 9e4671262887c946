"""Checkpoints of a stale run, through torch.distributed.checkpoint: bit-exact, atomic, free of the partition.

After t optimizer steps a stage needs, to go on exactly: the weight versions that microbatches from t m on read, the
optimizer's state, full-precision weights if it has them, and t; which version a microbatch reads depends on its index
alone, so what was in flight is computed again. Saving the newest weights alone would start another trajectory.

Everything is keyed by the parameter's name in the whole model:

    weights/<version>/<name>    master/<name>    state/<name>/<key>    group/<name>
    extra/<wrapper>/...         losses           norms                 rng/<stage>

so another partition finds its own, where a microbatch reads the same version at every stage. What is no tensor is kept
as the bytes of its JSON, so that nothing of ours is unpickled. A checkpoint is written to a folder with a temporary
name and moved into place when all of it is there; ``checkpoint.json`` lists every file with its sha256, and is read
first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint import (
    DefaultLoadPlanner,
    DefaultSavePlanner,
    FileSystemReader,
    FileSystemWriter,
)
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.optim import Optimizer

from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.stage import VersionedStage
from pipeline.engine.store import VersionStore
from pipeline.errors import InputError, RunError
from pipeline.optim.wrapper import load_exactly, parameters_of
from pipeline.schedules.base import Schedule

SCHEMA = 1
MANIFEST = "checkpoint.json"
_NAME = re.compile(r"step-(\d{8,})")


# -- folders


def folder_of(root: str | Path, step: int) -> Path:
    """Folder of the checkpoint after ``step`` optimizer steps."""
    return Path(root) / f"step-{step:08d}"


def complete_checkpoints(root: str | Path) -> list[tuple[int, Path]]:
    """(step, folder) of every complete checkpoint under ``root``, oldest first."""
    found = []
    for path in Path(root).glob("step-*"):
        if (match := _NAME.fullmatch(path.name)) and (path / MANIFEST).is_file():
            found.append((int(match[1]), path))
    return sorted(found)


def latest_checkpoint(root: str | Path) -> Path:
    """The newest complete checkpoint under ``root``. Raises InputError where there is none."""
    found = complete_checkpoints(root)
    if not found:
        raise InputError(f"resume: no complete checkpoint in {str(root)!r}")
    return found[-1][1]


def prepare_folder(checkpoints: Checkpoints, resume: str | None) -> None:
    """Make the folder and try it out; what an interrupted save left is removed.

    Raises InputError with the reason where it cannot be written, or holds checkpoints that the run does not go on from.
    """
    root = Path(checkpoints.folder)
    if resume is None and (found := complete_checkpoints(root)):
        raise InputError(
            f"checkpoints: {str(root)!r} holds one of step {found[-1][0]}; go on from it, or give another folder"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
        for left in root.glob("step-*.tmp"):
            shutil.rmtree(left)
    except OSError as error:
        raise InputError(
            f"checkpoints: cannot write to {str(root)!r} ({error.strerror}); give a writable folder"
        ) from None


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The manifest of a checkpoint, its files checked against their sha256.

    Raises InputError naming the file that is missing, damaged or not ours.
    """
    folder = Path(path)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"resume: {str(folder)!r} has no {MANIFEST}: not a complete checkpoint") from None
    except (OSError, ValueError) as error:
        raise InputError(f"resume: {str(folder / MANIFEST)!r} cannot be read ({error})") from None
    kinds = {"schema": int, "step": int, "schedule": dict, "job": dict, "files": dict}
    whole = isinstance(manifest, dict) and all(isinstance(manifest.get(key), kind) for key, kind in kinds.items())
    if not whole or manifest["schema"] != SCHEMA:
        raise InputError(f"resume: {str(folder / MANIFEST)!r} is not a checkpoint of schema {SCHEMA}")
    for name, expected in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise InputError(f"resume: {str(file)!r} is missing")
        if _sha256(file) != expected:
            raise InputError(f"resume: {str(file)!r} is damaged: its sha256 is not that of {MANIFEST}")
    return manifest


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# -- what a checkpoint fits


def describe_schedule(schedule: Schedule) -> dict[str, Any]:
    """Name, every option and the delay at stage 0 of a schedule, JSON-ready."""
    j = schedule.microbatches * (schedule.start_up + 2)
    return {"schedule": schedule.name, **vars(schedule), "delay": schedule.step_of(j) - schedule.version(0, j)}


def check_fits(manifest: Mapping[str, Any], job: Job) -> None:
    """Raises InputError, with both values, for a checkpoint that this job cannot go on from."""
    saved, mine = dict(manifest["schedule"]), describe_schedule(job.schedule)
    stages = saved["stages"]
    if job.schedule.one_version_everywhere:
        saved["stages"] = mine["stages"]  # free
    for key in saved | mine:
        if saved.get(key) != mine.get(key):
            why = ": each stage keeps versions of its own" if key == "stages" else ""
            raise InputError(
                f"{key} = {mine.get(key)!r}: the checkpoint is of {saved['schedule']} with {stages} stages and "
                f"{key} = {saved.get(key)!r}{why}"
            )
    for key, value in manifest["job"].items():
        if describe_job(job)[key] != value:
            raise InputError(f"{key} = {describe_job(job)[key]!r}: the checkpoint was written with {value!r}")
    if manifest["step"] >= job.steps:
        raise InputError(
            f"steps = {job.steps}: the checkpoint has {manifest['step']} steps done; allowed are more than that"
        )


def describe_job(job: Job) -> dict[str, Any]:
    """What has to be the same when a run goes on, beside the schedule."""
    return {
        "seed": job.seed,
        "reduction": job.reduction,
        "clip": job.clip,
        "clip_norm": str(job.clip_norm),
        "compute": str(job.compute),
    }


# -- a stage's state under the names of the whole model


def stage_state(stage: VersionedStage, optimizer: Optimizer | None, step: int) -> dict[str, Any]:
    """What stage s keeps after ``step`` optimizer steps: flat, tensors and plain objects."""
    store, schedule, s = stage.store, stage.schedule, stage.stage_index
    needed = schedule.version(s, step * schedule.microbatches)
    state: dict[str, Any] = {f"rng/{s}": torch.get_rng_state()}
    for version in store.versions:
        if version >= needed:
            for name, leaf in store.leaves(version).items():
                state[f"weights/{version}/{name}"] = leaf.detach()
    if store.masters:
        state |= {f"master/{name}": handle.detach() for name, handle in store.handles.items()}
    if optimizer is not None:
        state |= optimizer_state(optimizer, store)
    return state


def optimizer_state(optimizer: Optimizer, store: VersionStore) -> dict[str, Any]:
    """An optimizer's state_dict, keyed by parameter names instead of positions."""
    names = _positions(optimizer, store)
    saved = optimizer.state_dict()
    state: dict[str, Any] = {}
    for position, values in saved["state"].items():
        for key, value in values.items():
            state[f"state/{names[position]}/{key}"] = value
    for group in saved["param_groups"]:
        shared = {key: value for key, value in group.items() if key not in ("params", "param_names")}
        state |= {f"group/{names[position]}": shared for position in group["params"]}
    for wrapper, own in saved.items():
        if wrapper not in ("state", "param_groups"):
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


def _flatten(prefix: str, value: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Leaves of nested dicts and lists as ``prefix/key/...``; integer keys are positions of parameters."""
    if isinstance(value, dict):
        yield f"{prefix}/", "dict"
        for key, inner in value.items():
            yield from _flatten(f"{prefix}/{f'#{names[key]}' if isinstance(key, int) else key}", inner, names)
    elif isinstance(value, (list, tuple)):
        yield f"{prefix}/", len(value)
        for index, inner in enumerate(value):
            yield from _flatten(f"{prefix}/[{index}]", inner, names)
    else:
        yield prefix, value


def _unflatten(prefix: str, flat: Mapping[str, Any], positions: Mapping[str, int]) -> Any:
    if f"{prefix}/" not in flat:
        return flat[prefix]
    shape = flat[f"{prefix}/"]
    if shape != "dict":
        return [_unflatten(f"{prefix}/[{index}]", flat, positions) for index in range(shape)]
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


JSON_MARK = "|json"


def _encode(state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Host tensors only."""
    encoded = {}
    for key, value in state.items():
        if isinstance(value, Tensor):
            encoded[key] = value.detach().cpu().clone()
            continue
        try:
            text = json.dumps(value)
        except (TypeError, ValueError):
            raise RunError(f"{key} is a {type(value).__name__}: a checkpoint keeps tensors and plain values") from None
        encoded[key + JSON_MARK] = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    return encoded


def _decode(encoded: Mapping[str, Tensor]) -> dict[str, Any]:
    return {
        key.removesuffix(JSON_MARK): json.loads(bytes(value.numpy())) if key.endswith(JSON_MARK) else value
        for key, value in encoded.items()
    }


# -- saving


class Saver:
    """Saves one stage of a job; every rank calls :meth:`save` at the same steps."""

    def __init__(
        self, job: Job, stage: VersionedStage, optimizer: Optimizer | None, group: dist.ProcessGroup, result: Any
    ) -> None:
        assert job.checkpoints is not None
        self.job = job
        self.checkpoints = job.checkpoints
        self.stage = stage
        self.optimizer = optimizer
        self.group = group
        self.result = result
        self._buffers = {name: buffer.clone() for name, buffer in stage.module.named_buffers()}

    def save(self, step: int) -> None:
        """Write the checkpoint after ``step`` steps; raises RunError with path and reason where that fails.

        Checkpoints beyond the last ``keep`` are removed when the new one is in place.
        """
        self._check_buffers()
        target = folder_of(self.checkpoints.folder, step)
        temporary = target.with_suffix(".tmp")
        stage, first = self.stage, self.stage.is_first
        state = stage_state(stage, self.optimizer, step)
        if stage.is_last:
            state |= {"losses": list(self.result.losses[:step]), "norms": list(self.result.norms[:step])}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's own deprecations
                dcp.save(
                    _encode(state),
                    storage_writer=FileSystemWriter(temporary),
                    planner=DefaultSavePlanner(flatten_state_dict=False),
                    process_group=self.group,
                )
            if first:
                self._publish(step, temporary, target)
        except (Exception, CheckpointException) as error:  # torch's is no Exception
            raise RunError(f"checkpoint {str(target)!r} cannot be written ({_reason(error)})") from None

    def _publish(self, step: int, temporary: Path, target: Path) -> None:
        manifest = {
            "schema": SCHEMA,
            "step": step,
            "schedule": describe_schedule(self.job.schedule),
            "job": describe_job(self.job),
            "settings": self.checkpoints.settings,
            "torch": torch.__version__,
            "files": {file.name: _sha256(file) for file in sorted(temporary.iterdir())},
        }
        with (temporary / MANIFEST).open("w", encoding="utf-8") as stream:
            json.dump(manifest, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            target.rename(target.with_suffix(".old.tmp"))
        temporary.rename(target)
        found = complete_checkpoints(self.checkpoints.folder)
        # Later ones are of a run that this one has gone back from.
        later = [path for number, path in found if number > step]
        earlier = [path for number, path in found if number <= step]
        for path in (*later, *earlier[: -self.checkpoints.keep]):
            path.rename(path.with_suffix(".old.tmp"))  # never half a checkpoint under its own name
        for path in Path(self.checkpoints.folder).glob("step-*.old.tmp"):
            shutil.rmtree(path, ignore_errors=True)

    def _check_buffers(self) -> None:
        for name, buffer in self.stage.module.named_buffers():
            if not torch.equal(buffer, self._buffers[name]):
                raise RunError(
                    f"buffer {name} changes in forwards, of microbatches in flight too: it cannot be saved exactly"
                )


def _reason(error: BaseException) -> str:
    """The system's reason inside what torch raises, or the error itself, as one line."""
    seen = str(error)
    failures = getattr(error, "failures", {})
    for failure in [*failures.values(), error]:
        inner = failure[0] if isinstance(failure, tuple) else failure
        while inner is not None:
            if isinstance(inner, OSError) and inner.strerror:
                return inner.strerror
            inner = inner.__cause__ or inner.__context__
    found = re.search(r"\[Errno \d+\] ([^:'\n]+)", seen)
    return found[1].strip() if found else " ".join(seen.split())[-200:]


# -- resuming


def restore(path: str | Path, stage: VersionedStage, optimizer: Optimizer | None, result: Any) -> int:
    """Put a stage into the state of a checkpoint; returns the steps done.

    Raises InputError where the checkpoint has not exactly this model's parameters.
    """
    manifest = read_manifest(path)
    reader = FileSystemReader(path)
    metadata = reader.read_metadata().state_dict_metadata
    store = stage.store
    wanted = {key: item for key, item in metadata.items() if _belongs(key, store, stage)}
    _check_parameters(metadata, store)
    encoded = {
        key: torch.empty(item.size, dtype=item.properties.dtype)
        for key, item in wanted.items()
        if isinstance(item, TensorStorageMetadata)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(encoded, storage_reader=reader, planner=DefaultLoadPlanner(flatten_state_dict=False), no_dist=True)
    flat = _decode(encoded)
    versions: dict[int, dict[str, Tensor]] = {}
    for key, value in flat.items():
        if key.startswith("weights/"):
            _, number, name = key.split("/", 2)
            versions.setdefault(int(number), {})[name] = value
    masters = {key.split("/", 1)[1]: value for key, value in flat.items() if key.startswith("master/")}
    step, schedule = int(manifest["step"]), stage.schedule
    for version in range(schedule.version(stage.stage_index, step * schedule.microbatches), step + 1):
        missing = sorted(set(store.handles) - set(versions.get(version, {})))
        if missing:
            raise InputError(f"resume: version {version} of {missing[0]} was not kept at its stage")
    if versions:
        store.load(versions, masters)
    if optimizer is not None:
        load_optimizer(optimizer, store, flat)
    if (rng := flat.get(f"rng/{stage.stage_index}")) is not None:
        torch.set_rng_state(rng)
    if stage.is_last:
        result.losses += flat["losses"]
    result.norms += flat["norms"]
    return step


def losses_in(path: str | Path) -> list[float]:
    """Training loss of every step that a checkpoint has done."""
    reader = FileSystemReader(path)
    key = f"losses{JSON_MARK}"
    item = reader.read_metadata().state_dict_metadata[key]
    assert isinstance(item, TensorStorageMetadata)
    encoded = {key: torch.empty(item.size, dtype=item.properties.dtype)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(encoded, storage_reader=reader, planner=DefaultLoadPlanner(flatten_state_dict=False), no_dist=True)
    losses = _decode(encoded)["losses"]
    assert isinstance(losses, list)
    return losses


def _belongs(key: str, store: VersionStore, stage: VersionedStage) -> bool:
    kind, _, rest = key.removesuffix(JSON_MARK).partition("/")
    if kind == "weights":
        return rest.split("/", 1)[1] in store.handles
    if kind in ("master", "group"):
        return rest in store.handles
    if kind == "state":
        return rest.rsplit("/", 1)[0] in store.handles
    if kind == "rng":
        return rest == str(stage.stage_index)
    named = re.search(r"/#([^/]+)", rest)
    return named is None or named[1] in store.handles


def _check_parameters(metadata: Mapping[str, Any], store: VersionStore) -> None:
    saved = {key.split("/", 2)[2]: item for key, item in metadata.items() if key.startswith("weights/")}
    for name, handle in store.handles.items():
        if name not in saved:
            raise InputError(f"resume: the checkpoint has no weights of {name}; the model has changed")
        if saved[name].size != handle.shape:
            raise InputError(
                f"resume: {name} has shape {tuple(saved[name].size)} in the checkpoint and {tuple(handle.shape)} here"
            )


def load_optimizer(optimizer: Optimizer, store: VersionStore, flat: Mapping[str, Any]) -> None:
    """The inverse of :func:`optimizer_state`, for the parameters that this optimizer holds."""
    names = _positions(optimizer, store)
    positions = {name: position for position, name in enumerate(names)}
    new = optimizer.state_dict()
    state: dict[int, dict[str, Any]] = {}
    for key, value in flat.items():
        if key.startswith("state/"):
            name, field = key.split("/", 1)[1].rsplit("/", 1)
            state.setdefault(positions[name], {})[field] = value
    groups = []
    for group in new["param_groups"]:
        shared = [flat[f"group/{names[position]}"] for position in group["params"]]
        if unknown := sorted({key for values in shared for key in values} - set(group)):
            raise InputError(
                f"resume: the checkpoint's optimizer has {', '.join(unknown)} among its settings, this one "
                f"({type(optimizer).__name__}) has not"
            )
        if any(values != shared[0] for values in shared):
            raise InputError("resume: parameters of one group were saved with different settings")
        as_here = {
            key: tuple(value) if isinstance(group.get(key), tuple) else value
            for key, value in (shared[0] if shared else {}).items()
        }
        groups.append(group | as_here)
    saved: dict[str, Any] = {"state": state, "param_groups": groups}
    wrappers = {key.split("/", 2)[1] for key in flat if key.startswith("extra/")}
    if wrappers != set(new) - {"state", "param_groups"}:
        raise InputError(
            f"resume: the checkpoint's optimizer has {', '.join(sorted(wrappers)) or 'no'} wrappers, this one "
            f"{', '.join(sorted(set(new) - {'state', 'param_groups'})) or 'none'}"
        )
    for wrapper in wrappers:
        saved[wrapper] = _unflatten(f"extra/{wrapper}", flat, positions)
    if wrappers:
        optimizer.load_state_dict(saved)
    else:
        load_exactly(optimizer, saved)
