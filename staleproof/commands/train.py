"""`staleproof train`: a small model on real worker processes, with a schedule, an optimizer and a correction."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack

from pipeline.options import add_training_options, given_options, integer
from staleproof.arguments import add_json, check_size
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, EXIT_RUN_FAILED
from staleproof.output import emit, emit_json, note

EPILOG = """Exit codes: 0 done, 1 engine and oracle differ, 2 bad input, 3 the run failed or diverged: a loss is not
finite, or ends at more than twice that of the first step; status.json says so and the step. 130 interrupted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_training_options(parser)
    parser.add_argument(
        "--port", type=integer(1, 65535), metavar="N", help="rendezvous port on the loopback (default: a free one)"
    )
    add_json(parser)
    parser.epilog = EPILOG
    parser.set_defaults(given=lambda words: given_options(parser, words))


def run(args: argparse.Namespace) -> int:
    """Train and print; exit code 1 where the oracle disagrees, 3 where the run diverged."""
    from pipeline import record
    from pipeline.divergence import of_summary
    from pipeline.engine.pool import WorkerPool
    from pipeline.run import run_job

    given = args.given(args.words)
    del args.given
    check_size(args.stages or 2, args.microbatches or 1)
    made = record.plan(args, given)
    check_size(args.stages, args.microbatches)
    if made.corpus.note:
        note(f"staleproof train: {made.corpus.note}")
    with ExitStack() as stack:
        pool = WorkerPool(args.stages, record.device_of(args), args.transport, args.port)
        kept = record.RunRecord(stack, args, made, "staleproof train", lambda: pool.bubble)
        stack.enter_context(pool)
        begin = time.perf_counter()
        kept.begin()
        result = run_job(made.job, pool, kept.step)
        summary = record.summarise(made, result, time.perf_counter() - begin, args)
        summary |= {"device": pool.device, "transport": pool.transport}
        kept.finish(summary, result)
    if args.json:
        emit_json(summary)
    else:
        emit(record.describe(summary))
    if (lost := of_summary(summary)) is not None:
        note(f"staleproof train: the run diverged: {lost.reason}")
        return EXIT_RUN_FAILED
    if not record.difference_is_allowed(summary):
        note(f"staleproof train: claim failed: engine and oracle differ by {summary['max_abs_diff']:g}")
        return EXIT_CLAIM_FAILED
    return EXIT_HOLDS
