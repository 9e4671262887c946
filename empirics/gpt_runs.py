"""Measured runs of the byte-level GPT by the oracle, as functions that a worker process can be given.

The pipeline's bit-for-bit equality with the oracle is what lets these numbers speak of the pipeline; the verification
checks it in the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from empirics.drift_recorder import DriftRecorder
from empirics.errors import InputError
from empirics.estimators.objective import FiniteObjective
from empirics.run_budget import facts_of_run, recorder_of_run
from empirics.virtual_iterate import Feedback
from pipeline.divergence import diverged
from pipeline.errors import RunError
from pipeline.models.gpt import cross_entropy
from pipeline.oracle import OracleState
from pipeline.training import TrainConfig, train_oracle

#: The noise of a batch is enumerated at every fourth recorded step.
SIGMA_EVERY = 4


@dataclass(frozen=True)
class Drift:
    """Averages over the second half of one run (see :class:`DriftRecorder`), where status is "complete"; else NaN, and
    status says why. at: the point that bias and lag are taken against."""

    optimizer: str
    correction: str
    seed: int
    drift: float
    delay_bias: float
    momentum_lag: float
    status: str = "complete"
    at: str = "x_k"


@dataclass(frozen=True)
class TheoremRun:
    """One run of the LMO optimizer on a finite pool of sequences, with what its theorem needs.

    rows: of :class:`LMORecorder`, with smoothness (of the step) and, at every fourth, sigma (of the batch, by
    enumeration); eta, alpha from the optimizer; E0, rho, f_start exact; weights: final, by name.
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
    """Drift, momentum lag and delay bias of a run; gradients on ``sequences`` held-out windows at each sample.

    Raises InputError for error feedback where stages have different delays: there is no one virtual iterate.
    """
    feedback = feedback_of(config)
    inputs, targets = config.batches(text).held_out(sequences)
    objective = FiniteObjective(config.make_layers(), inputs, targets, cross_entropy)
    recorder = DriftRecorder(objective, every, feedback)
    result = train_oracle(config, text, recorder)
    at = "x_k" if feedback is None else str(feedback)
    # The first steps have no past: averages are over the second half of the run.
    halves = [xs[len(xs) // 2 :] for xs in (recorder.drift, recorder.delay_bias, recorder.momentum_lag)]
    if diverged(result.losses, skipped=result.skipped) is not None or any(np.isinf(xs).any() for xs in halves):
        status = "diverged"
    elif not all(halves):
        status = "too short: nothing was recorded"
    else:
        status = "a gradient or an update was 0" if any(np.isnan(xs).any() for xs in halves) else "complete"
    drift, bias, lag = (float(np.mean(xs)) if status == "complete" else math.nan for xs in halves)
    return Drift(config.optimizer, config.correction, config.seed, drift, bias, lag, status, at)


def feedback_of(config: TrainConfig) -> Feedback | None:
    """How a run's error feedback acts; None for other corrections, which have no virtual iterate, and without delay."""
    if config.correction != "error-feedback" or not any(config.delays):
        return None
    if len(set(config.delays)) > 1:
        raise InputError(f"correction: error-feedback with delays {config.delays}; allowed is one delay of all stages")
    options = config.correction_options
    return Feedback.of(config.delays[0], options.form or "extrapolate", options.coefficient)


def measure_theorem(config: TrainConfig, text: bytes, every: int) -> TheoremRun:
    """Run ``config`` (optimizer ``lmo``, a pool of sequences) and record its theorem's quantities."""
    inputs, targets = config.batches(text).full_pool()
    objective = FiniteObjective(config.make_layers(), inputs, targets, cross_entropy)
    recorder = recorder_of_run(config, facts_of_run(config), objective, every)
    batch, sigma = config.plan.microbatches * config.sequences, {}

    def observe(state: OracleState) -> None:
        recorder(state)
        if state.k % (SIGMA_EVERY * every) == 0:
            sigma[state.k] = math.sqrt(objective.sequence_variance(state.x) / batch)

    result = train_oracle(config, text, observe)
    recorder.flush()
    rows = [dict(row) for row in recorder.rows.kept]
    for row in rows:
        row["smoothness"] = row["segment_dual"] / row["step_norm"] if row["step_norm"] else math.nan
        row |= {"sigma": sigma[int(row["k"])]} if int(row["k"]) in sigma else {}
    return TheoremRun(
        seed=config.seed,
        rows=rows,
        eta=recorder.eta,
        alpha=recorder.alpha,
        E0=recorder.once["E0"],
        rho=recorder.once["rho"],
        f_start=recorder.once["f_start"],
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
