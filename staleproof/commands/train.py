"""`staleproof train`: a byte-level GPT on real worker processes, with a schedule, an optimizer and a correction."""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from staleproof.arguments import add_json, add_policy, add_tau, check_size, integer, seed
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, EXIT_RUN_FAILED, InputError
from staleproof.output import emit, emit_json, note

HELD_OUT = 128


def positive(text: str) -> float:
    """A finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give a finite number > 0")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("--schedule", default="pipedream-2bw", metavar="NAME", help="default: pipedream-2bw; a wrong one lists all")
    add("--stages", type=integer(1), default=2, metavar="S", help="pipeline stages, one process each (default: 2)")
    add(
        "--microbatches",
        type=integer(1),
        metavar="m",
        help="microbatches per optimizer step (default: 1 for pipedream, S for the others)",
    )
    add_policy(parser)
    add_tau(parser)
    add("--steps", type=integer(1), default=100, metavar="K", help="optimizer steps (default: 100)")
    add("--optimizer", default="adamw", metavar="NAME", help="adamw (default), muon, sgd, lmo")
    add("--lr", type=positive, metavar="X", help="learning rate (default: the optimizer's own)")
    add("--correction", default="none", metavar="NAME", help="none (default) or error-feedback")
    add("--layers", type=integer(1), default=2, metavar="N", help="transformer blocks (default: 2)")
    add("--width", type=integer(1), default=64, metavar="N", help="features (default: 64)")
    add("--heads", type=integer(1), default=4, metavar="N", help="attention heads (default: 4)")
    add("--context", type=integer(1), default=64, metavar="N", help="bytes per sequence (default: 64)")
    add("--sequences", type=integer(1), default=4, metavar="N", help="sequences per microbatch (default: 4)")
    add("--dtype", default="float32", metavar="TYPE", help="float32 (default), float64, bfloat16")
    add("--seed", type=seed, default=0, metavar="N", help="of weights and data order (default: 0)")
    add("--corpus", metavar="PATH", help="file or folder of text to train on (default: Shakespeare)")
    add("--device", default="auto", metavar="NAME", help="auto (default), cpu, cuda")
    add("--transport", default="auto", metavar="NAME", help="auto (default), gloo, nccl")
    add("--port", type=integer(1, 65535), metavar="N", help="rendezvous port on the loopback (default: a free one)")
    add("--check-oracle", action="store_true", help="compare every parameter at every step with the oracle")
    add("--out", metavar="DIR", help="folder for the results: run.json, steps.jsonl, events.json, trace.json")
    add("--overwrite", action="store_true", help="empty an earlier result folder first")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Train and print; exit code 1 where the oracle disagrees."""
    from pipeline.data.corpus import load_corpus
    from pipeline.engine.pool import WorkerPool
    from pipeline.models.gpt import GPTConfig
    from pipeline.run import check_oracle_knows
    from pipeline.training import TrainConfig, train

    if args.check_oracle:
        check_oracle_knows(args.schedule)
    if args.overwrite and args.out is None:
        raise InputError("overwrite: needs --out DIR")
    check_size(args.stages, args.microbatches or 1)
    config = TrainConfig(
        schedule=args.schedule,
        stages=args.stages,
        microbatches=args.microbatches,
        policy=args.policy,
        tau=args.tau,
        sequences=args.sequences,
        steps=args.steps,
        optimizer=args.optimizer,
        lr=args.lr,
        correction=args.correction,
        seed=args.seed,
        dtype=args.dtype,
        model=GPTConfig(layers=args.layers, width=args.width, heads=args.heads, context=args.context),
        snapshot_every=1 if args.check_oracle else 0,
    )
    corpus = load_corpus(args.corpus)
    config.batches(corpus.text)  # refuses a corpus that is too short
    if corpus.note:
        note(f"staleproof train: {corpus.note}")
    with ExitStack() as stack:
        record = _Record(stack, args, config)
        # The oracle computes on the CPU; equality bit for bit is a statement about the same arithmetic.
        device = "cpu" if args.check_oracle and args.device == "auto" else args.device
        pool = stack.enter_context(WorkerPool(config.stages, device, args.transport, args.port))
        start = time.perf_counter()
        result = train(config, corpus.text, pool, record.step)
        seconds = time.perf_counter() - start
        summary = _summary(config, corpus, result, seconds)
        summary |= {"device": pool.device, "transport": pool.transport}
        if args.check_oracle:
            summary["max_abs_diff"] = _against_oracle(config, corpus.text, result)
        record.finish(summary, result)
    if args.json:
        emit_json(summary)
    else:
        emit(_text(summary))
    lost = next((k for k, loss in enumerate(result.losses) if not math.isfinite(loss)), None)
    if lost is not None or not math.isfinite(summary["held_out_loss"]):
        where = "after the last step" if lost is None else f"at step {lost + 1}"
        note(f"staleproof train: the run diverged: its loss is not finite {where}")
        return EXIT_RUN_FAILED
    if summary.get("max_abs_diff", 0.0) != 0.0:
        note(f"staleproof train: claim failed: engine and oracle differ by {summary['max_abs_diff']:g}")
        return EXIT_CLAIM_FAILED
    return EXIT_HOLDS


