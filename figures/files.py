"""Writes files so that a reader never sees half of one."""

from __future__ import annotations

import os
from pathlib import Path

from figures.errors import InputError


def write_bytes(path: Path, content: bytes) -> Path:
    """Write `content` to `path` through a temporary file beside it.

    Raises:
        InputError: if the folder cannot be made or the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(content)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"folder: cannot write {str(path)!r} ({error}); expected a writable folder") from None
    return path


def write_text(path: Path, content: str) -> Path:
    """Write text as UTF-8 with Unix line ends; see `write_bytes`."""
    return write_bytes(path, content.encode("utf-8"))
