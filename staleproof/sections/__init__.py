"""Sections of a verification, in order. A section is a module here with two names:

TITLE                                       one line for the verdict table and the report
run(preset, progress, folder)               -> (results, claims)
    preset    staleproof.presets.Preset
    progress  Callable[[float, str], None]: share done in [0, 1] and what is being done
    folder    pathlib.Path of the output folder; own run files go under folder/runs/
    results   JSON-serialisable dict, written to folder/NAME.json right after the section
    claims    list[staleproof.claims.Claim]

It may have a third: check(preset) refuses what can be foreseen. It is called for every chosen section before
the output folder is touched and before any work starts.

A section raises an `InputError` for bad input and `pipeline.errors.RunError` for a run that failed.
A section that cannot run here for want of an optional package raises `Skipped` with the reason.
Modules are imported one at a time, when their turn comes.
"""

from __future__ import annotations

import importlib
from types import ModuleType

SECTIONS: tuple[str, ...] = ("delays", "quadratic", "proofs", "certified", "empirics", "training")


class Skipped(Exception):
    """A section that cannot run here; its text says why. It is marked so, and the verdict shows a missing claim."""


def load(name: str) -> ModuleType:
    """The module of one section."""
    return importlib.import_module(f"staleproof.sections.{name}")
