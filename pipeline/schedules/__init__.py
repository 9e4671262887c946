"""Schedules by name. A new one is one file (see TEMPLATE.py) and one line in :data:`SCHEDULES`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pipeline.errors import InputError
from pipeline.schedules.amdp import AMDP
from pipeline.schedules.base import Action, Schedule, positive_integer
from pipeline.schedules.gpipe import GPipe
from pipeline.schedules.interleaved import Interleaved
from pipeline.schedules.local_sgd import LocalSGD
from pipeline.schedules.one_f_one_b import OneFOneB
from pipeline.schedules.paci import PACI
from pipeline.schedules.pipedream import PipeDream
from pipeline.schedules.pipedream_2bw import PipeDream2BW
from pipeline.schedules.pipedream_vertical_sync import PipeDreamVerticalSync
from pipeline.schedules.pipemare import PipeMare
from pipeline.schedules.synchronous_start import synchronous_start
from pipeline.schedules.uniform import UniformDelay
from pipeline.schedules.zb_h1 import ZBH1

SCHEDULES: dict[str, type[Schedule]] = {
    cls.name: cls
    for cls in (
        GPipe,
        OneFOneB,
        Interleaved,
        ZBH1,
        PipeDream,
        PipeDreamVerticalSync,
        PipeDream2BW,
        UniformDelay,
        PACI,
        PipeMare,
        AMDP,
        LocalSGD,
    )
}


def engine_schedules() -> list[str]:
    """Names of the schedules that real processes can run."""
    return [name for name, cls in SCHEDULES.items() if cls(4, 4).runs_on_engine]


def make_schedule(
    name: str, stages: int, microbatches: int | None = None, *, synchronous_steps: int = 0, **options: Any
) -> Schedule:
    """The schedule ``name`` for S ``stages`` and m ``microbatches`` (None: 1 for PipeDream with and
    without vertical sync, S for the others).

    synchronous_steps: so many steps with delay 0 come first (:mod:`pipeline.schedules.synchronous_start`).
    options: what else the schedule has: ``chunks`` (interleaved-1f1b), ``policy`` (pipedream-2bw), ``tau`` (uniform),
    ``replicas`` (localsgd). Raises InputError for an unknown name or option, or for values that the schedule does not
    allow.
    """
    if name not in SCHEDULES:
        raise InputError(f"schedule {name!r}: allowed are {', '.join(SCHEDULES)}")
    cls = SCHEDULES[name]
    known = [field.name for field in fields(cls)[2:]]
    for option in options:
        if option not in known:
            who = [other for other, kind in SCHEDULES.items() if option in [f.name for f in fields(kind)[2:]]]
            allowed = f"allowed with {', '.join(who)}" if who else f"{name} has {', '.join(known) or 'no'} options"
            raise InputError(f"{option} = {options[option]!r} with schedule {name!r}: {allowed}")
    if microbatches is None:
        microbatches = cls.default_microbatches or positive_integer("stages", stages)
    return synchronous_start(cls(stages, microbatches, **options), synchronous_steps)


__all__ = ["SCHEDULES", "Action", "Schedule", "engine_schedules", "make_schedule"]
