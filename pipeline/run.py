"""Run a job: on worker processes of this machine, or by the oracle that they must equal.

The names that a script needs for that are all here: Job, make_schedule, run_job, oracle_of, largest_difference.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from pipeline.engine.job import Job
from pipeline.engine.pool import OnStep, RunResult, WorkerPool
from pipeline.errors import InputError
from pipeline.models.gpt import partition
from pipeline.models.stack import LayerStack
from pipeline.oracle import OracleResult, OracleState, largest_difference, run_oracle
from pipeline.oracle_corrections import OracleCorrection
from pipeline.schedules import make_schedule

__all__ = ["Job", "WorkerPool", "largest_difference", "make_schedule", "oracle_of", "run_job"]


def run_job(job: Job, pool: WorkerPool | None = None, on_step: OnStep = lambda k, loss: None) -> RunResult:
    """Run ``job`` on real processes, one a stage: in ``pool``, or in one started for this run.

    Raises InputError for bad input, RunError where a worker fails.
    """
    if pool is not None:
        return pool.run(job, on_step)
    job.check_picklable()
    with WorkerPool(job.schedule.stages) as own:
        return own.run(job, on_step)


def _least_tau(S: int, m: int) -> int:
    return math.ceil((S - 1) / m)


#: Age of the weights in microbatches, by schedule: (S, m, s, tau) -> age. The oracle's own statement of each schedule.
ORACLE_AGES: dict[str, Callable[[int, int, int, int | None], int]] = {
    "gpipe": lambda S, m, s, tau: 0,
    "1f1b": lambda S, m, s, tau: 0,
    "pipedream": lambda S, m, s, tau: S - 1 - s,
    "pipedream-vertical-sync": lambda S, m, s, tau: S - 1,
    "pipedream-2bw": lambda S, m, s, tau: m,
    "pipedream-2bw (stall)": lambda S, m, s, tau: m,
    "pipedream-2bw (uniform)": lambda S, m, s, tau: max(1, _least_tau(S, m)) * m,
    "uniform": lambda S, m, s, tau: (_least_tau(S, m) if tau is None else tau) * m,
}


def check_oracle_knows(schedule: str) -> None:
    """Raises InputError for a schedule whose ages nobody has stated in :data:`ORACLE_AGES`."""
    if schedule not in ORACLE_AGES:
        raise InputError(
            f"schedule {schedule!r}: the oracle knows {', '.join(name for name in ORACLE_AGES if '(' not in name)}; "
            "state its ages in ORACLE_AGES of pipeline/run.py"
        )


def oracle_of(
    job: Job,
    correction: OracleCorrection | None = None,
    observer: Callable[[OracleState], None] | None = None,
    shift: int = 0,
) -> OracleResult:
    """The same run in one process, by the oracle, from its first step.

    correction: one that the oracle applies itself, to the job's optimizer (which then must not);
    shift: added to every age in microbatches, to see a wrong version fail the comparison.
    """
    S, m, name = job.schedule.stages, job.schedule.microbatches, job.schedule.name
    check_oracle_knows(name)
    settled = job.schedule.rest_after(job.schedule.synchronous_steps)
    policy, tau = getattr(settled, "policy", "refuse"), getattr(settled, "tau", None)
    age = ORACLE_AGES[name if policy == "refuse" else f"{name} ({policy})"]
    torch.manual_seed(job.seed)
    layers = job.layers()
    parts = job.parts or partition(len(layers), S)
    with one_thread():
        return run_oracle(
            layers,
            job.optimizer,
            job.data,
            job.loss,
            microbatches=m,
            steps=job.steps,
            ages=[max(0, age(S, m, s, tau) + shift) for s, part in enumerate(parts) for _ in part],
            synchronous_steps=job.schedule.synchronous_steps,
            correction=correction,
            snapshot_every=job.snapshot_every,
            observer=observer,
            scale=job.scale,
            seed=job.seed,
            clip=job.clip,
            clip_norm=job.clip_norm,
            skip_nonfinite=job.skip_nonfinite,
            compute=job.compute,
        )


def losses_at_newest(job: Job, snapshots: dict[int, dict[str, Tensor]]) -> dict[int, float]:
    """Loss of batch k at the newest weights W(k), for every snapshot with k < steps done, k -> loss.

    A delayed run logs the loss at the version that a batch used; a synchronous run would log this one, with the same
    random numbers.
    """
    torch.manual_seed(job.seed)
    layers = job.layers()
    stack = LayerStack(dict(enumerate(layers)), job.seed)
    if job.compute is not None:
        stack.to(job.compute)
    parameters = dict(stack.named_parameters())
    m, found = job.schedule.microbatches, {}
    with one_thread(), torch.no_grad():
        for k, weights in sorted(snapshots.items()):
            if k >= job.steps:
                continue
            for name, p in parameters.items():
                p.copy_(weights[name])
            total = 0.0
            for j in range(k * m, (k + 1) * m):
                inputs, target = job.data.microbatch(j)
                stack.microbatch = j
                output = job.as_output(stack(job.as_input(inputs)))
                total += (job.loss(output, target) / job.scale).item()
            found[k] = total
    return found


def loss_at(
    layers: Sequence[nn.Module],
    loss: Callable[[Tensor, Tensor], Tensor],
    weights: Mapping[str, Tensor],
    inputs: Tensor,
    targets: Tensor,
    chunk: int = 64,
) -> float:
    """Mean loss at ``weights``, without dropout, ``chunk`` rows at a time; every row counts the same."""
    stack = LayerStack(dict(enumerate(layers))).eval()
    total = 0.0
    with torch.no_grad():
        for name, p in stack.named_parameters():
            p.copy_(weights[name])
        for x, y in zip(inputs.split(chunk), targets.split(chunk), strict=True):
            total += loss(stack(x), y).item() * len(x) / len(inputs)
    return total


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One intra-op thread, as in a worker process: the number of threads decides the order of sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
