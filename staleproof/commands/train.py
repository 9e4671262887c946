"""`staleproof train`: a small model on real worker processes, with a schedule, an optimizer and a correction."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack

from pipeline.options import add_training_options, config_of, given_options, integer, take_over
from staleproof.arguments import add_json, check_size
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS, EXIT_RUN_FAILED
from staleproof.output import emit, emit_json, note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_training_options(parser)
    parser.add_argument(
        "--port", type=integer(1, 65535), metavar="N", help="rendezvous port on the loopback (default: a free one)"
    )
    add_json(parser)
    parser.set_defaults(given=lambda words: given_options(parser, words))


def run(args: argparse.Namespace) -> int:
    """Train and print; exit code 1 where the oracle disagrees."""
    from pipeline import record
    from pipeline.data.corpus import load_corpus
    from pipeline.engine.pool import WorkerPool
    from pipeline.run import run_job

    given = args.given(args.words)
    del args.given
    if args.resume and args.out is not None:
        take_over(args, record.recorded_settings(args.out), given)
    args.stages = args.stages or 2
    check_size(args.stages, args.microbatches or 1)
    config = config_of(args)
    corpus = load_corpus(args.corpus)
    config.batches(corpus.text)  # refuses a corpus that is too short
    start, losses = None, []
    if args.resume:
        from pipeline.engine.checkpoint import check_fits, latest_checkpoint, losses_in, read_manifest

        start = str(latest_checkpoint(record.checkpoint_folder(args.out)))
        check_fits(read_manifest(start), config.job(corpus.text))
        losses = losses_in(start)
    job = config.job(corpus.text, record.checkpoints_of(args), start)
    if corpus.note:
        note(f"staleproof train: {corpus.note}")
    with ExitStack() as stack:
        # The oracle computes on the CPU; equality bit for bit is a statement about the same arithmetic.
        device = "cpu" if args.check_oracle and args.device == "auto" else args.device
        pool = WorkerPool(config.stages, device, args.transport, args.port)
        kept = record.RunRecord(stack, args, config, "staleproof train", lambda: pool.bubble, losses)
        stack.enter_context(pool)
        begin = time.perf_counter()
        kept.begin()
        result = run_job(job, pool, kept.step)
        seconds = time.perf_counter() - begin
        summary = record.summarise(config, corpus, job, result, seconds, args)
        summary |= {"device": pool.device, "transport": pool.transport}
        kept.finish(summary, result)
    if args.json:
        emit_json(summary)
    else:
        emit(record.describe(summary))
    if (where := record.divergence(summary)) is not None:
        note(f"staleproof train: the run diverged: its loss is not finite {where}")
        return EXIT_RUN_FAILED
    if not record.difference_is_allowed(summary):
        note(f"staleproof train: claim failed: engine and oracle differ by {summary['max_abs_diff']:g}")
        return EXIT_CLAIM_FAILED
    return EXIT_HOLDS
