"""`staleproof verify`: all sections, the verdict table, the report."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import replace

from pipeline.options import seed
from staleproof.arguments import add_json
from staleproof.errors import EXIT_CLAIM_FAILED, EXIT_HOLDS
from staleproof.output import emit, emit_json, note
from staleproof.presets import PRESETS, get_preset
from staleproof.sections import SECTIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--preset", choices=list(PRESETS), default="quick", help="sizes of the run (default: %(default)s)"
    )
    parser.add_argument(
        "--only", metavar="NAME[,NAME]", help=f"run these sections only: {', '.join(SECTIONS)} (default: all)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="staleproof-verify",
        help="folder for the results (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="empty an earlier result folder first")
    parser.add_argument(
        "--seed", type=seed, metavar="N", help="seed of everything random (default: the preset's)"
    )
    parser.add_argument(
        "--corpus", metavar="PATH", help="file or folder of text to train on (default: Shakespeare)"
    )
    parser.add_argument(
        "--no-report", action="store_true", help="draw no report; `staleproof report DIR` draws it later"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the verification; returns the exit code."""
    from pipeline.folder import ResultFolder
    from staleproof.verdict_table import verdict_table
    from staleproof.verify import check_input, verify

    preset = get_preset(args.preset)
    if args.seed is not None:
        preset = replace(preset, seed=args.seed)
    if args.corpus is not None:
        preset = replace(preset, corpus=args.corpus)
    only = None if args.only is None else [name.strip() for name in args.only.split(",")]
    check_input(preset, only)
    command = shlex.join(["staleproof", *args.words])
    # The command line is recorded as UTF-8 whatever the locale made of it.
    command = os.fsencode(command).decode("utf-8", "replace")
    with ResultFolder.create(args.out, args.overwrite) as folder:
        outcome = verify(preset, folder, only, command, report=not args.no_report)
    if args.json:
        emit_json(
            {
                "verdict": outcome.verdict,
                "exit_code": outcome.exit_code,
                "folder": str(outcome.folder),
                "report": None if outcome.report is None else str(outcome.report),
                "claims": [claim.as_dict() for claim in outcome.claims],
                "status": outcome.status,
            }
        )
    else:
        emit(verdict_table(outcome.claims))
        emit(f"\nVerdict: {outcome.verdict}")
        for name, why in outcome.status["skipped"].items():
            emit(f"Skipped: {name}; {why}")
        emit(f"Report: {outcome.report if outcome.report else 'not drawn'}")
    if outcome.exit_code not in (EXIT_HOLDS, EXIT_CLAIM_FAILED):
        note(f"staleproof verify: {outcome.status['error']}")
    for claim in outcome.claims:
        if claim.gates and claim.outcome == "fails":
            place = f" at {claim.place}" if claim.place else ""
            note(f"claim failed: {claim.name}: value {claim.value!r}, limit {claim.limit!r}{place}")
    return outcome.exit_code