class _Record:
    """The run's folder, if it has one: rows as they come, what is unfinished marked so."""

    def __init__(self, stack: ExitStack, args: argparse.Namespace, config: Any) -> None:
        import datetime

        from staleproof.folder import SCHEMA, ResultFolder
        from staleproof.progress import Progress

        self.progress = Progress("train")
        self.steps = config.steps
        self.tokens = config.tokens_per_step
        self.began = time.perf_counter()
        self.folder = self.rows = None
        if args.out is None:
            return
        self.folder = stack.enter_context(ResultFolder.create(Path(args.out), args.overwrite))
        self.status = {
            "schema": SCHEMA,
            "state": "running",
            "error": None,
            "command": "staleproof train",
            "settings": {name: value for name, value in vars(args).items() if name not in ("run", "words")},
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        self.folder.write("status.json", self.status)
        self.rows = stack.enter_context(open(self.folder.path / "steps.jsonl", "w", encoding="utf-8"))
        stack.push(self._on_exit)

    def step(self, k: int, loss: float) -> None:
        rate = k * self.tokens / (time.perf_counter() - self.began)
        self.progress(k / self.steps, f"step {k} of {self.steps}, loss {loss:.3f}, {rate:.0f} tokens/s")
        if self.rows is not None:
            self.rows.write(f'{{"step": {k}, "loss": {loss!r}}}\n'.replace("nan", '"NaN"').replace("inf", '"Infinity"'))
            self.rows.flush()

    def _on_exit(self, kind: Any, error: Any, trace: Any) -> bool:
        if self.folder is not None and kind is not None:
            state = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
            why = " ".join(str(error).split()) or state
            self.folder.write("status.json", self.status | {"state": state, "error": why})
        return False

    def finish(self, summary: dict[str, Any], result: Any) -> None:
        from pipeline.chrome_trace import chrome_trace
        from pipeline.events import as_rows

        self.progress.finish(f"{self.steps} steps")
        if self.folder is not None:
            self.folder.write("run.json", summary)
            self.folder.write("events.json", {"unit": "s", "events": as_rows(result.events)})
            title = f"{summary['schedule']}, {summary['stages']} stages"
            self.folder.write("trace.json", chrome_trace(result.events, title))
            self.folder.write("status.json", self.status | {"state": "complete"})


def _summary(config: Any, corpus: Any, result: Any, seconds: float) -> dict[str, Any]:
    from empirics.gpt_runs import held_out_loss
    from pipeline.delays import delays_per_microbatch, optimizer_step_delay

    histogram = Counter(delay for delays in delays_per_microbatch(result.events).values() for delay in delays)
    return {
        "schedule": config.schedule,
        "stages": config.stages,
        "microbatches": config.plan.microbatches,
        "steps": config.steps,
        "optimizer": config.optimizer,
        "correction": config.correction,
        "seed": config.seed,
        "dtype": config.dtype,
        "corpus": corpus.describe(),
        "optimizer_step_delay": optimizer_step_delay(result.events),
        "delay_histogram": {str(delay): histogram[delay] for delay in sorted(histogram)},
        "peak_versions": result.peak_versions,
        "timing": _timing(config, result),
        "losses": result.losses,
        "held_out_loss": held_out_loss(config, corpus.text, result.weights, HELD_OUT),
        "wall_seconds": seconds,
        "tokens_per_second": config.steps * config.tokens_per_step / seconds,
    }


def _timing(config: Any, result: Any) -> dict[str, float] | None:
    """Period, bubble and utilisation of the trace, by the functions that read the clock; None for a single step."""
    from pipeline.timing import timing_of_events

    if config.steps < 2:
        return None
    found = timing_of_events(result.events, config.plan)
    return {
        "seconds_per_step": float(found.period),
        "bubble": float(found.bubble),
        "utilisation": float(found.utilisation),
        "tokens_per_second": config.tokens_per_step / float(found.period),
    }


def _against_oracle(config: Any, text: bytes, result: Any) -> float:
    from pipeline.oracle import largest_difference
    from pipeline.training import train_oracle

    return largest_difference(result.snapshots, train_oracle(config, text).snapshots)[0]


def _text(summary: dict[str, Any]) -> str:
    lines = [
        f"{summary['schedule']}, {summary['stages']} stages, {summary['microbatches']} microbatches, "
        f"{summary['optimizer']}, correction {summary['correction']}: {summary['steps']} steps in "
        f"{summary['wall_seconds']:.1f} s ({summary['tokens_per_second']:.0f} tokens/s)",
        f"training loss {summary['losses'][0]:.4f} -> {summary['losses'][-1]:.4f} nats per byte, "
        f"held out {summary['held_out_loss']:.4f}",
        f"largest optimizer-step delay by stage, from the trace: {' '.join(map(str, summary['optimizer_step_delay']))}",
    ]
    if summary["timing"] is not None:
        lines.append(
            f"steady state, from the trace: {1000 * summary['timing']['seconds_per_step']:.3g} ms per step, bubble "
            f"{100 * summary['timing']['bubble']:.0f} % (time without a forward or backward)"
        )
    if "max_abs_diff" in summary:
        lines.append(f"largest difference from the oracle over all steps: {summary['max_abs_diff']:g}")
    return "\n".join(lines)
