"""Types of command-line values; each refuses with the value and what is allowed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from staleproof.errors import InputError
from staleproof.presets import MAX_SEED


def integer(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most` (without an upper end if None)."""
    allowed = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {allowed}")
        return value

    return convert


seed = integer(0, MAX_SEED)


def add_schedule(parser: argparse.ArgumentParser, most: int) -> None:
    """Name, depth, microbatches and the options that single schedules have."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="schedule; staleproof delays --list prints the names")
    add("--stages", type=integer(1, most), metavar="S", help="pipeline stages, one device each")
    add(
        "--microbatches",
        type=integer(1),
        metavar="m",
        help="microbatches per optimizer step (default: 1 for PipeDream, S for the others)",
    )
    add_policy(parser)
    add("--chunks", type=integer(1), metavar="v", help="interleaved-1f1b: model chunks per device (default: 2)")
    add("--replicas", type=integer(1), metavar="R", help="localsgd: replicas of the model (default: S)")


def schedule_of(args: argparse.Namespace, most: int) -> Any:
    """The schedule that the options name. Raises InputError for what is missing or not allowed."""
    from pipeline.schedules import SCHEDULES, make_schedule

    if args.name not in SCHEDULES:
        raise InputError(f"name: {args.name!r} is not one of {', '.join(SCHEDULES)}")
    if args.stages is None:
        raise InputError(f"stages: None is not allowed; give --stages with an integer from 1 to {most}")
    options = {name: getattr(args, name) for name in ("chunks", "replicas") if getattr(args, name) is not None}
    if args.policy != "refuse":
        options["policy"] = args.policy
    return make_schedule(args.name, args.stages, args.microbatches, **options)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """What PipeDream-2BW does with fewer than S - 1 microbatches a step."""
    parser.add_argument(
        "--policy",
        default="refuse",
        metavar="NAME",
        help="pipedream-2bw with m < S - 1: refuse (default), stall (delay 1, idle devices), uniform (longer delay)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The --json switch, the same in every command that prints a result."""
    parser.add_argument("--json", action="store_true", help="print JSON only on stdout, at full precision")
