"""Reads a result folder: ``status.json``, ``claims.json`` and one JSON file per section.

Only ``status.json`` must exist. A section file that is absent or half written is listed in `Results.unreadable`
or simply missing; the figures and tables that need it are then left out and the report says so. Numbers may be
JSON null, NaN, Infinity or the strings "nan" and "inf": `number` turns all of these into a float.

Shapes of the section files (arrays are lists; an interval is ``{"value", "low", "high", "level", "method", "n"}``):

* ``delays.json``: ``schedules`` (closed form, enumeration, trace of the optimizer-step delay per stage) and
  ``timelines`` (events with kind, stage, microbatch, step, version, start, end, pipeline, device), ``systems`` (the
  figures of every system side by side).
* ``quadratic.json``: ``settings`` (predicted and measured loss per step), ``joint`` (the joint test),
  ``stability`` (limits and the growth just below and above), ``impulse`` (stationary variances without sampling).
* ``proofs.json``: ``proofs`` (each with steps, counterexamples, the ledger of its axioms).
* ``certified.json``: ``problem``, ``runs`` (utilisation of each inequality per step, the theorem with its terms),
  ``enumeration`` and ``tight``.
* ``empirics.json``: ``constants`` (found against known), ``budgets`` (a theorem taken apart on a run: ``theorems``,
  ``grid``, ``planted``), ``blocks`` (inequalities about SGD with old blocks), ``windows`` (predicted losses).
* ``training.json``: ``model``, ``oracle_check``, ``arms``, ``gaps``, ``diagnostics``, ``bound``, ``budget``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from figures.errors import InputError

SECTIONS: tuple[str, ...] = ("delays", "quadratic", "proofs", "certified", "empirics", "training")

Row = dict[str, Any]


def number(value: object) -> float:
    """A float from a JSON value; null, text that is no number, lists and objects become NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def numbers(values: object) -> np.ndarray:
    """A float64 vector from a JSON list (see `number`); anything but a list gives an empty vector."""
    if not isinstance(values, list):
        return np.empty(0)
    return np.array([number(value) for value in values], dtype=np.float64)


def rows(holder: object, key: str) -> list[Row]:
    """The objects in the list `holder[key]`; empty if there are none."""
    values = holder.get(key) if isinstance(holder, Mapping) else None
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def child(holder: object, key: str) -> Row:
    """The object `holder[key]`; empty if it is absent or no object."""
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, dict) else {}


def text(holder: object, key: str, default: str = "") -> str:
    """`holder[key]` as text; `default` if it is absent or null."""
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return default if value is None else str(value)


def whole(holder: object, key: str, default: int = 0) -> int:
    """`holder[key]` as an integer; `default` if it is absent or not finite."""
    value = number(holder.get(key) if isinstance(holder, Mapping) else None)
    return int(value) if math.isfinite(value) else default


@dataclass(frozen=True)
class Results:
    """Everything read from one folder.

    Attributes:
        folder: where the files were read.
        status: ``status.json``; claims: ``claims.json`` or empty.
        sections: section name -> content of its file, only for the files that could be read.
        unreadable: file name -> reason, for the files that exist but are no JSON object.
    """

    folder: Path
    status: Row
    claims: Row = field(default_factory=dict)
    sections: dict[str, Row] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    def section(self, name: str) -> Row:
        """Content of a section; empty if it is not available."""
        return self.sections.get(name, {})

    @property
    def finished(self) -> bool:
        """True if the run that wrote the folder says that it is complete."""
        return self.status.get("state") == "complete"


def _read_object(path: Path) -> Row:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"a JSON {type(content).__name__}, expected an object")
    return content


def load(folder: Path) -> Results:
    """Read a result folder.

    Raises:
        InputError: if `folder` is no folder, or its ``status.json`` is absent or no JSON object.
    """
    status_file = folder / "status.json"
    if not folder.is_dir():
        raise InputError(f"folder: {str(folder)!r} is not a folder; expected one written by a verification run")
    if not status_file.is_file():
        raise InputError(f"folder: {str(folder)!r} has no status.json; expected a folder of a verification run")
    try:
        status = _read_object(status_file)
    except (OSError, ValueError) as error:
        raise InputError(f"status.json: in {str(folder)!r} cannot be read ({error}); expected a JSON object") from None
    found: dict[str, Row] = {}
    unreadable: dict[str, str] = {}
    for name in ("claims", *SECTIONS):
        path = folder / f"{name}.json"
        if path.is_file():
            try:
                found[name] = _read_object(path)
            except (OSError, ValueError) as error:
                unreadable[path.name] = str(error)
    claims = found.pop("claims", {})
    return Results(folder, status, claims, found, unreadable)
