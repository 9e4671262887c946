"""The errors of the rooms, found without importing a room that is not in use."""

from __future__ import annotations

import sys

ROOMS = ("theory", "pipeline", "empirics", "figures", "staleproof")


def input_errors() -> tuple[type[Exception], ...]:
    """`InputError` of every room that is imported: the errors that mean exit code 2."""
    return _loaded("InputError")


def run_errors() -> tuple[type[Exception], ...]:
    """`RunError` of every room that is imported: the errors that mean exit code 3."""
    return _loaded("RunError")


def one_line(error: BaseException) -> str:
    """The message of an error on one line; of an OSError its path and reason."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _loaded(name: str) -> tuple[type[Exception], ...]:
    # An error that was raised comes from a module that is loaded.
    modules = (sys.modules.get(f"{room}.errors") for room in ROOMS)
    return tuple(getattr(module, name) for module in modules if hasattr(module, name))
