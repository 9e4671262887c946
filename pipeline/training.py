"""A training run of the byte-level GPT as one value: the same settings for the engine and for the oracle."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pipeline.data.batches import ByteBatches
from pipeline.engine.pool import OnStep, RunResult, WorkerPool
from pipeline.engine.worker import Job
from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig, cross_entropy, gpt_layers, partition
from pipeline.optim.recipes import make_optimizer
from pipeline.oracle import OracleResult, OracleState, run_oracle
from pipeline.schedules import SCHEDULES, make_schedule
from pipeline.schedules.base import Schedule, positive_integer

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
CORRECTIONS = ("none", "error-feedback")


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a run. A step is ``microbatches`` x ``sequences`` x ``model.context`` bytes.

    microbatches: m (default: 1 for PipeDream, S for the others); policy: of pipedream-2bw for m < S - 1; tau: delay of
    uniform (None: the least possible); lr: None for the optimizer's own; pool: see :class:`ByteBatches`;
    snapshot_every: keep the weights every so many steps (0: only at the end).
    Raises InputError, naming the field, for a value that cannot run.
    """

    schedule: str = "pipedream-2bw"
    stages: int = 2
    microbatches: int | None = None
    policy: str = "refuse"
    tau: int | None = None
    sequences: int = 4
    steps: int = 100
    optimizer: str = "adamw"
    lr: float | None = None
    correction: str = "none"
    seed: int = 0
    dtype: str = "float32"
    model: GPTConfig = field(default_factory=GPTConfig)
    pool: int = 0
    snapshot_every: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "sequences", "stages"):
            positive_integer(name, getattr(self, name))
        if self.dtype not in DTYPES:
            raise InputError(f"dtype = {self.dtype!r}: allowed are {', '.join(DTYPES)}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed = {self.seed!r}: allowed are integers of at least 0")
        if self.correction not in CORRECTIONS:
            raise InputError(f"correction = {self.correction!r}: allowed are {', '.join(CORRECTIONS)}")
        if not self.plan.runs_on_engine:
            runs = [name for name, cls in SCHEDULES.items() if cls(4, 4).runs_on_engine]
            raise InputError(f"schedule = {self.schedule!r}: the engine runs {', '.join(runs)}")
        partition(self.model.layers + 2, self.stages)
        if self.correction != "none" and not self._one_delay:
            raise InputError(
                f"correction = {self.correction!r}: allowed with the same delay at every stage; "
                f"{self.schedule} has {self.delays}"
            )
        # Build the optimizer once on throw-away parameters: it refuses what it does not know.
        self.make_optimizer([("layers.1.weight", torch.nn.Parameter(torch.zeros(2, 2)))])

    @functools.cached_property
    def plan(self) -> Schedule:
        options: dict[str, Any] = {} if self.policy == "refuse" else {"policy": self.policy}
        if self.tau is not None:
            options["tau"] = self.tau
        return make_schedule(self.schedule, self.stages, self.microbatches, **options)

    @property
    def _one_delay(self) -> bool:
        """Whether after start-up every microbatch at every stage has the same delay."""
        from pipeline.delays import delay_summary

        summary = delay_summary(self.plan)
        return len({*summary["optimizer_step_delay"], *summary["mean_delay"]}) == 1

    @property
    def parts(self) -> list[range]:
        """Layer indices of each stage."""
        return partition(self.model.layers + 2, self.stages)

    @functools.cached_property
    def delays(self) -> list[int]:
        """Optimizer-step delay of each stage, counted from the schedule's events."""
        from pipeline.clock import simulate
        from pipeline.delays import optimizer_step_delay, steps_to_steady_state

        return optimizer_step_delay(simulate(self.plan, steps_to_steady_state(self.plan)))

    @property
    def tokens_per_step(self) -> int:
        return self.plan.microbatches * self.sequences * self.model.context

    def make_layers(self) -> list[torch.nn.Module]:
        return gpt_layers(self.model, self.seed, DTYPES[self.dtype])

    def make_optimizer(self, named_parameters: list[tuple[str, torch.nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer of a stage; error feedback corrects for the schedule's own delay."""
        return make_optimizer(
            self.optimizer, named_parameters, self.lr, correction=self.correction, tau=max(self.delays)
        )

    def batches(self, text: bytes) -> ByteBatches:
        return ByteBatches(text, self.model.context, self.sequences, self.seed, self.pool)

    def job(self, text: bytes) -> Job:
        """The run as a job for a :class:`WorkerPool` of ``stages`` workers."""
        return Job(
            schedule=self.plan,
            layers=self.make_layers,
            optimizer=self.make_optimizer,
            data=self.batches(text),
            loss=cross_entropy,
            parts=tuple(self.parts),
            steps=self.steps,
            snapshot_every=self.snapshot_every,
        )


def train(
    config: TrainConfig, text: bytes, pool: WorkerPool | None = None, on_step: OnStep = lambda k, loss: None
) -> RunResult:
    """Run ``config`` on real processes, one a stage: in ``pool``, or in one started for this run.

    Raises InputError before any process starts, RunError where a worker fails.
    """
    job = config.job(text)
    if pool is not None:
        if pool.stages != config.stages:
            raise InputError(f"stages = {config.stages}: the pool has {pool.stages} workers")
        return pool.run(job, on_step)
    with WorkerPool(config.stages) as own:
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
            "state its ages in ORACLE_AGES of pipeline/training.py"
        )


def train_oracle(
    config: TrainConfig, text: bytes, observer: Callable[[OracleState], None] | None = None, **changes: Any
) -> OracleResult:
    """The same run in one process, by the oracle; ``changes`` replace fields of ``config``."""
    config = replace(config, **changes) if changes else config
    S, m = config.stages, config.plan.microbatches
    check_oracle_knows(config.schedule)
    name = config.schedule if config.policy == "refuse" else f"{config.schedule} ({config.policy})"
    ages = [ORACLE_AGES[name](S, m, s, config.tau) for s, part in enumerate(config.parts) for _ in part]
    tau = max(-(-age // m) for age in ages)
    plain = replace(config, correction="none")
    with one_thread():
        return run_oracle(
            config.make_layers(),
            plain.make_optimizer,
            config.batches(text),
            cross_entropy,
            microbatches=m,
            steps=config.steps,
            ages=ages,
            correction=(float(tau), 1) if config.correction != "none" and tau > 0 else None,
            snapshot_every=config.snapshot_every,
            observer=observer,
        )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One intra-op thread, as in a worker process: the number of threads decides the order of sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
