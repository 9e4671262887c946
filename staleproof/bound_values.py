"""Where the values of a bound's symbols come from on the command line: `--set`, and the delay of a `--schedule`."""

from __future__ import annotations

import argparse
import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pipeline.options import integer
from staleproof.arguments import add_microbatches
from staleproof.errors import InputError

if TYPE_CHECKING:
    from theory.bound import Bound

MAX_STAGES = 10_000  # the closed forms are evaluated once a stage
OF_SCHEDULE = {"stages": None, "microbatches": None, "policy": "refuse"}  # options beside --schedule: their defaults


def add_values(parser: argparse.ArgumentParser) -> None:
    """--set, --schedule and what belongs to it."""
    add = parser.add_argument
    add(
        "--set",
        metavar="SYMBOL=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="values of the symbols, e.g. --set L=1 eta=1/100",
    )
    add(
        "--schedule",
        metavar="NAME",
        help="take tau, or delta_max and S, from a schedule (see staleproof delays --list); needs --stages",
    )
    add("--stages", type=integer(1, MAX_STAGES), metavar="S", help="pipeline stages of the schedule")
    add_microbatches(parser)


def refuse_without_values(args: argparse.Namespace, mode: str | None) -> None:
    """Refuse values where nothing is evaluated, and options of a schedule without one."""
    for option in ("set", "schedule"):
        if getattr(args, option) and (mode in ("list", "expand") or (args.latex and mode != "tune")):
            beside = mode if mode in ("list", "expand") else "latex"
            raise InputError(f"{option}: --{option} is not allowed with --{beside}, which needs no values")
    if args.schedule is None:
        for option, default in OF_SCHEDULE.items():
            if getattr(args, option) != default:
                raise InputError(f"{option}: --{option} belongs to a schedule; give --schedule NAME too")
    elif args.stages is None:
        raise InputError(f"stages: not given; --schedule needs --stages with an integer from 1 to {MAX_STAGES}")


def values_of(args: argparse.Namespace, bounds: list[Bound]) -> tuple[dict[str, float], list[str]]:
    """The values for the bounds, and a line about the schedule for each that it settles something of.

    Raises InputError for a text that is no assignment, a symbol that is given twice, and a schedule that does not fit.
    """
    values = dict(assignment(text) for text in args.set)
    if len(values) != len(args.set):
        names = [text.split("=", 1)[0].strip() for text in args.set]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"set: {twice!r} is given twice; give each symbol once")
    if args.schedule is None:
        return values, []
    from theory.delays.of_bounds import schedule_delay

    settled: dict[str, float] = {}
    words = []
    for bound in bounds:
        found = schedule_delay(bound, args.schedule, args.stages, args.microbatches, args.policy)
        settled |= found.values
        words.append(found.words)
    both = next((name for name in settled if name in values), None)
    if both is not None:
        raise InputError(f"set: {both!r} is given twice; --schedule {args.schedule} sets it to {settled[both]}")
    return {**values, **settled}, list(dict.fromkeys(words))


def assignment(text: str) -> tuple[str, float]:
    """SYMBOL=VALUE as a pair, VALUE a decimal or a fraction; raises InputError naming the text and the form."""
    name, sign, number = text.partition("=")
    over, slash, under = number.partition("/")
    try:
        value = int(over) / int(under) if slash else float(number)
        zero = int(over) == 0 if slash else Decimal(number) == 0
        beyond = (value == 0 and not zero) or (math.isinf(value) and "inf" not in number.lower())
    except OverflowError:
        beyond = True
    except (ValueError, ZeroDivisionError, InvalidOperation):
        beyond, sign = False, ""
    if not sign or not name.strip():
        raise InputError(f"set: {text!r} is not allowed; give SYMBOL=VALUE with a number, e.g. tau=1 or eta=1/100")
    if beyond:
        raise InputError(f"set: {text!r} is beyond what a float64 holds, 5e-324 to 1.8e308")
    return name.strip(), value
