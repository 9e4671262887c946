"""Checkpoints of a stale run, through torch.distributed.checkpoint: bit-exact, atomic, free of the partition.

After t optimizer steps a stage needs, to go on exactly: the weight versions that microbatches from t m on read, the
optimizer's state, full-precision weights if it has them, and t; which version a microbatch reads depends on its index
alone, so what was in flight is computed again. Saving the newest weights alone would start another trajectory.

What is kept is keyed by the parameter's name in the whole model (:mod:`pipeline.engine.state`), so another partition
finds its own, where a microbatch reads the same version at every stage. A checkpoint is written to a folder with a
temporary name and moved into place when all of it is there; ``checkpoint.json`` lists every file with its sha256, and
is read first. That finds damage, not forgery: torch's own index file ``.metadata`` is a pickle, so take checkpoints
only from those whose code you would run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
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

from pipeline.engine.digest import bytes_of
from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.stage import VersionedStage
from pipeline.engine.state import JSON_MARK, belongs, decode, encode, load_optimizer, stage_state
from pipeline.errors import InputError, RunError
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
    goes_on = resume is not None and Path(resume).resolve().parent == root.resolve()
    if not goes_on and (found := complete_checkpoints(root)):
        raise InputError(
            f"checkpoints: {str(root)!r} holds one of step {found[-1][0]}; go on from it, or give another folder"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
        for number, path in complete_checkpoints(root):
            if resume is not None and number > _step_of(resume):  # in this folder, see above
                _remove(path)  # of a run that this one goes back from
        for left in root.glob("step-*.tmp"):
            shutil.rmtree(left)
    except OSError as error:
        raise InputError(
            f"checkpoints: cannot write to {str(root)!r} ({error.strerror}); give a writable folder"
        ) from None


def _step_of(path: str) -> int:
    match = _NAME.fullmatch(Path(path).name)
    return int(match[1]) if match else sys.maxsize


def _remove(path: Path) -> None:
    """Never half a checkpoint under its own name."""
    aside = path.with_suffix(".old.tmp")
    path.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


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
    kinds = {"schema": int, "step": int, "schedule": dict, "job": dict, "data": str, "parameters": dict, "files": dict}
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
    return {"schedule": schedule.name, **schedule.options, "delay": schedule.step_of(j) - schedule.version(0, j)}


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
    if manifest["data"] != data_digest(job):
        raise InputError("data: its first microbatch is not the one that the checkpoint was trained on")
    if manifest["step"] >= job.steps:
        raise InputError(
            f"steps = {job.steps}: the checkpoint has {manifest['step']} steps done; allowed are more than that"
        )


def check_parameters(manifest: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Raises InputError where the checkpoint has not exactly these parameters: name -> [shape, dtype]."""
    saved = manifest["parameters"]
    for name in sorted(set(saved) | set(parameters)):
        if name not in saved:
            raise InputError(f"resume: the checkpoint has no weights of {name}; the model has changed")
        if name not in parameters:
            raise InputError(f"resume: the checkpoint has weights of {name}, this model has not")
        for what, theirs, mine in zip(("shape", "dtype"), saved[name], parameters[name], strict=True):
            if theirs != mine:
                raise InputError(f"resume: {name} has {what} {theirs} in the checkpoint and {mine} here")


def data_digest(job: Job) -> str:
    """sha256 of the first microbatch: what tells another corpus or another order of the data."""
    sha = hashlib.sha256()
    for t in job.data.microbatch(0):
        sha.update(bytes_of(t))
    return sha.hexdigest()


def describe_job(job: Job) -> dict[str, Any]:
    """What has to be the same when a run goes on, beside the schedule."""
    return {
        "seed": job.seed,
        "reduction": job.reduction,
        "clip": job.clip,
        "clip_norm": str(job.clip_norm),
        "skip_nonfinite": job.skip_nonfinite,
        "compute": str(job.compute),
    }


# -- saving


