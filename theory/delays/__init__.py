"""Closed forms of the delays of pipeline schedules, one schedule a file.

Two counts, never mixed: the optimizer-step delay (weight versions between where a gradient was taken and what
it updates) and the block-update delay (updates of any single stage in between).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import sympy as sp

from theory.delays import one_f_one_b, pipedream, pipedream_2bw
from theory.errors import InputError

SCHEDULES: dict[str, ModuleType] = {
    "1f1b": one_f_one_b,
    "pipedream": pipedream,
    "pipedream-2bw": pipedream_2bw,
}


def has_closed_form(name: str) -> bool:
    """True if the schedule's delays are known in closed form here."""
    return name in SCHEDULES


def optimizer_step_delay(name: str, S: int, m: int | None = None) -> list[int]:
    """Optimizer-step delay of each stage in steady state, from the input side.

    name: a schedule; S: stages; m: microbatches per optimizer step (None: the schedule's own default).
    Raises InputError for an unknown name, S or m not a positive integer, or an m that the schedule does not
    admit.
    """
    _check_count("S", S)
    if m is not None:
        _check_count("m", m)
    delays: list[int] = _schedule(name).optimizer_step_delay(S, m)
    return delays


def block_update_delay(S: int) -> dict[str, Any]:
    """Block-update delays of PipeDream in stage order, for a step after every microbatch.

    Keys max, mean, min, startup_max (largest over a whole run), minimal_max, matrix (row = active stage,
    column = block read, both from the input side). Raises InputError for S not a positive integer.
    """
    _check_count("S", S)
    return pipedream.block_update_delay(S)


def formulas(name: str) -> dict[str, sp.Expr]:
    """The symbolic closed forms of a schedule, in S, m, stage (and a, r for block-update delays)."""
    table: dict[str, sp.Expr] = _schedule(name).FORMULA
    return dict(table)


def _schedule(name: str) -> ModuleType:
    if name not in SCHEDULES:
        raise InputError(f"unknown schedule {name!r}; known: {', '.join(SCHEDULES)}")
    return SCHEDULES[name]


def _check_count(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{field}={value!r} is not allowed: {field} must be an integer >= 1")
