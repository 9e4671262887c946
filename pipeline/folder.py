"""The output folder of one run: never mixed with another run, never half written.

A folder that holds anything is refused unless `overwrite` is given; then it must be a result folder (it has
the status.json of an earlier run) and is emptied first, so `--overwrite` cannot clear a folder of somebody
else's. A lock held for the life of the process keeps two runs out of one folder at the same time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from pipeline.errors import InputError
from pipeline.json_io import read_json, write_json

try:
    import fcntl
except ImportError:  # not a POSIX system: no lock between concurrent runs there
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
SCHEMA = 1


class ResultFolder:
    """An opened, empty and locked output folder. Use as a context manager, or call `close`."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, path: str | Path, overwrite: bool = False) -> ResultFolder:
        """Make (or, with `overwrite`, empty) the folder and lock it.

        Raises InputError if the path is a file, cannot be written, is in use by another run, or holds
        something.
        """
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"out: {str(folder)!r} is a file; give a new or empty folder")
        opened = cls._open(folder)
        try:
            _empty(folder, overwrite)
        except BaseException:
            opened.close()
            raise
        return opened

    @classmethod
    def reopen(cls, path: str | Path) -> ResultFolder:
        """Lock the folder of an earlier run, whose files stay, to go on in it.

        Raises InputError if there is none, or if it is in use by another run.
        """
        folder = Path(path)
        if not is_result_folder(folder):
            raise InputError(f"out: {str(folder)!r} has no status.json of an earlier result to go on from")
        return cls._open(folder)

    @classmethod
    def _open(cls, folder: Path) -> ResultFolder:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"out: cannot write to {str(folder)!r} ({reason}); give a writable folder"
            ) from None
        if not _lock(lock, folder / LOCK):
            os.close(lock)  # the file stays: it is the lock of the run that holds it
            raise InputError(f"out: {str(folder)!r} is in use by another run; give another folder")
        return cls(folder, lock)

    def write(self, name: str, value: Any) -> Path:
        """Write `value` as JSON to the file `name` in the folder, atomically; returns its path."""
        target = self.path / name
        write_json(target, value)
        return target

    def close(self) -> None:
        """Release the lock. May be called twice."""
        if self._lock >= 0:
            (self.path / LOCK).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> ResultFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_result_folder(folder: Path) -> bool:
    """True if the folder has a status.json that one of our runs wrote."""
    try:
        status = read_json(folder / "status.json")
    except (OSError, ValueError):
        return False
    return isinstance(status, dict) and status.get("schema") == SCHEMA


def _lock(descriptor: int, path: Path) -> bool:
    """Take the lock; False if another run holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The run that held it may have removed the file meanwhile: then this is a lock on nothing.
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _empty(folder: Path, overwrite: bool) -> None:
    entries = sorted(entry for entry in folder.iterdir() if entry.name != LOCK)
    if not entries:
        return
    if not overwrite:
        raise InputError(
            f"out: {str(folder)!r} is not empty; give a new or empty folder, "
            "or --overwrite to replace an earlier result"
        )
    if not is_result_folder(folder):
        raise InputError(
            f"out: {str(folder)!r} holds files but no status.json of an earlier result; "
            "--overwrite empties result folders only"
        )
    # status.json goes last: if this is interrupted, what is left can still be recognised and overwritten.
    for entry in sorted(entries, key=lambda entry: entry.name == "status.json"):
        try:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"out: cannot remove {str(entry)!r} ({reason}); give another folder") from None