class Saver:
    """Saves one stage of a job; every rank calls :meth:`save` at the same steps."""

    def __init__(
        self,
        job: Job,
        stage: VersionedStage,
        optimizer: Optimizer | None,
        group: dist.ProcessGroup,
        result: Any,
        parameters: Mapping[str, Any],
        fresh: Mapping[str, list[str]],
    ) -> None:
        assert job.checkpoints is not None
        self.job = job
        self.checkpoints = job.checkpoints
        self.stage = stage
        self.optimizer = optimizer
        self.group = group
        self.result = result
        self.parameters = dict(parameters)
        self.fresh = {f"fresh/{name}": settings for name, settings in fresh.items()}
        self._buffers = {name: buffer.clone() for name, buffer in stage.module.named_buffers()}
        for name in stage.store.handles:
            if "/" in name or "#" in name:
                raise InputError(f"parameter {name!r}: a checkpoint allows names without / and #")
        encode(self._state(0))  # what cannot be kept is better known now

    def _state(self, step: int) -> dict[str, Any]:
        state = stage_state(self.stage, self.optimizer, step) | self.fresh
        if self.stage.is_last:
            state |= {"losses": list(self.result.losses[:step]), "norms": list(self.result.norms[:step])}
            state["skipped"] = [k for k in self.result.skipped if k < step]
        return state

    def save(self, step: int) -> None:
        """Write the checkpoint after ``step`` steps; raises RunError with path and reason where that fails.

        Checkpoints beyond the last ``keep`` are removed when the new one is in place.
        """
        self._check_buffers()
        target = folder_of(self.checkpoints.folder, step)
        temporary = target.with_suffix(".tmp")
        state = encode(self._state(step))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's own deprecations
                dcp.save(
                    state,
                    storage_writer=FileSystemWriter(temporary),
                    planner=DefaultSavePlanner(flatten_state_dict=False),
                    process_group=self.group,
                )
            if self.stage.is_first:
                self._publish(step, temporary, target)
        except (Exception, CheckpointException) as error:  # torch's is no Exception
            raise RunError(f"checkpoint {str(target)!r} cannot be written ({_reason(error)})") from None

    def _publish(self, step: int, temporary: Path, target: Path) -> None:
        manifest = {
            "schema": SCHEMA,
            "step": step,
            "schedule": describe_schedule(self.job.schedule),
            "job": describe_job(self.job),
            "data": data_digest(self.job),
            "parameters": self.parameters,
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
        earlier = [path for number, path in complete_checkpoints(self.checkpoints.folder) if number <= step]
        for path in earlier[: -self.checkpoints.keep]:
            _remove(path)
        shutil.rmtree(target.with_suffix(".old.tmp"), ignore_errors=True)

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


def _load(path: str | Path, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The entries of a checkpoint whose keys are ``wanted``."""
    reader = FileSystemReader(path)
    encoded = {
        key: torch.empty(item.size, dtype=item.properties.dtype)
        for key, item in reader.read_metadata().state_dict_metadata.items()
        if wanted(key) and isinstance(item, TensorStorageMetadata)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(encoded, storage_reader=reader, planner=DefaultLoadPlanner(flatten_state_dict=False), no_dist=True)
    return decode(encoded)


def restore(path: str | Path, step: int, stage: VersionedStage, optimizer: Optimizer | None, result: Any) -> None:
    """Put a stage into the state of a checkpoint of ``step`` steps that fits.

    Raises InputError where the optimizer is another, or a version that is needed was not kept.
    """
    store, schedule = stage.store, stage.schedule
    flat = _load(path, lambda key: belongs(key, store, stage))
    versions: dict[int, dict[str, Tensor]] = {}
    for key, value in flat.items():
        if key.startswith("weights/"):
            _, number, name = key.split("/", 2)
            versions.setdefault(int(number), {})[name] = value
    masters = {key.split("/", 1)[1]: value for key, value in flat.items() if key.startswith("master/")}
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
    if (rng := flat.get(f"rng-cuda/{stage.stage_index}")) is not None and stage.device.type == "cuda":
        torch.cuda.set_rng_state(rng, stage.device)
    if stage.is_last:
        result.losses += flat["losses"]
    result.norms += flat["norms"]
    result.skipped += flat.get("skipped", [])  # of an earlier version: nothing was


def losses_in(path: str | Path) -> list[float]:
    """Training loss of every step that a checkpoint has done."""
    losses = _load(path, lambda key: key == f"losses{JSON_MARK}")["losses"]
    assert isinstance(losses, list)
    return losses
