"""Time per optimizer step of this engine against torch's own Schedule1F1B, and the cost of versions and trace.

    python benchmarks/engine.py [--write] [--turns N]

The same model, microbatches, data and optimizer for both, in the same worker processes, one thread each. Contestants
take turns, so that a slow minute of the machine hits all; every figure is a median over windows of consecutive steady
steps (without start-up and drain) of all turns, every ratio the median over turns of the ratio within one. On the way,
versions held and microbatches in flight must be those that the schedule counts. With --write the table replaces
``benchmarks/results.md``. Takes some five minutes; run it on an idle machine with two cores or more.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.meter import Meter
from benchmarks.parts import RESULTS, machine, write_part
from pipeline.clock import Costs
from pipeline.engine.job import Job, NamedParameters
from pipeline.engine.pool import RunResult, WorkerPool
from pipeline.engine.run_stage import Groups, run_stage
from pipeline.run import one_thread
from pipeline.schedules import make_schedule
from pipeline.schedules.base import Schedule
from pipeline.timing import timing
from pipeline.training import TrainConfig

TEXT = bytes((i * i + 3 * i) % 251 for i in range(100_000))
#: Seconds that a sleeping stage takes for a microbatch.
FORWARD, BACKWARD = 0.020, 0.040


class Sleep(torch.autograd.Function):
    """x times a scalar weight, with a pause in either direction."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        time.sleep(FORWARD)
        return x * weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        time.sleep(BACKWARD)
        return gradients[0] * weight, (gradients[0] * x).sum().reshape(1)


class SleepingLayer(nn.Module):
    """A stage whose only work is to wait, with one weight to train."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return Sleep.apply(x, self.weight)


@dataclass(frozen=True)
class SleepingLayers:
    """One sleeping layer a stage."""

    stages: int

    def __call__(self) -> list[nn.Module]:
        return [SleepingLayer() for _ in range(self.stages)]


class Numbers:
    """Four numbers a microbatch."""

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        x = torch.full((4, 1), 1.0 + j % 7)
        return x, 2 * x


def sgd(named: NamedParameters) -> torch.optim.Optimizer:
    return torch.optim.SGD([parameter for _, parameter in named], lr=1e-4)


def sleeping(schedule: Schedule, steps: int, driver: str = "streaming") -> Job:
    layers = SleepingLayers(schedule.stages)
    return Job(schedule, layers, sgd, Numbers(), nn.functional.mse_loss, steps, driver=driver)


def gpt(schedule: str, stages: int, steps: int, driver: str = "streaming") -> Job:
    """The small GPT with AdamW, two microbatches a step."""
    config = TrainConfig(schedule=schedule, stages=stages, microbatches=2, steps=steps, optimizer="adamw")
    return replace(config.job(TEXT), driver=driver)


@dataclass(frozen=True)
class Figure:
    """Milliseconds: median and quartiles over windows; turns: the median of each turn."""

    median: float
    low: float
    high: float
    turns: tuple[float, ...] = ()

    @classmethod
    def of(cls, seconds: Sequence[float], turns: Sequence[float] = ()) -> Figure:
        low, median, high = (1e3 * q for q in statistics.quantiles(seconds, n=4, method="inclusive"))
        return cls(median, low, high, tuple(turns))

    def over(self, other: Figure) -> float:
        """Median over the turns of the ratio within a turn: the machine's slow changes drop out."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.turns, other.turns, strict=True))

    def __str__(self) -> str:
        digits = 3 if self.median < 1 else 2
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


@dataclass(frozen=True)
class Row:
    """A line of the table; least: the target is a lower limit of the ratio, else an upper one; None: no target."""

    name: str
    ours: Figure
    theirs: Figure | None
    ratio: float
    ideal: float
    target: float | None
    least: bool = True
    reference: str = ""

    @property
    def met(self) -> bool:
        return self.target is None or (self.ratio >= self.target if self.least else self.ratio <= self.target)

    @property
    def cells(self) -> list[str]:
        limit = "" if self.target is None else f"{'at least' if self.least else 'at most'} {self.target:g}"
        verdict = "" if self.target is None else "met" if self.met else "MISSED"
        theirs = self.reference if self.theirs is None else str(self.theirs)
        return [self.name, str(self.ours), theirs, f"{self.ratio:.3f}", f"{self.ideal:g}", limit, verdict]


