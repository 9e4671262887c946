"""Types of command-line values; each refuses with the value and what is allowed."""

from __future__ import annotations

import argparse
from collections.abc import Callable

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


def add_json(parser: argparse.ArgumentParser) -> None:
    """The --json switch, the same in every command that prints a result."""
    parser.add_argument("--json", action="store_true", help="print JSON only on stdout, at full precision")
