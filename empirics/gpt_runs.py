"""Measured runs of the byte-level GPT by the oracle, as functions that a worker process can be given.

The pipeline's bit-for-bit equality with the oracle is what lets these numbers speak of the pipeline; the verification
checks it in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from empirics.estimators.model_norm import ModelNorm
from empirics.estimators.objective import FiniteObjective
from empirics.recorder import DriftRecorder, TheoremRecorder
from pipeline.divergence import diverged
from pipeline.errors import RunError
from pipeline.models.gpt import cross_entropy
from pipeline.training import TrainConfig, train_oracle


@dataclass(frozen=True)
class Drift:
    """Averages over one run (see :class:`DriftRecorder`); diverged: whether it is to be left out of any mean."""

    optimizer: str
    correction: str
    seed: int
    drift: float
    delay_bias: float
    momentum_lag: float
    diverged: bool = False


@dataclass(frozen=True)
class TheoremRun:
    """One run of the LMO optimizer on a finite pool of sequences, with what its theorem needs.

    rows: see :class:`TheoremRecorder`; eta, alpha from the optimizer; E0, rho, f_start exact; weights: final, by name.
    """

    seed: int
    rows: list[dict[str, float]]
    eta: float
    alpha: float
    E0: float
    rho: float
    f_start: float
    weights: dict[str, Tensor]
    losses: list[float]


def measure_drift(config: TrainConfig, text: bytes, every: int, sequences: int) -> Drift:
    """Drift, momentum lag and delay bias of a run; gradients on ``sequences`` held-out windows at each sample."""
    inputs, targets = config.batches(text).held_out(sequences)
    objective = FiniteObjective(config.make_layers(), inputs, targets, cross_entropy)
    recorder = DriftRecorder(objective, every, corrected=config.correction != "none")
    result = train_oracle(config, text, recorder)
    # The first steps have no past: averages are over the second half of the run.
    every_step = (recorder.drift, recorder.delay_bias, recorder.momentum_lag)
    drift, bias, lag = (float(np.mean(xs[len(xs) // 2 :])) for xs in every_step)
    lost = diverged(result.losses, skipped=result.skipped) is not None
    return Drift(config.optimizer, config.correction, config.seed, drift, bias, lag, lost)


def measure_theorem(config: TrainConfig, text: bytes, every: int) -> TheoremRun:
    """Run ``config`` (optimizer ``lmo``, a pool of sequences) and record its theorem's quantities."""
    batches = config.batches(text)
    inputs, targets = batches.full_pool()
    objective = FiniteObjective(config.make_layers(), inputs, targets, cross_entropy)
    parameters = objective.parameters()
    groups = config.make_optimizer(list(parameters.items())).param_groups
    norm = ModelNorm.of_optimizer(groups, {id(p): name for name, p in parameters.items()})
    recorder = TheoremRecorder(objective, norm, every, config.plan.microbatches * config.sequences)
    result = train_oracle(config, text, recorder)
    return TheoremRun(
        seed=config.seed,
        rows=recorder.rows,
        eta=float(groups[0]["lr"]),
        alpha=float(groups[0]["alpha"]),
        E0=recorder.start_error,
        rho=recorder.rho,
        f_start=recorder.rows[0]["f_now"],
        weights=result.solution,
        losses=result.losses,
    )


def in_processes(
    tasks: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], processes: int = 2
) -> Iterable[tuple[int, Any]]:
    """Run (function, arguments) tasks in single-threaded processes; yields (index, result) as they finish.

    The processes end with their parent, whatever happens to it.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    from pipeline.engine.worker import start_quietly

    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes, mp_context=context, initializer=start_quietly)
    try:
        futures = {executor.submit(function, *arguments): i for i, (function, arguments) in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise RunError("a measuring process was killed before it had finished") from None
    finally:
        workers = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(10)