HEADINGS = ["what", "ours, ms", "rival, ms", "ratio", "ideal", "target", ""]


def windows(ends: Sequence[float], schedule: Schedule, width: int) -> list[float]:
    """Seconds per step over each ``width`` consecutive steady steps."""
    first = schedule.start_up + 3
    last = len(ends) - 1 - -(-2 * schedule.stages // schedule.microbatches)
    starts = range(first, last - width + 1, width)
    assert len(starts) >= 2, "too few steps to measure"
    return [(ends[k + width] - ends[k]) / width for k in starts]


def check_counts(job: Job, result: RunResult) -> None:
    """The versions and microbatches that a run held must be those that its schedule promises."""
    stages = range(job.schedule.stages)
    assert result.peak_versions == [job.schedule.versions_stored(s) for s in stages], result.peak_versions
    assert result.peak_in_flight == [job.schedule.in_flight(s) for s in stages], result.peak_in_flight


def race(pool: WorkerPool, jobs: dict[str, Job], turns: int, width: int) -> dict[str, Figure]:
    """Every job in turn, ``turns`` times; who begins changes from turn to turn."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    medians: dict[str, list[float]] = {name: [] for name in jobs}
    order = list(jobs)
    for turn in range(turns):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            job = jobs[name]
            result = pool.run(job)
            if job.driver == "streaming":
                check_counts(job, result)
            found = windows(result.step_ends[0], job.schedule, width)
            seconds[name] += found
            medians[name].append(1e3 * statistics.median(found))
    return {name: Figure.of(seconds[name], medians[name]) for name in jobs}


def ideal(schedule: Schedule, rival: Schedule) -> float:
    """Ratio of the steady periods on a clock without any overhead."""
    costs = Costs(round(FORWARD * 1e3), round(BACKWARD * 1e3))
    return float(timing(rival, costs).period / timing(schedule, costs).period)


def sleeping_rows(turns: int) -> Iterator[Row]:
    """Four stages that only wait: what the schedules and the messages cost, without a fight over the cores."""
    with WorkerPool(4, device="cpu") as pool:
        for m, steps, target in ((4, 26, 1.70), (8, 20, 1.35)):
            ours, theirs = make_schedule("pipedream-2bw", 4, m), make_schedule("1f1b", 4, m)
            jobs = {"ours": sleeping(ours, steps), "torch": sleeping(theirs, steps, "torch")}
            found = race(pool, jobs, turns, 4)
            ratio = found["torch"].over(found["ours"])
            name = f"2BW against torch's 1F1B, sleeping stages, S = 4, m = {m}"
            yield Row(name, found["ours"], found["torch"], ratio, ideal(ours, theirs), target)
        pipedream = make_schedule("pipedream", 4, 1)
        found = race(pool, {"ours": sleeping(pipedream, 90)}, turns, 8)
        busy = 1e3 * (FORWARD + BACKWARD)
        name, reference = "PipeDream against F + B, sleeping stages, S = 4, m = 1", f"{busy:.2f} (F + B)"
        ratio = found["ours"].median / busy
        yield Row(name, found["ours"], None, ratio, 1, 1.08, least=False, reference=reference)


def gpt_rows(turns: int) -> Iterator[Row]:
    """Two stages that compute."""
    steps, turns = 70, 3 * turns  # short turns: neighbours meet the same machine
    with WorkerPool(2, device="cpu") as pool:
        jobs = {
            "torch": gpt("1f1b", 2, steps, "torch"),
            "1f1b": gpt("1f1b", 2, steps),
            "2bw": gpt("pipedream-2bw", 2, steps),
        }
        found = race(pool, jobs, turns, 10)
    rival = jobs["torch"].schedule
    for key, title, target in (("2bw", "2BW", 1.38), ("1f1b", "1F1B", 1.0)):
        name = f"{title} against torch's 1F1B, GPT, AdamW, S = 2, m = 2"
        ratio = found["torch"].over(found[key])
        yield Row(name, found[key], found["torch"], ratio, ideal(jobs[key].schedule, rival), target)
    with WorkerPool(1, device="cpu") as pool:
        jobs = {"torch": gpt("1f1b", 1, steps, "torch"), "ours": gpt("1f1b", 1, steps)}
        found = race(pool, jobs, turns, 10)
    ratio = found["torch"].over(found["ours"])
    yield Row("1F1B against torch's 1F1B, GPT, AdamW, S = 1, m = 2", found["ours"], found["torch"], ratio, 1, None)


def version_cost(schedule: str, turns: int) -> Row:
    """Share of a step in the version store, the tags and the trace: one stage, in this process.

    The part is short enough to be left alone by other work in most steps, so its median is taken by the wall clock; a
    whole step is not, and is taken in processor time.
    """
    job, meter = gpt(schedule, 1, 180), Meter()
    make = job.optimizer

    def optimizer(named: NamedParameters) -> torch.optim.Optimizer:
        made = make(named)
        made.step = meter.wrap(made.step, False)  # type: ignore[method-assign]
        return made

    job = replace(job, optimizer=optimizer)
    inside: list[float] = []
    whole: list[float] = []
    groups = Groups.make(timedelta(seconds=60))
    for _ in range(turns):
        spent: list[float] = []
        used: list[float] = []

        def on_step(
            k: int, loss: float | None, busy: float, spent: list[float] = spent, used: list[float] = used
        ) -> None:
            spent.append(meter.seconds)
            used.append(time.process_time())

        with one_thread(), meter.watching():
            run_stage(job, 0, torch.device("cpu"), False, groups, on_step)
        inside += windows(spent, job.schedule, 1)
        whole += windows(used, job.schedule, 1)
    part, step = Figure.of(inside), Figure.of(whole)
    name = f"versions, tags and trace against the whole step, {schedule}, GPT, AdamW, S = 1, m = 2"
    return Row(name, part, step, part.median / step.median, 0, 0.03, least=False)


def cost_rows(turns: int) -> Iterator[Row]:
    """What versions cost where one is held, and where two are and every step copies the weights."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for schedule in ("1f1b", "pipedream-2bw"):
            yield version_cost(schedule, turns)
    finally:
        dist.destroy_process_group()


def as_markdown(rows: list[Row], load: float, turns: int) -> str:
    """The whole of ``results.md``."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(row.cells for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    missed = [row.name for row in rows if not row.met]
    return f"""# Time per optimizer step

{datetime.datetime.now(datetime.UTC).date()}, `python benchmarks/engine.py --write --turns {turns}`.
{machine("one thread a process")}.

{table}

Milliseconds per optimizer step: median and quartiles over windows of steady steps from {turns} turns (GPT: three
times as many, shorter). The ratio is the median over the turns of the rival's time over ours in the same turn; for
PipeDream it is ours over F + B, for versions, tags and trace their part of the step. The ideal is that of the clock
without overhead.
{f"Missed: {'; '.join(missed)}." if missed else "No target was missed."}

The limit of 3 % is on the part of a step: all that the stage and the driver do around torch's own forward, backward and
optimizer step, timed where it happens, less the timers' own time, over the processor time of a whole step. It is not
the difference between the two drivers at S = 1: that one also has in it what torch's driver does and ours does not
(splitting and joining the batch), which could hide such a cost.

Noise: contestants took turns in the same processes, the load average was {load:.1f} when the run began and
{os.getloadavg()[0]:.1f} when it ended, and the quartiles show what was left of it; where that load exceeds the number
of cores, two stages that compute do not run side by side, and the rows of S = 2 say little.
"""


def main() -> None:
    """All measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"replace this file's part of {RESULTS.name}")
    parser.add_argument("--turns", type=int, default=5, help="turns of each contestant (default: %(default)s)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(machine("one thread a process"))
    rows = []
    for measure in (sleeping_rows, gpt_rows, cost_rows):
        for row in measure(options.turns):
            rows.append(row)
            name, ours, theirs, ratio, best, limit, verdict = row.cells
            print(f"{name}\n    {ours} ms, rival {theirs} ms: {ratio} (ideal {best})  {limit} {verdict}", flush=True)
    missed = [row.name for row in rows if not row.met]
    print("\n".join(["", "MISSED:", *missed]) if missed else "\nevery target met")
    if options.write:
        write_part("engine", as_markdown(rows, load, options.turns))


if __name__ == "__main__":
    main()
