"""Which delay a bound takes from a schedule: tau of one delay for all stages, or delta_max of PipeDream's blocks.

A bound that assumes fixed-delay or delayed-gd is about gradients taken at one point, tau steps ago, whatever the stage
and the microbatch: tau is the schedule's delay where it has a single one, and where a microbatch's forward and backward
read the same weights. A bound that assumes block-delay counts updates of single stages: delta_max is the largest
block-update delay of PipeDream's whole run, start-up included (floor(5 S^2/4) - S, in stage order), and S its stages. A
bound on PipeDream itself takes S alone. Nothing is rounded: the closed forms of this folder, at integers.
Checked by tests/agreement/test_delays_of_bounds.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from theory.assumptions import contradiction
from theory.delays import CLOSED_FORMS, block_update, check_count, closed_form
from theory.delays.closed_form import ClosedForm
from theory.delays.exact import evaluate
from theory.errors import InputError

if TYPE_CHECKING:
    from theory.bound import Bound


@dataclass(frozen=True)
class ScheduleDelay:
    """Values of a bound's symbols that a schedule settles, and where they come from in words."""

    values: dict[str, int]
    words: str


def schedule_delay(bound: Bound, schedule: str, S: int, m: int | None = None, policy: str = "refuse") -> ScheduleDelay:
    """What `schedule` with S stages and m microbatches a step (None: its default) settles of `bound`.

    policy: PipeDream-2BW's for m < S - 1. Raises InputError for an unknown schedule, S or m that it does not admit, and
    where it has no delay of the kind that the bound is about.
    """
    check_count("S", S)
    if m is not None:
        check_count("m", m)
    if schedule not in CLOSED_FORMS:
        known = ", ".join(name for name in CLOSED_FORMS if "(" not in name)
        raise InputError(f"schedule: {schedule!r} is unknown; known: {known}")
    form = closed_form(schedule, policy)
    if form is None:
        raise InputError(f"policy: {policy!r} is not allowed with {schedule}")
    sizes = {"S": S} if m is None else {"S": S, "m": m}
    missed = form.missed("delay", **sizes)
    if missed is not None:
        raise InputError(missed)
    if {"block-delay", "pipedream"} & set(bound.assumptions):
        return _of_blocks(bound, form, sizes)
    if {"fixed-delay", "delayed-gd", "no-delay"} & set(bound.assumptions):
        return _of_steps(bound, form, sizes)
    raise InputError(f"bound {bound.name}: has no delay of a schedule; its symbols: {', '.join(bound.symbols)}")


def _of_steps(bound: Bound, form: ClosedForm, sizes: dict[str, int]) -> ScheduleDelay:
    """tau, in optimizer steps."""
    none = f"bound {bound.name}: {form.name} has no single delay:"
    if "R" in form.parameters:
        raise InputError(f"{none} its replicas step by themselves, and the bound is about one iterate")
    quantities = ("delay", "mean_delay", "version_gap")
    largest, mean, gap = (
        [form.evaluate(quantity, **sizes, stage=stage) for stage in range(sizes["S"])] for quantity in quantities
    )
    if any(gap):
        raise InputError(
            f"{none} a microbatch's backward reads weights up to {max(gap)} steps newer than its forward, so its "
            "gradient is taken at no one point"
        )
    if len(set(largest)) > 1:
        raise InputError(f"{none} by stage it is {' '.join(map(str, largest))}")
    if mean != largest:
        raise InputError(f"{none} at most {largest[0]} steps and {mean[0]} on average over the microbatches of a step")
    tau = int(largest[0])
    broken = contradiction(bound.assumptions, {"tau": tau})
    if broken is not None:
        raise InputError(f"bound {bound.name}: {form.name} has delay {tau}; {broken}")
    values = {"tau": tau} if "tau" in bound.symbols else {}
    return ScheduleDelay(values, f"{_name(form, sizes)}: tau = {tau}, at every stage and step")


def _of_blocks(bound: Bound, form: ClosedForm, sizes: dict[str, int]) -> ScheduleDelay:
    """delta_max, in updates of single stages, and S."""
    S, m = sizes["S"], sizes.get("m", 1)
    if form.name != "pipedream" or m != 1:
        raise InputError(
            f"bound {bound.name}: is about steps of single stages, whose delays are known of pipedream with 1 "
            f"microbatch per step; not of {form.name}{'' if form.name != 'pipedream' else f' with {m}'}"
        )
    if "delta_max" not in bound.symbols:
        return ScheduleDelay({"S": S}, f"{_name(form, sizes)}: S = {S}, which settles the delay of every block")
    longest = int(evaluate(block_update.STARTUP_MAX, S=S))
    later = int(evaluate(block_update.MAX[block_update.DEFAULT_CONVENTION], S=S))
    return ScheduleDelay(
        {"delta_max": longest, "S": S},
        f"{_name(form, sizes)}: delta_max = {longest}, the largest block-update delay of a whole run "
        f"({block_update.DEFAULT_CONVENTION}; {later} after start-up)",
    )


def _name(form: ClosedForm, sizes: dict[str, int]) -> str:
    microbatches = f", m = {sizes['m']}" if "m" in sizes else ""
    return f"{form.name}, S = {sizes['S']}{microbatches}"
