"""The command line. A command's module is imported only when that command is used.

Exit codes: 0 done (and every gating claim holds), 1 a claim failed, 2 bad input, 3 a run failed, 130
interrupted. With --json stdout carries JSON only; progress, warnings and errors go to stderr.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from staleproof import __version__
from staleproof.errors import EXIT_BAD_INPUT, EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_RUN_FAILED
from staleproof.output import discard_stdout, note, real_stdout
from staleproof.rooms import input_errors, one_line, run_errors
from staleproof.signals import signals_interrupt

COMMANDS: dict[str, str] = {
    "verify": "check the theory against exact, simulated and real runs, and write a report",
    "delays": "delays of a schedule: closed form and enumeration",
    "schedule": "one schedule on the clock: timeline, bubble, memory, validity",
    "compare": "all systems in one table: bubble, delay, memory, throughput",
    "bound": "evaluate or print a convergence bound",
    "prove": "check the proofs of the theorems step by step, and print what they rest on",
    "train": "train a small model with a schedule, an optimizer and a correction",
    "budget": "how much each inequality of a theorem's proof lost on a finished run, and its bound in three editions",
    "optimizers": "the optimizers: where each comes from, what it moves, what is inexact",
    "estimate": "constants of a problem or of a finished run, with how each is known",
    "report": "redraw the report of a result folder without recomputing",
}
EPILOG = "exit codes: 0 done, 1 a claim failed, 2 bad input, 3 a run failed, 130 interrupted"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and which never guesses abbreviated options."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: error: {' '.join(message.split())}\n")

    def options(self) -> list[str]:
        """Every long option of this parser."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def refuse_unknown(self, extras: Sequence[str]) -> NoReturn:
        """End with a line that names what was not understood and what is allowed."""
        first = extras[0].split("=", 1)[0]
        if not first.startswith("-"):
            self.error(f"argument {first!r} is one too many; see {self.prog} --help")
        near = difflib.get_close_matches(first, self.options(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        self.error(f"option {first!r} is unknown; {hint}allowed are {', '.join(self.options())}")


def build_parser(selected: str | None) -> tuple[Parser, dict[str, Parser]]:
    """The parser; only the selected command's module is imported and fills in its options."""
    parser = Parser(
        prog="staleproof", description="Theory of stale-gradient training, verified.", epilog=EPILOG
    )
    parser.add_argument("--version", action="version", version=f"staleproof {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser, title="commands"
    )
    filled = {}
    for name, summary in COMMANDS.items():
        filled[name] = commands.add_parser(
            name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}."
        )
        if name == selected:
            module = importlib.import_module(f"staleproof.commands.{name}")
            module.add_arguments(filled[name])
            filled[name].set_defaults(run=module.run)
            filled[name].epilog = filled[name].epilog or EPILOG
    return parser, filled


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises for bad input, failed runs or Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with signals_interrupt(), real_stdout():
            return _run(words)
    except KeyboardInterrupt:
        note("staleproof: interrupted")
        return EXIT_INTERRUPTED


def _run(words: list[str]) -> int:
    selected = next((word for word in words if not word.startswith("-")), None)
    try:
        parser, filled = build_parser(selected)
        args, extras = parser.parse_known_args(words)
        if extras:
            filled[args.command].refuse_unknown(extras)
        args.words = words
        return int(args.run(args))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_HOLDS
    except BrokenPipeError:
        discard_stdout()
        return EXIT_HOLDS
    except Exception as error:
        line = f"staleproof{f' {selected}' if selected in COMMANDS else ''}: error: {one_line(error)}"
        if isinstance(error, input_errors()):
            note(line)
            return EXIT_BAD_INPUT
        if isinstance(error, (*run_errors(), OSError, MemoryError)):
            note(line)
            return EXIT_RUN_FAILED
        traceback.print_exc()  # a fault of this program; exit code 1 would say that a claim failed
        return EXIT_RUN_FAILED


def entry_point() -> NoReturn:
    """The `staleproof` script."""
    sys.exit(main())
