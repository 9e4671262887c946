"""One stage of a job, on a process that has joined its peers: by our driver, or by torch's own schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from pipeline.engine import checkpoint
from pipeline.engine.driver import Hooks, StreamingDriver
from pipeline.engine.exchange import BatchExchange
from pipeline.engine.job import Job
from pipeline.engine.result import StageResult
from pipeline.engine.stage import VersionedStage
from pipeline.engine.state import fresh_settings
from pipeline.engine.stock import run_stock
from pipeline.engine.transport import Direction
from pipeline.errors import InputError
from pipeline.models.gpt import partition
from pipeline.models.stack import LayerStack
from pipeline.optim.wrapper import Wrapper


@dataclass(frozen=True)
class Groups:
    """Process groups, so that what waits for what is exactly the data dependency.

    forward, backward: messages of each direction; control: exchange of a batch and checkpoints, always gloo.
    """

    forward: dist.ProcessGroup
    backward: dist.ProcessGroup
    control: dist.ProcessGroup

    @classmethod
    def make(cls, timeout: timedelta) -> Groups:
        """Every rank calls this once, after ``init_process_group``."""
        return cls(
            dist.new_group(timeout=timeout),
            dist.new_group(timeout=timeout),
            dist.new_group(timeout=timeout, backend="gloo"),
        )


@dataclass(frozen=True)
class Share:
    """What of the model belongs to a stage.

    module: its layers; names: of its parameters in the whole model, where a tied weight goes by another layer's name;
    tied: name of every weight that several stages hold -> these stages; parameters: name -> [shape, dtype] of the whole
    model, JSON-ready.
    """

    module: LayerStack
    names: dict[str, str]
    tied: dict[str, list[int]]
    parameters: dict[str, list[Any]]


def share_of(job: Job, stage: int) -> Share:
    """Build the model and keep one stage's layers.

    Raises InputError for fewer layers than stages, and for weights tied across stages under a schedule that has no time
    to add up their gradients.
    """
    torch.manual_seed(job.seed)
    layers = job.layers()
    parts = job.parts or partition(len(layers), job.schedule.stages)
    stage_of = {index: s for s, part in enumerate(parts) for index in part}
    if sorted(stage_of) != list(range(len(layers))) or sum(map(len, parts)) != len(layers):
        raise InputError(f"parts = {parts!r}: must hold each of the {len(layers)} layers once")
    first_name: dict[int, str] = {}
    holders: dict[str, set[int]] = {}
    names = {}
    parameters: dict[str, list[Any]] = {}
    for index, layer in enumerate(layers):
        for name, parameter in layer.named_parameters(remove_duplicate=False):
            local = f"layers.{index}.{name}"
            known = first_name.setdefault(id(parameter), local)
            parameters[known] = [list(parameter.shape), str(parameter.dtype)]
            holders.setdefault(known, set()).add(stage_of[index])
            if stage_of[index] == stage and known != local:
                names[local] = known
    tied = {name: sorted(stages) for name, stages in holders.items() if len(stages) > 1}
    for name in tied:
        job.schedule.refuse_without_slack("tied weights", name)
    mine: dict[int, nn.Module] = {index: layers[index] for index in parts[stage]}
    return Share(LayerStack(mine, job.seed, job.recompute), names, tied, parameters)


def run_stage(
    job: Job,
    rank: int,
    device: torch.device,
    staged: bool,
    groups: Groups,
    on_step: Callable[[int, float | None, float], None],
    on_action: Callable[[int], None] = lambda k: None,
) -> StageResult:
    """Run stage ``rank`` of the job to its end; on_step, on_action: see :class:`~pipeline.engine.driver.Hooks`."""
    share = share_of(job, rank)
    share.module.to(device)
    if job.driver == "torch":
        return run_stock(job, rank, device, share, on_step)
    stage = VersionedStage(share.module, rank, job.schedule, device, share.names, job.compute, job.confirm)
    store = stage.store
    optimizer, fresh = None, {}
    if any(handle.requires_grad for handle in store.handles.values()):
        optimizer = job.optimizer(list(store.handles.items()))
        if isinstance(optimizer, Wrapper) and optimizer.skip_nonfinite:
            raise InputError(
                "optimizer: skip_nonfinite of a wrapper decides for one stage; allowed is Job(skip_nonfinite=True)"
            )
        if job.checkpoints is not None:
            fresh = fresh_settings(optimizer, store)
    exchange = BatchExchange(
        groups.control,
        rank,
        job.schedule.stages,
        share.tied,
        store.handles,
        job.clip,
        job.clip_norm,
        job.skip_nonfinite,
    )
    keep = max(job.schedule.in_flight(s) for s in range(job.schedule.stages)) + 1
    directions = [Direction(group, staged, keep) for group in (groups.forward, groups.backward)]
    driver = StreamingDriver(stage, job, directions[0], directions[1], exchange)
    start = 0
    if job.resume is not None:
        manifest = checkpoint.read_manifest(job.resume)
        checkpoint.check_fits(manifest, job)
        checkpoint.check_parameters(manifest, share.parameters)
        start = manifest["step"]
        checkpoint.restore(job.resume, start, stage, optimizer, driver.result)
    save = None
    if job.checkpoints is not None:
        save = checkpoint.Saver(
            job, stage, optimizer, groups.control, driver.result, share.parameters, fresh
        ).save
    return driver.run(optimizer, start, Hooks(on_step, on_action, save))
