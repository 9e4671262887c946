"""Types of command-line values; each refuses with the value and what is allowed."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import Any

from pipeline.options import add_policy, add_tau, integer
from staleproof.errors import InputError
from staleproof.output import note

#: Forwards in one optimizer step, and in the timeline of `schedule`: about a minute's work.
MAX_PASSES = 20_000
#: The same for `compare`, which does it for every system.
MAX_PASSES_EACH = 5_000
#: Formats of a figure.
ENDINGS = (".png", ".pdf", ".svg")
#: Problems of one schedule that are printed.
MAX_LINES = 6


def add_schedule(parser: argparse.ArgumentParser, most: int) -> None:
    """Name, depth, microbatches and the options that single schedules have."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="schedule; staleproof delays --list prints the names")
    add("--stages", type=integer(1, most), metavar="S", help="pipeline stages, one device each")
    add_microbatches(parser)
    add("--chunks", type=integer(1), metavar="v", help="interleaved-1f1b: model chunks per device (default: 2)")
    add_tau(parser)
    add("--replicas", type=integer(1), metavar="R", help="localsgd: replicas of the model (default: S)")


def add_microbatches(parser: argparse.ArgumentParser) -> None:
    """--microbatches, and --policy for few of them."""
    parser.add_argument(
        "--microbatches",
        type=integer(1),
        metavar="m",
        help="microbatches per optimizer step (default: 1 for PipeDream, S for the others)",
    )
    add_policy(parser)


def schedule_of(args: argparse.Namespace, most: int) -> Any:
    """The schedule that the options name. Raises InputError for what is missing or not allowed."""
    from pipeline.schedules import SCHEDULES, make_schedule

    if args.name is None:
        raise InputError(f"name: not given; allowed are {', '.join(SCHEDULES)}")
    if args.name not in SCHEDULES:
        raise InputError(f"name: {args.name!r} is not one of {', '.join(SCHEDULES)}")
    if args.stages is None:
        raise InputError(f"stages: not given; give --stages with an integer from 1 to {most}")
    check_size(args.stages, args.microbatches or 1, args.chunks or 1)
    if args.tau is not None:
        check_size(args.stages, args.microbatches or 1, args.chunks or 1, args.tau + 1, "tau + 1")
    options: dict[str, Any] = {"synchronous_steps": getattr(args, "sync_start", 0)}
    check_size(args.stages, args.microbatches or 1, args.chunks or 1, options["synchronous_steps"] or 1, "sync-start")
    options |= {name: getattr(args, name) for name in ("chunks", "replicas", "tau") if getattr(args, name) is not None}
    if args.policy != "refuse":
        options["policy"] = args.policy
    return make_schedule(args.name, args.stages, args.microbatches, **options)


def check_figure(name: str) -> None:
    """Refuse (InputError) a file that a figure could not be written to."""
    path = Path(name)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"figure: {name!r} is not allowed; give a name that ends in {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InputError(f"figure: the folder {str(path.parent)!r} does not exist")


def check_size(
    stages: int, microbatches: int, chunks: int = 1, steps: int = 1, what: str = "steps", limit: int = MAX_PASSES
) -> None:
    """Raises InputError for more forwards, stages x microbatches x chunks x steps, than a minute's work."""
    for field, value, others in (
        ("chunks", chunks, stages),
        ("microbatches", microbatches, stages * chunks),
        (what, steps, stages * chunks * microbatches),
    ):
        most = max(limit // others, 1)
        if value > most:
            raise InputError(
                f"{field} = {value}: allowed are at most {most} here (stages x microbatches x chunks x steps up to "
                f"{limit})"
            )


def refuse_invalid(command: str, schedule: Any) -> bool:
    """Name on stderr what is wrong with a schedule; True if anything is."""
    from pipeline.validity import check

    return note_problems(command, check(schedule))


def note_problems(command: str, validity: Any) -> bool:
    """The same for a check that was made: at most a few lines."""
    found = validity.faults
    for line in found[:MAX_LINES]:
        note(f"staleproof {command}: claim failed: {line}")
    if len(found) > MAX_LINES:
        note(f"staleproof {command}: ... and {len(found) - MAX_LINES} problems more")
    return bool(found)


class WholeNames(argparse.HelpFormatter):
    """Help in which a name with hyphens stays on one line."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def add_json(parser: argparse._ActionsContainer) -> None:
    """The --json switch, the same in every command that prints a result."""
    parser.add_argument("--json", action="store_true", help="print JSON only on stdout, at full precision")
