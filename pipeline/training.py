"""A training run of the byte-level GPT as one value: the same settings for the engine and for the oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pipeline.data.batches import ByteBatches
from pipeline.data.masked import MaskedBatches
from pipeline.delays import delay_summary
from pipeline.engine.job import Checkpoints, Job
from pipeline.engine.pool import OnStep, RunResult, WorkerPool
from pipeline.errors import InputError
from pipeline.models.bert import BERTConfig, bert_layers, masked_cross_entropy
from pipeline.models.gpt import GPTConfig, TransformerConfig, cross_entropy, gpt_layers, partition
from pipeline.optim.corrections import CorrectionOptions, check_correction
from pipeline.optim.recipes import make_optimizer
from pipeline.oracle import OracleResult, OracleState
from pipeline.oracle_corrections import OracleCorrection
from pipeline.run import loss_at, oracle_of, run_job
from pipeline.schedules import engine_schedules, make_schedule
from pipeline.schedules.base import Schedule, positive_integer

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a run. A step is ``microbatches`` x ``sequences`` x ``model.context`` bytes.

    microbatches: m (default: 1 for PipeDream, S for the others); policy: of pipedream-2bw for m < S - 1; tau: delay of
    uniform (None: the least possible); synchronous_steps: so many steps with delay 0 come first, before an asynchronous
    schedule; lr: None for the optimizer's own; correction: one of `pipeline.optim.corrections`, for the delay of each
    stage, with its options; pool: see :class:`ByteBatches`;
    dtype: bfloat16 computes in it and keeps the weights that the optimizer works on in float32; recompute: run each
    layer again in the backward instead of keeping its activations; clip: largest norm of the batch gradient over the
    whole model; skip_nonfinite: no stage steps on a batch with Inf or NaN in its gradient; snapshot_every: keep the
    weights every so many steps (0: only at the end).
    Raises InputError, naming the field, for a value that cannot run.
    """

    schedule: str = "pipedream-2bw"
    stages: int = 2
    microbatches: int | None = None
    policy: str = "refuse"
    tau: int | None = None
    synchronous_steps: int = 0
    sequences: int = 4
    steps: int = 100
    optimizer: str = "adamw"
    lr: float | None = None
    correction: str = "none"
    correction_options: CorrectionOptions = CorrectionOptions()
    seed: int = 0
    dtype: str = "float32"
    model: TransformerConfig = field(default_factory=GPTConfig)
    pool: int = 0
    recompute: bool = False
    clip: float | None = None
    skip_nonfinite: bool = False
    snapshot_every: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "sequences", "stages"):
            positive_integer(name, getattr(self, name))
        if self.dtype not in DTYPES:
            raise InputError(f"dtype = {self.dtype!r}: allowed are {', '.join(DTYPES)}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed = {self.seed!r}: allowed are integers of at least 0")
        check_correction(self.correction, self.correction_options)
        if self.schedule not in engine_schedules():
            raise InputError(f"schedule = {self.schedule!r}: the engine runs {', '.join(engine_schedules())}")
        if self.model.tied and self.stages > 1:
            self.plan.refuse_without_slack("tied", True)
        partition(self.model.layers + 2, self.stages)
        if self.correction != "none" and self.delays != self._counted["mean_delay"]:
            raise InputError(
                f"correction = {self.correction!r}: allowed where all microbatches of a stage have one delay; "
                f"{self.schedule} with {self.plan.microbatches} microbatches has up to {self.delays}, on average "
                f"{[round(float(mean), 3) for mean in self._counted['mean_delay']]}"
            )
        if self.correction != "none" and self.synchronous_steps:
            raise InputError(
                f"correction = {self.correction!r}: allowed without a synchronous start, whose steps "
                f"({self.synchronous_steps}) have no delay to correct for"
            )
        # Build the optimizer once on throw-away parameters: it refuses what it does not know.
        self.make_optimizer([("layers.1.weight", torch.nn.Parameter(torch.zeros(2, 2)))])

    @functools.cached_property
    def plan(self) -> Schedule:
        options: dict[str, Any] = {} if self.policy == "refuse" else {"policy": self.policy}
        if self.tau is not None:
            options["tau"] = self.tau
        return make_schedule(
            self.schedule, self.stages, self.microbatches, synchronous_steps=self.synchronous_steps, **options
        )

    @property
    def settled(self) -> Schedule:
        """The schedule behind a synchronous start, or all of it."""
        return self.plan.rest_after(self.synchronous_steps)

    @functools.cached_property
    def _counted(self) -> dict[str, list[Any]]:
        return delay_summary(self.settled)

    @property
    def parts(self) -> list[range]:
        """Layer indices of each stage."""
        return partition(self.model.layers + 2, self.stages)

    @property
    def delays(self) -> list[int]:
        """Optimizer-step delay of each stage after a synchronous start, counted from the schedule's events."""
        return self._counted["optimizer_step_delay"]

    @property
    def sums_reordered(self) -> bool:
        """Whether the engine takes some sum in another order than one process would, so equality is to round-off."""
        return self.clip is not None or (self.model.tied and self.stages > 1)

    @property
    def tokens_per_step(self) -> int:
        return self.plan.microbatches * self.sequences * self.model.context

    def make_layers(self) -> list[torch.nn.Module]:
        """The model; its weights are the optimizer's, in float32 where the run computes in bfloat16."""
        dtype = torch.float32 if self.dtype == "bfloat16" else DTYPES[self.dtype]
        if isinstance(self.model, BERTConfig):
            return bert_layers(self.model, self.seed, dtype)
        assert isinstance(self.model, GPTConfig)
        return gpt_layers(self.model, self.seed, dtype)

    def make_optimizer(self, named_parameters: list[tuple[str, torch.nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer of a stage, whose parameters these are; a correction is for the delay of that stage."""
        layer = int(named_parameters[0][0].split(".")[1])
        tau = next(self.delays[s] for s, part in enumerate(self.parts) if layer in part)
        options = self.correction_options
        if self.correction == "lr-discount" and options.anneal_steps is None:
            options = replace(options, anneal_steps=self.steps)
        return make_optimizer(self.optimizer, named_parameters, self.lr, self.correction, tau, options)

    @property
    def oracle_correction(self) -> OracleCorrection | None:
        """The correction as the oracle is told it."""
        if self.correction == "none":
            return None
        tau = [self.delays[s] for s, part in enumerate(self.parts) for _ in part]
        settings = {"anneal_steps": self.steps} if self.correction == "lr-discount" else {}
        given = {name: value for name, value in asdict(self.correction_options).items() if value is not None}
        return OracleCorrection(self.correction, tau, **(settings | given))

    def batches(self, text: bytes) -> ByteBatches:
        """The windows that the run draws."""
        return ByteBatches(text, self.model.context, self.sequences, self.seed, self.pool)

    def data(self, text: bytes) -> ByteBatches | MaskedBatches:
        """The windows, for a BERT with masks."""
        batches = self.batches(text)
        return MaskedBatches(batches) if isinstance(self.model, BERTConfig) else batches

    @property
    def loss(self) -> Callable[[Tensor, Tensor], Tensor]:
        """(logits, targets) -> mean loss in nats per predicted byte."""
        return masked_cross_entropy if isinstance(self.model, BERTConfig) else cross_entropy

    def job(self, text: bytes, checkpoints: Checkpoints | None = None, resume: str | None = None) -> Job:
        """The run as a job for a :class:`WorkerPool` of ``stages`` workers."""
        return Job(
            schedule=self.plan,
            layers=self.make_layers,
            optimizer=self.make_optimizer,
            data=self.data(text),
            loss=self.loss,
            parts=tuple(self.parts),
            steps=self.steps,
            seed=self.seed,
            recompute=self.recompute,
            clip=self.clip,
            skip_nonfinite=self.skip_nonfinite,
            compute=torch.bfloat16 if self.dtype == "bfloat16" else None,
            snapshot_every=self.snapshot_every,
            checkpoints=checkpoints,
            resume=resume,
        )


def train(
    config: TrainConfig, text: bytes, pool: WorkerPool | None = None, on_step: OnStep = lambda k, loss: None
) -> RunResult:
    """Run ``config`` on real processes, one a stage: in ``pool``, or in one started for this run.

    Raises InputError before any process starts, RunError where a worker fails.
    """
    return run_job(config.job(text), pool, on_step)


def train_oracle(
    config: TrainConfig, text: bytes, observer: Callable[[OracleState], None] | None = None, **changes: Any
) -> OracleResult:
    """The same run in one process, by the oracle; ``changes`` replace fields of ``config``."""
    config = replace(config, **changes) if changes else config
    plain = replace(config, correction="none", correction_options=CorrectionOptions())
    return oracle_of(plain.job(text), correction=config.oracle_correction, observer=observer)


def held_out_loss(config: TrainConfig, text: bytes, weights: dict[str, Tensor], sequences: int) -> float:
    """Mean loss in nats per predicted byte on evenly spaced held-out windows, without dropout."""
    inputs, targets = config.data(text).held_out(sequences)
    return loss_at(config.make_layers(), config.loss, weights, inputs, targets)
