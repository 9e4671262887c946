"""The same job through torch's own Schedule1F1B or ScheduleGPipe: a cross-check of ours, and the rival in benchmarks.

A plain :class:`PipelineStage` without versions or trace; the pipeline drains, then the optimizer steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from pipeline.engine.driver import DataReader
from pipeline.engine.job import Job
from pipeline.engine.result import StageResult
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.engine.run_stage import Share

CLASSES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


def run_stock(
    job: Job,
    rank: int,
    device: torch.device,
    share: Share,
    on_step: Callable[[int, float | None, float], None],
) -> StageResult:
    """Run stage ``rank``; the result has no events.

    Raises InputError for tied weights across stages, which torch's schedules leave to the user.
    """
    if share.tied:
        raise InputError(f"driver = 'torch': weights tied across stages ({', '.join(share.tied)}) need 'streaming'")
    module = share.module
    module.seed = None  # torch's schedules do not say which microbatch a forward is for
    m, result = job.schedule.microbatches, StageResult(rank, peak_versions=1)
    stage = PipelineStage(module, rank, job.schedule.stages, device)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return job.loss(output, target) / job.scale

    schedule = CLASSES[job.schedule.name](stage, n_microbatches=m, loss_fn=loss, scale_grads=False)
    named = [(share.names.get(name, name), p) for name, p in module.named_parameters()]
    optimizer = job.optimizer(named) if any(p.requires_grad for _, p in named) else None
    reader = DataReader(job, device)
    for k in range(job.steps):
        inputs, targets = (torch.cat(part) for part in zip(*(reader(k * m + i) for i in range(m)), strict=True))
        if optimizer is not None:
            optimizer.zero_grad()
        losses: list[Tensor] = []
        if stage.is_first and stage.is_last:
            schedule.step(inputs, target=targets, losses=losses)
        elif stage.is_first:
            schedule.step(inputs)
        elif stage.is_last:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        if optimizer is not None:
            optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        result.step_ends.append(time.perf_counter())
        total = None
        if stage.is_last:
            total = 0.0
            for share_of_loss in losses:  # in the order of the microbatches, as the streaming driver adds
                total += share_of_loss.item()
            result.losses.append(total)
        if k + 1 == job.steps or (job.snapshot_every and (k + 1) % job.snapshot_every == 0):
            result.snapshots[k + 1] = result.solution = {name: p.detach().cpu().clone() for name, p in named}
        on_step(k + 1, total, 0.0)
    result.input_digest, result.target_digest = reader.digests
    return result
