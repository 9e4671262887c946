"""`staleproof report DIR`: redraw the report of a result folder from its files alone."""

from __future__ import annotations

import argparse

from staleproof.arguments import add_json
from staleproof.errors import EXIT_HOLDS
from staleproof.output import emit, emit_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("folder", metavar="DIR", help="result folder of an earlier `staleproof verify`")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Redraw; prints the files written."""
    from pathlib import Path

    from figures.report import write_report

    paths = [str(path) for path in write_report(Path(args.folder))]
    if args.json:
        emit_json({"folder": args.folder, "files": paths})
    else:
        emit("\n".join(paths))
    return EXIT_HOLDS
