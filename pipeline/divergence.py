"""When a run counts as diverged: one rule for the run's record, its constants, its budget and the verification.

A run has diverged if a loss of it is not finite, or if it ends at more than `MOST` times the loss that it began with:
by the training loss of its last step, or by the held-out loss of the weights that it leaves. Steps that were left out
do not count, they moved nothing; a rise that the run has come back from is none. A new model's loss is about that of
knowing nothing, log 256 = 5.5 nats per byte, so twice that is no matter of batches or of a step size that is somewhat
too large. What a diverged run measured stays in its record and enters no average.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Largest loss at the end over that of the first step.
MOST = 2.0


@dataclass(frozen=True)
class Divergence:
    """step: the step, from 1, by whose loss it is known; one after the last where it is known by the held-out loss."""

    step: int
    reason: str


def diverged(
    losses: Sequence[float], held_out: float | None = None, skipped: Collection[int] = ()
) -> Divergence | None:
    """Whether a run with these training losses, and at its end this held-out loss, has diverged; skipped: from 0."""
    counted = [(k, loss) for k, loss in enumerate(losses) if k not in skipped]
    for k, loss in counted:
        if not math.isfinite(loss):
            return Divergence(k + 1, f"the loss is not finite at step {k + 1}")
    if held_out is not None and not math.isfinite(held_out):
        return Divergence(len(losses) + 1, "the loss is not finite after the last step")
    if not counted:
        return None
    first, (last, end) = counted[0][1], counted[-1]
    than = f"more than {MOST:g} times the {first:.4g} of the start"
    if end > MOST * first:
        return Divergence(last + 1, f"the loss is {end:.4g} at step {last + 1}, {than}")
    if held_out is not None and held_out > MOST * first:
        return Divergence(len(losses) + 1, f"the held-out loss is {held_out:.4g} after the last step, {than}")
    return None


def of_summary(summary: Mapping[str, Any]) -> Divergence | None:
    """The same for a run's summary (`pipeline.record`), also as read from its file, where NaN is a string."""
    losses = [float(loss) for loss in summary["losses"]]
    return diverged(losses, float(summary["held_out_loss"]), set(summary["skipped_steps"]))
