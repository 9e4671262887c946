"""Real training: PipeDream-2BW against synchronous 1F1B on the same two processes, without and with error feedback.

First the engine is held against the oracle, bit for bit. Then every arm runs on real processes; the arms of a seed
share initial weights and data order. Last come the measurements that need gradients at points of the run's choosing
(drift, bias, the theorem's terms): they run in the oracle that was just found equal, and say so.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pipeline.divergence import diverged
from pipeline.json_io import write_json
from staleproof.claims import Claim
from staleproof.presets import Preset
from staleproof.sections import _training_plan as plan
from staleproof.versions import gpus

TITLE = "Training: the gap of stale gradients and what error feedback recovers"
EVIDENCE = "training.json"


def check(preset: Preset) -> None:
    """Refuse what cannot run before anything starts: the corpus, the arms."""
    from pipeline.data.corpus import load_corpus

    config = plan.arm(preset, "adamw", "1f1b", "none", 0)
    config.batches(load_corpus(preset.corpus).text)


def run(
    preset: Preset, progress: Callable[[float, str], None], folder: Path
) -> tuple[dict[str, Any], list[Claim]]:
    """All runs of the preset; returns the contents of training.json and the claims.

    Finished arms are in folder/runs/ and in training.json as soon as they end.
    """
    from pipeline.data.corpus import load_corpus
    from pipeline.engine.pool import WorkerPool
    from pipeline.training import train
    from staleproof.sections import _training_analysis as analysis

    corpus = load_corpus(preset.corpus)
    model = plan.model_config(preset)
    example = plan.arm(preset, "adamw", "1f1b", "none", 0)
    results: dict[str, Any] = {
        "corpus": corpus.describe(),
        "model": {
            "parameters": sum(p.numel() for layer in example.make_layers() for p in layer.parameters()),
            "layers": model.layers,
            "width": model.width,
            "heads": model.heads,
            "context": model.context,
        },
        "stages": plan.STAGES,
        "microbatches": example.plan.microbatches,
        "steps": example.steps,
        "tokens_per_step": example.tokens_per_step,
        "oracle_check": [],
        "arms": [],
        "gaps": [],
        "diagnostics": [],
        "bound": None,
        "budget": None,
    }
    claims: list[Claim] = []
    progress(0.0, "starting two worker processes")
    try:
        # Bit-for-bit statements are about one kind of arithmetic: the oracle's, on the CPU.
        with ExitStack() as stack:
            pool = stack.enter_context(WorkerPool(plan.STAGES, device="cpu"))
            if not _against_oracle(preset, corpus.text, pool, results, claims, progress):
                return results, claims
            recorded = plan.theorem_run(preset, 0), plan.budget_run(preset)
            real = [train(config, corpus.text, pool) for config in recorded]
            if gpus():  # else the same workers go on
                stack.close()
                pool = stack.enter_context(WorkerPool(plan.STAGES))
            results["device"], results["transport"] = pool.device, pool.transport
            _arms(preset, corpus.text, pool, results, claims, progress, folder)
        analysis.gaps(results, claims)
        write_json(folder / EVIDENCE, {k: v for k, v in results.items() if k != "corpus"})
        progress(0.8, "measuring drift, bias and the theorem's terms in the oracle")
        analysis.measure(preset, corpus.text, real, results, claims, progress)
    except BaseException as error:
        error.finished_claims = claims  # type: ignore[attr-defined]
        raise
    return results, claims


def _against_oracle(
    preset: Preset, text: bytes, pool: Any, results: dict[str, Any], claims: list[Claim], progress: Any
) -> bool:
    """Engine against oracle in float64, every parameter at every step. False where a version was wrong."""
    from pipeline.errors import VersionError
    from pipeline.oracle import largest_difference
    from pipeline.training import train, train_oracle

    for index, check in enumerate(plan.ORACLE_CHECKS):
        progress(0.01 + 0.01 * index, f"engine against oracle: {' '.join(check)}")
        config = plan.oracle_check(preset, *check)
        name, statement = _oracle_claim(preset, *check)
        try:
            engine = train(config, text, pool)
        except VersionError as error:
            # A wrong version ends the run before it is wrong: there is nothing left to compare.
            claims.append(Claim.equality(name, statement, math.nan, place=str(error), evidence=EVIDENCE))
            for later in plan.ORACLE_CHECKS[index + 1 :]:
                name, statement = _oracle_claim(preset, *later)
                claims.append(Claim.missing(name, "equality", statement, f"the engine failed before: {error}"))
            return False
        oracle = train_oracle(config, text)
        gap, place = largest_difference(engine.snapshots, oracle.snapshots)
        if sorted(engine.snapshots) != list(range(1, config.steps + 1)):
            gap, place = math.inf, f"compared at steps {sorted(engine.snapshots)} only"
        claims.append(Claim.equality(name, statement, gap, place=place, evidence=EVIDENCE))
        results["oracle_check"].append(
            {
                "optimizer": config.optimizer,
                "correction": config.correction,
                "schedule": config.schedule,
                "steps": config.steps,
                "dtype": config.dtype,
                "max_abs_diff": gap,
            }
        )
        if check == ("adamw", "pipedream-2bw", "none"):
            synchronous = train_oracle(config, text, schedule="1f1b")
            control, _ = largest_difference(engine.snapshots, synchronous.snapshots)
            claims.append(
                Claim.equality(
                    "training.control.synchronous-oracle",
                    f"the comparison can fail: 2BW against the synchronous oracle differs (here by {control:.2g})",
                    float(control > 0),
                    expected=1.0,
                    evidence=EVIDENCE,
                )
            )
    return True


def _oracle_claim(preset: Preset, optimizer: str, schedule: str, correction: str) -> tuple[str, str]:
    """Name and statement of one comparison with the oracle."""
    return f"training.oracle-equality.{optimizer}.{schedule}.{correction}", (
        f"{optimizer}, {schedule}, correction {correction}: float64 weights of {plan.STAGES} processes and of the "
        f"oracle, max |dx| over {preset.oracle_steps} steps"
    )


def _arms(
    preset: Preset,
    text: bytes,
    pool: Any,
    results: dict[str, Any],
    claims: list[Claim],
    progress: Any,
    folder: Path,
) -> None:
    """Every arm of every seed on real processes."""
    from pipeline.training import held_out_loss, train

    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    configs = [
        plan.arm(preset, optimizer, schedule, correction, seed)
        for seed in range(preset.training_seeds)
        for optimizer in plan.OPTIMIZERS
        for schedule, correction in plan.ARMS
    ]
    rows = [_row(config) for config in configs]
    results["arms"] = rows
    digests: dict[tuple[str, int], dict[str, tuple[Any, ...]]] = {}
    begun = time.monotonic()
    for index, (config, row) in enumerate(zip(configs, rows, strict=True)):
        done, name = index / len(configs), plan.arm_name(config)
        rate = f", {index * config.steps * config.tokens_per_step / (time.monotonic() - begun):.0f} tokens/s"

        report = functools.partial(_report_step, progress, done, len(configs), config.steps, name + rate)
        result = train(config, text, pool, report)
        row["train_loss"] = result.losses
        row["steps"] = sorted(result.snapshots)
        row["loss"] = [
            held_out_loss(config, text, result.snapshots[k], plan.HELD_OUT) for k in sorted(result.snapshots)
        ]
        lost = diverged(result.losses, row["loss"][-1], result.skipped)
        row["state"] = "complete" if lost is None else "diverged"
        row["final_loss"] = row["loss"][-1] if lost is None else None
        start = (result.losses[0], result.input_digest, result.target_digest)
        digests.setdefault((config.optimizer, config.seed), {})[name] = start
        write_json(runs / f"{name}.json", row)
        write_json(folder / EVIDENCE, {k: v for k, v in results.items() if k != "corpus"})
    _pairing(digests, claims)
    _settings(configs, claims)


def _report_step(progress: Any, done: float, runs: int, steps: int, text: str, k: int, loss: float) -> None:
    progress(0.1 + 0.65 * (done + k / steps / runs), f"{text}, step {k} of {steps}, loss {loss:.3f}")


def _row(config: Any) -> dict[str, Any]:
    return {
        "optimizer": config.optimizer,
        "schedule": config.schedule,
        "correction": config.correction,
        "seed": config.seed,
        "where": "processes",
        "state": "missing",
        "final_loss": None,
        "steps": [],
        "loss": [],
    }


def _pairing(digests: dict[tuple[str, int], dict[str, tuple[Any, ...]]], claims: list[Claim]) -> None:
    """The arms of a seed saw the same data in the same order and started from the same weights."""
    for name, statement, pick in (
        ("data-order", "the arms of a seed consumed the same inputs and targets in the same order", slice(1, 3)),
        ("same-start", "the arms of a seed have the same loss at step 0", slice(0, 1)),
    ):
        odd = [
            f"{optimizer}, seed {seed}: {', '.join(arms)}"
            for (optimizer, seed), arms in digests.items()
            if len({start[pick] for start in arms.values()}) > 1
        ]
        claims.append(
            Claim.equality(
                f"training.{name}", statement + " (pairs that differ)", len(odd), place="; ".join(odd[:2]),
                evidence=EVIDENCE,
            )
        )
    starts = [(optimizer, next(iter(arms.values()))) for (optimizer, _), arms in digests.items()]
    claims.append(
        Claim.equality(
            "training.distinct-seeds",
            "no two seeds of an optimizer share their data or their loss at step 0 (repetitions)",
            sum(len(starts) - len({(optimizer, start[part]) for optimizer, start in starts}) for part in (0, 1, 2)),
            evidence=EVIDENCE,
        )
    )


def _settings(configs: list[Any], claims: list[Claim]) -> None:
    """The arms of a seed differ in schedule and correction, and in nothing else."""
    kinds: dict[tuple[str, int], list[Any]] = {}
    for config in configs:
        bare = dataclasses.asdict(dataclasses.replace(config, schedule="1f1b", correction="none"))
        kinds.setdefault((config.optimizer, config.seed), []).append(bare)
    odd = [f"{optimizer}, seed {seed}" for (optimizer, seed), bare in kinds.items() if any(b != bare[0] for b in bare)]
    claims.append(
        Claim.equality(
            "training.same-settings",
            "the arms of a seed differ in schedule and correction only (pairs that differ in more)",
            len(odd),
            place="; ".join(odd[:2]),
            evidence=EVIDENCE,
        )
    )
