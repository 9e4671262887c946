"""Schedules by name. A new one is one file and one line in :data:`SCHEDULES`."""

from __future__ import annotations

from pipeline.errors import InputError
from pipeline.schedules.base import Action, Schedule
from pipeline.schedules.one_f_one_b import OneFOneB
from pipeline.schedules.pipedream import PipeDream
from pipeline.schedules.pipedream_2bw import PipeDream2BW

SCHEDULES: dict[str, type[Schedule]] = {cls.name: cls for cls in (OneFOneB, PipeDream, PipeDream2BW)}

#: Microbatches per optimizer step when the user names none: PipeDream steps after each, the others need S.
DEFAULT_MICROBATCHES = {"pipedream": 1}


def make_schedule(name: str, stages: int, microbatches: int | None = None) -> Schedule:
    """The schedule ``name`` for S ``stages`` and m ``microbatches`` (default: 1 for PipeDream, S otherwise).

    Raises InputError for an unknown name, or for S and m that the schedule does not allow.
    """
    if name not in SCHEDULES:
        raise InputError(f"schedule {name!r}: allowed are {', '.join(SCHEDULES)}")
    m = DEFAULT_MICROBATCHES.get(name, stages) if microbatches is None else microbatches
    return SCHEDULES[name](stages, m)


__all__ = ["SCHEDULES", "Action", "Schedule", "make_schedule"]
