"""What a training run leaves behind: a folder that says how it was made and whether it is complete, and a summary."""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.divergence import of_summary
from pipeline.errors import InputError
from pipeline.folder import SCHEMA, ResultFolder
from pipeline.json_io import plain, read_json
from pipeline.options import config_of, take_over
from pipeline.progress import Progress

if TYPE_CHECKING:
    from pipeline.data.corpus import Corpus
    from pipeline.engine.job import Checkpoints, Job
    from pipeline.engine.pool import RunResult
    from pipeline.training import TrainConfig

HELD_OUT = 128
#: Relative difference from the oracle that is allowed where sums are taken in another order (float64).
REORDERED = 1e-13
ROWS = "steps.jsonl"
NOT_SETTINGS = ("run", "words", "command")


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options of a run, JSON-ready."""
    return {name: value for name, value in vars(args).items() if name not in NOT_SETTINGS}


def recorded_settings(out: str) -> dict[str, Any]:
    """The options that the run in the folder ``out`` was started with. Raises InputError where there is no run."""
    try:
        status = read_json(Path(out) / "status.json")
        settings = status["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"resume: {out!r} has no status.json of a training run; give its folder with --out") from None
    assert isinstance(settings, dict)
    return settings


def launcher_of(out: str) -> str | None:
    """Who launched the run in the folder ``out``; None where there is none."""
    try:
        found = read_json(Path(out) / "status.json")["launcher"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def checkpoints_of(args: argparse.Namespace) -> Checkpoints | None:
    """Where and how often the run saves, or None."""
    from pipeline.engine.job import Checkpoints

    if args.checkpoint_every is None:
        return None
    return Checkpoints(str(checkpoint_folder(args.out)), args.checkpoint_every, settings=settings_of(args))


def checkpoint_folder(out: str) -> Path:
    """Folder of the checkpoints of a run."""
    return Path(out) / "checkpoints"


@dataclass(frozen=True)
class Plan:
    """A run that can start: its settings, text and job, and the losses of the steps that a checkpoint has done."""

    config: TrainConfig
    corpus: Corpus
    job: Job
    losses: list[float]


def plan(args: argparse.Namespace, given: Collection[str], stages: int | None = None) -> Plan:
    """What the options stand for, with ``resume`` together with the record of the run; ``args`` are completed.

    given: options that the user named; stages: their number, where the launcher has decided (else 2 by default).
    Raises InputError for whatever can be foreseen.
    """
    from pipeline.data.corpus import load_corpus

    if args.resume and args.out is not None:
        take_over(args, recorded_settings(args.out), given)
    args.stages = stages or args.stages or 2
    config = config_of(args)
    corpus = load_corpus(args.corpus)
    config.batches(corpus.text)  # refuses a corpus that is too short
    job, losses = config.job(corpus.text, checkpoints_of(args)), []
    if args.resume:
        from pipeline.engine.checkpoint import check_fits, latest_checkpoint, losses_in, read_manifest

        start = str(latest_checkpoint(checkpoint_folder(args.out)))
        check_fits(read_manifest(start), job)
        job, losses = replace(job, resume=start), losses_in(start)
    return Plan(config, corpus, job, losses)


def device_of(args: argparse.Namespace) -> str:
    """The device that the options ask for. The oracle computes on the CPU; equality bit for bit is a statement about
    the same arithmetic."""
    return "cpu" if args.check_oracle and args.device == "auto" else args.device


class RunRecord:
    """The run's folder, if it has one: rows as they come, what is unfinished marked so. Everything else is progress.

    bubble: idle share so far; launcher: who starts the attempts of a run that is started again when it fails.
    """

    def __init__(
        self,
        stack: ExitStack,
        args: argparse.Namespace,
        made: Plan,
        command: str,
        bubble: Callable[[], float],
        launcher: str | None = None,
    ) -> None:
        self.progress = Progress("train")
        self.steps, self.done, self.bubble = made.config.steps, len(made.losses), bubble
        self.tokens = made.config.tokens_per_step
        self.folder = self.rows = None
        self.begin()
        if args.out is None:
            return
        if args.resume:
            self.folder = stack.enter_context(ResultFolder.reopen(Path(args.out)))
        else:
            self.folder = stack.enter_context(ResultFolder.create(Path(args.out), args.overwrite))
        self.status = {
            "schema": SCHEMA,
            "state": "running",
            "error": None,
            "command": command,
            "launcher": launcher,
            "settings": settings_of(args),
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        self.folder.write("status.json", self.status)
        self.rows = stack.enter_context(open(self.folder.path / ROWS, "w", encoding="utf-8"))
        self.rows.writelines(_row(k, loss) for k, loss in enumerate(made.losses, 1))
        stack.push(self._on_exit)

    def begin(self) -> None:
        """The first step begins now; what came before was starting processes."""
        self.began = time.perf_counter()

    def step(self, k: int, loss: float) -> None:
        """k steps are done; ``loss`` is that of the last one, at the version it used."""
        rate = (k - self.done) * self.tokens / (time.perf_counter() - self.began)
        words = f"step {k}/{self.steps}, loss {loss:.3f}, {rate:.0f} tokens/s, bubble {100 * self.bubble():.0f} %"
        self.progress(k / self.steps, words)
        if self.rows is not None:
            self.rows.write(_row(k, loss))
            self.rows.flush()

    def _on_exit(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is not None:
            state = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
            self.fail(" ".join(str(error).split()) or state, state)
        return False

    def fail(self, why: str, state: str = "failed") -> None:
        """Mark the run as failed, or as ``state`` says; for a process that will not get to its end by itself too."""
        if self.folder is not None:
            self.folder.write("status.json", self.status | {"state": state, "error": why})

    def finish(self, summary: dict[str, Any], result: RunResult) -> None:
        """Write what the whole run has shown."""
        import torch

        from pipeline.chrome_trace import chrome_trace
        from pipeline.events import as_columns

        self.progress.finish(f"{self.steps} steps")
        if self.folder is not None:
            self.folder.write("run.json", summary)
            self.folder.write("events.json", {"unit": "s", "columns": as_columns(result.events)})
            title = f"{summary['schedule']}, {summary['stages']} stages"
            self.folder.write("trace.json", chrome_trace(result.events, title))
            torch.save(result.solution, self.folder.path / "weights.pt")
            if (lost := of_summary(summary)) is None:
                end: dict[str, Any] = {"state": "complete"}
            else:
                end = {"state": "diverged", "error": lost.reason, "diverged_at": lost.step}
            self.folder.write("status.json", self.status | end)


def _row(k: int, loss: float) -> str:
    return json.dumps(plain({"step": k, "loss": loss})) + "\n"


def summarise(made: Plan, result: RunResult, seconds: float, args: argparse.Namespace) -> dict[str, Any]:
    """The run in numbers, JSON-ready; with ``check_oracle`` the oracle runs here.

    ``losses`` has every step of the whole run, ``skipped_steps`` the number k (from 0) of each that was left out for
    Inf or NaN in its gradient; what is read from the trace or the clock begins with step ``resumed_from``.
    """
    from pipeline.delays import delays_per_microbatch, optimizer_step_delay
    from pipeline.optim.recipes import default_lr
    from pipeline.run import losses_at_newest
    from pipeline.training import held_out_loss

    config, corpus = made.config, made.corpus
    histogram = Counter(delay for delays in delays_per_microbatch(result.events).values() for delay in delays)
    done = len(made.losses)
    summary = {
        "schedule": config.schedule,
        "stages": config.stages,
        "microbatches": config.plan.microbatches,
        "synchronous_steps": config.synchronous_steps,
        "steps": config.steps,
        "resumed_from": done,
        "optimizer": config.optimizer,
        "lr": default_lr(config.optimizer) if config.lr is None else config.lr,
        "correction": config.correction,
        "correction_options": {k: v for k, v in asdict(config.correction_options).items() if v is not None},
        "clip": config.clip,
        "skip_nonfinite": config.skip_nonfinite,
        "seed": config.seed,
        "dtype": config.dtype,
        "corpus": corpus.describe(),
        "settings": settings_of(args),
        "optimizer_step_delay": optimizer_step_delay(result.events),
        "delay_histogram": {str(delay): histogram[delay] for delay in sorted(histogram)},
        "peak_versions": result.peak_versions,
        "peak_in_flight": result.peak_in_flight,
        "peak_gradient_sets": result.peak_gradient_sets,
        "timing": _timing(config, result, config.steps - done),
        "losses": result.losses,
        "gradient_norms": result.norms,
        "skipped_steps": result.skipped,
        "held_out_loss": held_out_loss(config, corpus.text, result.solution, HELD_OUT),
        "wall_seconds": seconds,
        "tokens_per_second": (config.steps - done) * config.tokens_per_step / seconds,
    }
    if (every := args.newest_loss_every) is not None:
        asked = {k: weights for k, weights in result.snapshots.items() if k % every == 0}
        summary["newest_losses"] = {str(k): loss for k, loss in losses_at_newest(made.job, asked).items()}
    if args.check_oracle:
        summary |= _against_oracle(config, corpus.text, result)
    return summary


def _timing(config: TrainConfig, result: RunResult, steps: int) -> dict[str, float] | None:
    """Period, bubble and utilisation of the trace, by the functions that read the clock; None for a single step."""
    from pipeline.timing import timing_of_events

    if steps < 2:
        return None
    found = timing_of_events(result.events, config.plan)
    return {
        "seconds_per_step": float(found.period),
        "bubble": float(found.bubble),
        "utilisation": float(found.utilisation),
        "tokens_per_second": config.tokens_per_step / float(found.period),
    }


def _against_oracle(config: TrainConfig, text: bytes, result: RunResult) -> dict[str, Any]:
    from pipeline.oracle import largest_difference
    from pipeline.training import train_oracle

    found_oracle = train_oracle(config, text)
    same = {k: found_oracle.snapshots[k] for k in result.snapshots if k in found_oracle.snapshots}
    mine, same = result.snapshots | {-1: result.solution}, same | {-1: found_oracle.solution}
    found: dict[str, Any] = {"max_abs_diff": largest_difference(mine, same)[0], "allowed_diff": 0.0}
    if config.sums_reordered:
        found["max_relative_diff"] = largest_difference(mine, same, relative=True)[0]
        found["allowed_diff"] = REORDERED
    return found


def difference_is_allowed(summary: Mapping[str, Any]) -> bool:
    """Whether the run equals the oracle, as far as it was asked."""
    found = summary.get("max_relative_diff", summary.get("max_abs_diff", 0.0))
    return bool(found <= summary.get("allowed_diff", 0.0))


def describe(summary: Mapping[str, Any]) -> str:
    """The summary in words."""
    lines = [
        f"{summary['schedule']}, {summary['stages']} stages, {summary['microbatches']} "
        f"{'microbatch' if summary['microbatches'] == 1 else 'microbatches'}, "
        f"{summary['optimizer']}, correction {summary['correction']}: "
        f"{summary['steps'] - summary['resumed_from']} steps in {summary['wall_seconds']:.1f} s "
        f"({summary['tokens_per_second']:.0f} tokens/s)",
        f"training loss {summary['losses'][0]:.4f} -> {summary['losses'][-1]:.4f} nats per byte, "
        f"held out {summary['held_out_loss']:.4f}",
        *(
            [f"delay 0 in the first {summary['synchronous_steps']} steps"] if summary["synchronous_steps"] else []
        ),
        f"largest optimizer-step delay by stage, from the trace: {' '.join(map(str, summary['optimizer_step_delay']))}",
    ]
    if summary["timing"] is not None:
        lines.append(
            f"steady state, from the trace: {1000 * summary['timing']['seconds_per_step']:.3g} ms per step, bubble "
            f"{100 * summary['timing']['bubble']:.0f} % (time without a forward or backward)"
        )
    if summary["skipped_steps"]:
        first = ", ".join(map(str, summary["skipped_steps"][:8])) + (", ..." * (len(summary["skipped_steps"]) > 8))
        lines.append(
            f"steps left out for Inf or NaN in a gradient: {len(summary['skipped_steps'])} of {summary['steps']} "
            f"(k = {first}, from 0)"
        )
    if summary.get("newest_losses"):
        k, newest = list(summary["newest_losses"].items())[-1]
        used = summary["losses"][int(k)]
        lines.append(f"loss of batch {k} at the newest weights {newest:.4f}, at those it used {used:.4f}")
    if "max_relative_diff" in summary:
        lines.append(
            f"largest relative difference from the oracle over all steps: {summary['max_relative_diff']:g} (sums are "
            f"taken in another order; allowed {summary['allowed_diff']:g})"
        )
    elif "max_abs_diff" in summary:
        lines.append(f"largest difference from the oracle over all steps: {summary['max_abs_diff']:g}")
    return "\n".join(lines)
