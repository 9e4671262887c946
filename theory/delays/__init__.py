"""Closed forms of pipeline schedules, one schedule a file: delays, versions, microbatches in flight, period, bubble.

Two counts of delay, never mixed: the optimizer-step delay (weight versions between where a gradient was taken and what
it updates) and the block-update delay (updates of any single stage in between; :mod:`theory.delays.block_update`).
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from theory.delays import (
    amdp,
    block_update,
    gpipe,
    interleaved,
    local_sgd,
    one_f_one_b,
    paci,
    pipedream,
    pipedream_2bw,
    pipedream_vertical_sync,
    pipemare,
    uniform,
    zb_h1,
)
from theory.delays.closed_form import ClosedForm
from theory.errors import InputError

CLOSED_FORMS: dict[str, ClosedForm] = {
    form.name: form
    for form in (
        gpipe.FORM,
        one_f_one_b.FORM,
        interleaved.FORM,
        zb_h1.FORM,
        pipedream.FORM,
        pipedream_vertical_sync.FORM,
        pipedream_2bw.FORM,
        pipedream_2bw.STALL,
        pipedream_2bw.UNIFORM,
        uniform.FORM,
        paci.FORM,
        pipemare.FORM,
        amdp.FORM,
        local_sgd.FORM,
    )
}


def closed_form(name: str, policy: str = "refuse") -> ClosedForm | None:
    """The closed forms of a schedule, of PipeDream-2BW under a policy for m < S - 1; None if there are none here."""
    return CLOSED_FORMS.get(name if policy == "refuse" else f"{name} ({policy})")


def has_closed_form(name: str) -> bool:
    """True if the schedule's delays are known in closed form here."""
    return name in CLOSED_FORMS


def optimizer_step_delay(name: str, S: int, m: int | None = None) -> list[int]:
    """Optimizer-step delay of each model stage in steady state, from the input side.

    name: a schedule; S: stages; m: microbatches per optimizer step (None: the schedule's default, 1 for PipeDream with
    and without vertical sync, S for the others). Raises InputError for an unknown name, S or m not a positive integer,
    or an m that the schedule does not admit.
    """
    check_count("S", S)
    form = closed_form(name)
    if form is None:
        raise InputError(f"unknown schedule {name!r}; known: {', '.join(CLOSED_FORMS)}")
    given = {"S": S}
    if m is not None:
        check_count("m", m)
        given["m"] = m
    pieces = 2 * S if name == "interleaved-1f1b" else S
    return [int(form.evaluate("delay", **given, stage=s)) for s in range(pieces)]


def block_update_delay(S: int, convention: str = block_update.DEFAULT_CONVENTION) -> dict[str, Any]:
    """Block-update delays of PipeDream for a step after every microbatch, F = B = 1.

    Keys max, mean, min, startup_max (largest over a whole run), minimal_max, convention, matrix (row = active stage,
    column = block read, both from the input side). Raises InputError for S not a positive integer, or an unknown
    convention.
    """
    check_count("S", S)
    return block_update.summary(S, convention)


def formulas(name: str) -> dict[str, sp.Expr]:
    """The symbolic closed forms of a schedule by quantity; see :class:`ClosedForm`."""
    if name not in CLOSED_FORMS:
        raise InputError(f"unknown schedule {name!r}; known: {', '.join(CLOSED_FORMS)}")
    return CLOSED_FORMS[name].formulas


def check_count(field: str, value: object) -> None:
    """Raises InputError unless ``value`` is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{field}={value!r} is not allowed: {field} must be an integer >= 1")
