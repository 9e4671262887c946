"""JSON files of a run's folder, with one line for whatever is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from empirics.errors import InputError
from pipeline.json_io import read_json


def require(found: dict[str, Any], name: str, keys: Sequence[str]) -> None:
    """Raises InputError for a key that a file of that name lacks."""
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise InputError(f"run: {name} has no {missing!r}; allowed is a folder of staleproof train --out")


def read(path: Path) -> dict[str, Any]:
    """A JSON object. Raises InputError where there is none."""
    try:
        found = read_json(path)
    except FileNotFoundError:
        where = f"no {path.name} in {str(path.parent)!r}"
        raise InputError(f"run: {where}; allowed is a folder of staleproof train --out") from None
    except (OSError, ValueError) as error:
        raise InputError(f"run: {str(path)!r} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"run: {str(path)!r} is no JSON object")
    return found
