"""Delays counted from a table of events: of the clock or of a real run, by the same functions.

Two counts, never mixed: the optimizer-step delay (how many versions the weights moved between where a gradient was
computed and what it updates), and the block-update delay of Randomized PipeDream's analysis (single-stage updates by
any stage in between).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pipeline.clock import simulate
from pipeline.errors import InputError
from pipeline.events import Event
from pipeline.schedules import make_schedule


def delays_per_microbatch(events: Sequence[Event]) -> dict[int, list[int]]:
    """Stage -> optimizer-step delay of every microbatch, in the order in which the steps consume them.

    The delay of a gradient taken at version v and applied by the step that writes version w is w - 1 - v.

    Raises InputError where a gradient is never applied, is applied twice, or is consumed by a wrong step.
    """
    delays: dict[int, list[int]] = defaultdict(list)
    pending: dict[int, list[Event]] = defaultdict(list)
    seen: set[tuple[int, int]] = set()
    for event in sorted(events, key=lambda e: (e.stage, e.end, e.kind == "step")):
        if event.kind == "backward":
            if (event.stage, event.microbatch) in seen:
                raise InputError(f"microbatch {event.microbatch} has two backwards at stage {event.stage}")
            seen.add((event.stage, event.microbatch))
            pending[event.stage].append(event)
        elif event.kind == "step":
            for gradient in pending.pop(event.stage, []):
                if gradient.step != event.step:
                    raise InputError(
                        f"the gradient of microbatch {gradient.microbatch} at stage {event.stage} belongs to step "
                        f"{gradient.step} and was applied by step {event.step}"
                    )
                delays[event.stage].append(event.version - 1 - gradient.version)
    lost = {stage: [e.microbatch for e in left] for stage, left in pending.items() if left}
    if lost:
        raise InputError(f"gradients that no step applied, by stage: {lost}")
    return dict(delays)


def optimizer_step_delay(events: Sequence[Event]) -> list[int]:
    """Steady-state optimizer-step delay of each stage: the largest over the microbatches of the run."""
    delays = delays_per_microbatch(events)
    return [max(delays[stage]) for stage in sorted(delays)]


def version_mismatch(events: Sequence[Event]) -> int:
    """Largest difference between the versions that a microbatch's forward and backward read at a stage."""
    forward = {(e.stage, e.microbatch): e.version for e in events if e.kind == "forward"}
    gaps = [abs(forward[e.stage, e.microbatch] - e.version) for e in events if e.kind == "backward"]
    return max(gaps, default=0)


def block_update_delay(events: Sequence[Event], stages: int) -> dict[str, Any]:
    """Block-update delays delta_{r,a} of a schedule that steps after every microbatch, in stage order.

    Stage order: the history of updates is indexed by (slot, stage), and a read of block r in slot t counts the updates
    of that slot by stages below r as done (arXiv 2606.03498, section on PipeDream's delay; convention named here).
    ``events`` come from the clock with F = B = 1; at least 4 S microbatches give a steady state.

    Returns matrix (row a = active stage, column r = block read, both from the input side; steady state), its max,
    mean and min, startup_max (largest over the whole run) and minimal_max (steady maximum of the smallest delay that
    returns the same block value).
    """
    # The slot of an update is the slot of the backward it follows.
    updates = sorted((e.start, e.stage, e.microbatch) for e in events if e.kind == "backward")
    order = [(slot, stage) for slot, stage, _ in updates]
    by_stage: dict[int, list[int]] = defaultdict(list)
    for index, (_, stage, _) in enumerate(updates):
        by_stage[stage].append(index)
    read_at = {(e.stage, e.microbatch): e.start for e in events if e.kind == "forward"}
    last = max(e.microbatch for e in events)
    # Away from the fill (first 2S microbatches) and the drain (last S): there the pattern repeats.
    first_steady, last_steady = 2 * stages, last - stages
    if last_steady <= first_steady:
        raise InputError(f"{last + 1} microbatches are too few for a steady state of {stages} stages")
    matrix = [[0] * stages for _ in range(stages)]
    startup_max = minimal_max = 0
    for index, (_, a, j) in enumerate(updates):
        for r in range(stages):
            done = bisect_left(order, (read_at[r, j], r))
            delay = index - done
            startup_max = max(startup_max, delay)
            if first_steady <= j <= last_steady:
                matrix[a][r] = max(matrix[a][r], delay)
                # Block r keeps its value until its next update: any state up to there returns the same.
                following = by_stage[r][bisect_left(by_stage[r], done)] if by_stage[r][-1] >= done else index
                minimal_max = max(minimal_max, index - min(following, index))
    entries = [entry for row in matrix for entry in row]
    return {
        "max": max(entries),
        "mean": sum(entries) / len(entries),
        "min": min(entries),
        "startup_max": startup_max,
        "minimal_max": minimal_max,
        "convention": "stage order",
        "matrix": matrix,
    }


def delays_of(name: str, stages: int, microbatches: int | None = None) -> dict[str, Any]:
    """Delays of a schedule by enumeration of its events: name, stages, microbatches, both counts.

    ``block_update_delay`` is None for schedules that do not step after every microbatch.
    """
    schedule = make_schedule(name, stages, microbatches)
    m = schedule.microbatches
    steps = 6 * stages // m + 4
    result: dict[str, Any] = {
        "name": name,
        "stages": stages,
        "microbatches": m,
        "optimizer_step_delay": optimizer_step_delay(simulate(schedule, steps)),
        "block_update_delay": None,
    }
    if m == 1 and not schedule.flushes and name == "pipedream":
        result["block_update_delay"] = block_update_delay(simulate(schedule, 6 * stages), stages)
    return result
