"""`staleproof report DIR`: redraw the report of a result folder from its files alone.

The exit code says whether it was drawn, not what the verdict is.
"""

from __future__ import annotations

import argparse
import contextlib

from staleproof.arguments import add_json
from staleproof.errors import EXIT_HOLDS, InputError
from staleproof.output import emit, emit_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("folder", metavar="DIR", help="result folder of an earlier `staleproof verify`")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Redraw; prints the files written."""
    from pathlib import Path

    from figures.report import write_report
    from pipeline.json_io import read_json

    status = Path(args.folder) / "status.json"
    if status.is_file():
        content = None
        with contextlib.suppress(OSError, ValueError):  # write_report says what is wrong with the file
            content = read_json(status)
        if isinstance(content, dict) and "settings" in content and "sections" not in content:
            raise InputError(f"folder: {args.folder!r} was written by staleproof train; give one of staleproof verify")
    paths = [str(path) for path in write_report(Path(args.folder))]
    if args.json:
        emit_json({"folder": args.folder, "files": paths})
    else:
        emit("\n".join(paths))
    return EXIT_HOLDS
