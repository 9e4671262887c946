"""Block-update delays: updates of any single stage between a stage's read of its weights and an update made from it.

This is the delay of Randomized PipeDream's analysis (arXiv 2606.03498) for a schedule that steps after every
microbatch. The count depends on how reads and updates in one slot of time are put in order:

* ``stage order`` (default): the history is indexed by (slot, stage); a read at (slot, r) counts the updates of that
  slot by stages before r as done.
* ``physical``: updates are in the same order, but a read sees all updates of earlier slots and none of its own.
* ``slot``: all updates of a slot share one index.
* ``minimal``: stage order, and the smallest delay that returns the same value of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.events import Event

CONVENTIONS = ("stage order", "physical", "slot", "minimal")
DEFAULT_CONVENTION = "stage order"


def block_delays(events: Sequence[Event], stages: int, convention: str = DEFAULT_CONVENTION) -> np.ndarray:
    """Delay of every update: integers, shape (microbatches, active stage, block read), stages from the input side.

    ``events``: of the clock with F = B = 1, or of a real run (times in seconds then order them, and no two share a
    slot). Raises InputError for an unknown convention, and for events that are no such schedule's.
    """
    if convention not in CONVENTIONS:
        raise InputError(f"convention = {convention!r}: allowed are {', '.join(CONVENTIONS)}")
    read, updated = _slots(events, "forward", stages), _slots(events, "backward", stages)
    microbatches = len(updated)
    # Every (slot, stage) gets a rank that orders slots first, then stages.
    slots = np.unique(np.concatenate([read.ravel(), updated.ravel()]))
    stage = np.arange(stages)
    read_slot, update_slot = np.searchsorted(slots, read), np.searchsorted(slots, updated)
    update_rank = update_slot * stages + stage
    history = np.sort(update_rank.ravel())
    seen = np.searchsorted(history, read_slot * stages + (0 if convention in ("physical", "slot") else stage))
    index = np.searchsorted(history, update_slot * stages if convention == "slot" else update_rank)
    if convention == "minimal":
        # Block r keeps its value until its own next update: every state up to there returns the same.
        own = np.searchsorted(history, update_rank)
        for r in range(stages):
            following = np.searchsorted(own[:, r], seen[:, r])
            last = own[np.minimum(following, microbatches - 1), r]
            seen[:, r] = np.where(following < microbatches, last, history.size)
    return np.maximum(index[:, :, None] - seen[:, None, :], 0)


def block_update_delay(
    events: Sequence[Event], stages: int, convention: str = DEFAULT_CONVENTION
) -> dict[str, Any]:
    """Summary of :func:`block_delays` over the steady state: matrix, max, mean, min; over the run: startup_max.

    matrix: row a = active stage, column r = block read, both from the input side. minimal_max: steady maximum under the
    convention ``minimal``. Needs more than 3 S microbatches; raises InputError for fewer.
    """
    delays = block_delays(events, stages, convention)
    last = len(delays) - 1
    # Away from the fill (first 2S microbatches) and the drain (last S): there the pattern repeats.
    first_steady, last_steady = 2 * stages, last - stages
    if last_steady <= first_steady:
        raise InputError(f"{last + 1} microbatches are too few for a steady state of {stages} stages")
    steady = slice(first_steady, last_steady + 1)
    matrix = delays[steady].max(axis=0)
    minimal = delays if convention == "minimal" else block_delays(events, stages, "minimal")
    return {
        "max": int(matrix.max()),
        "mean": float(matrix.sum()) / matrix.size,
        "min": int(matrix.min()),
        "startup_max": int(delays.max()),
        "minimal_max": int(minimal[steady].max()),
        "convention": convention,
        "matrix": matrix.tolist(),
    }


def _slots(events: Sequence[Event], kind: str, stages: int) -> np.ndarray:
    """Start of every pass of a kind, shape (microbatches, stages). An update is in the slot of its backward."""
    passes = [(e.microbatch, e.stage, e.start) for e in events if e.kind == kind]
    microbatches = 1 + max((j for j, _, _ in passes), default=-1)
    if len(passes) != microbatches * stages or not passes:
        raise InputError(f"{len(passes)} {kind}s: expected one for each of {stages} stages and each microbatch")
    slots = np.full((microbatches, stages), np.nan)
    for j, stage, start in passes:
        slots[j, stage] = start
    if np.isnan(slots).any():
        raise InputError(f"{kind}s: expected one for each of {stages} stages and each microbatch")
    return slots
