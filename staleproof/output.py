"""Where text goes: results to stdout, everything else to stderr.

`real_stdout` keeps file descriptor 1 away from worker processes and C libraries: while a command runs, what
they write to it appears on stderr, so that stdout carries only what `emit` and `emit_json` write.
A closed stdout (`staleproof ... | head -1`) ends the output quietly and leaves the exit code as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from pipeline.json_io import dumps


def emit(text: str) -> None:
    """Write text and a newline to stdout; silently drops it if the reader has gone."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError:
        discard_stdout()  # what could not be written must not be tried again at exit
        raise


def emit_json(value: Any) -> None:
    """Write `value` to stdout as JSON (see `pipeline.json_io` for NaN and infinities)."""
    emit(dumps(value))


def discard_stdout() -> None:
    """Send all further stdout to nowhere: the flush at exit must not raise again."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        sys.stdout.flush()


def count(number: int, noun: str) -> str:
    """ "1 stage", "2 stages", "2 microbatches"."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def note(text: str) -> None:
    """Write a line to stderr."""
    if sys.stderr is not None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def real_stdout() -> Iterator[None]:
    """Python's sys.stdout writes to the real stdout, file descriptor 1 to stderr, until the block ends."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An ASCII locale must not turn a Greek letter into a traceback.
            stream.reconfigure(errors="backslashreplace")
    original = sys.stdout
    try:
        if original.fileno() != 1 or sys.stderr.fileno() != 2:
            raise io.UnsupportedOperation
    except (AttributeError, ValueError, io.UnsupportedOperation):
        # Not the process's own streams (a test captures them): nothing to protect.
        yield
        return
    original.flush()
    # os.dup gives a descriptor that child processes do not inherit.
    saved = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = open(saved, "w", encoding=original.encoding, errors="backslashreplace", closefd=False)
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.stdout = original
        os.dup2(saved, 1)
        os.close(saved)
