"""JSON of result files and of --json: full precision, ASCII only, strictly valid.

JSON has no NaN and no infinities: they are written as the strings "NaN", "Infinity" and "-Infinity", which
`float()` reads back. Numbers are written with the shortest digits that give the same double again.
Files are written to a temporary name beside the target and moved over it, so a reader never sees half a file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def plain(value: Any, place: str = "result") -> Any:
    """`value` as dicts with string keys, lists, strings, bools, None, ints and finite floats.

    Tuples, paths, and scalars and arrays of numpy and torch (anything with `tolist`) are converted.
    Raises TypeError naming the place of what cannot be written.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return float(value)
    if isinstance(value, Mapping):
        return {_key(key, place): plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), place)
    raise TypeError(f"{place}: a {type(value).__name__} cannot be written as JSON")


def _key(key: Any, place: str) -> str:
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise TypeError(f"{place}: a {type(key).__name__} cannot be a JSON key")
    return str(key)


def dumps(value: Any) -> str:
    """`value` as indented JSON text without a final newline; see `plain` for what is converted."""
    return json.dumps(plain(value), indent=2, allow_nan=False)


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` atomically. Raises TypeError (before touching the disk) or OSError."""
    text = dumps(value) + "\n"
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
