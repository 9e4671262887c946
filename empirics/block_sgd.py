"""PipeDream's training as the recursion it is: SGD in which every block of the model has a delay of its own.

y_m is the model after m microbatches, all blocks. Microbatch j reads block s at y_{j - min(j, a_s)}, where a_s is the
age of stage s, S - 1 - s for PipeDream, and y_{j+1} = y_j - gamma g_j(z_j) at the mixed model z_j (the deterministic
counterpart of the block SGD of arXiv 2606.03498). No clock is needed, so a run takes as long as its gradients.
:func:`replay` is the other witness: it executes the events of a schedule and takes block values as they are then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.errors import InputError
from pipeline.events import Event

#: (microbatch j, model) -> gradient, shape (n,).
Gradient = Callable[[int, np.ndarray], np.ndarray]


def stage_slices(n: int, stages: int) -> list[slice]:
    """n coordinates cut into ``stages`` blocks, as even as possible. Raises InputError for fewer than one each."""
    if stages < 1 or n < stages:
        raise InputError(f"stages = {stages}: allowed are 1 to {n}, the number of coordinates")
    ends = [n * (s + 1) // stages for s in range(stages)]
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def pipedream_recursion(
    gradient: Gradient, x0: np.ndarray, stages: int, gamma: float, microbatches: int, ages: Sequence[int] | None = None
) -> np.ndarray:
    """y_0 .. y_M, shape (M + 1, n), for M ``microbatches`` with a step after each.

    ages: age of each stage's block in microbatches (None: PipeDream's S - 1 - s). Raises InputError for a wrong number
    of ages or blocks.
    """
    blocks = stage_slices(len(x0), stages)
    ages = [stages - 1 - s for s in range(stages)] if ages is None else list(ages)
    if len(ages) != stages or min(ages) < 0:
        raise InputError(f"ages = {ages}: allowed are {stages} integers of at least 0, one for each stage")
    y = np.empty((microbatches + 1, len(x0)))
    y[0] = x0
    mixed = np.empty(len(x0))
    for j in range(microbatches):
        for block, age in zip(blocks, ages, strict=True):
            mixed[block] = y[j - min(j, age), block]
        y[j + 1] = y[j] - gamma * gradient(j, mixed)
    return y


def replay(events: Sequence[Event], gradient: Gradient, x0: np.ndarray, stages: int, gamma: float) -> np.ndarray:
    """The same by executing ``events`` of a schedule that steps after every microbatch, in the order of time.

    A forward reads its stage's block as it is at that moment, whatever version its event states; a step updates the
    block. Returns y_0 .. y_M, row m holding every block after m of its updates. Raises InputError where a block is
    updated out of order.
    """
    blocks = stage_slices(len(x0), stages)
    x = x0.astype(float)
    microbatches = 1 + max(e.microbatch for e in events)
    y = np.empty((microbatches + 1, len(x0)))
    y[0] = x0
    mixed: dict[int, np.ndarray] = {}
    gradients: dict[int, np.ndarray] = {}
    updates = [0] * stages
    # A read happens at the start of a forward, an update at the end of a step.
    order = sorted(
        (e for e in events if e.kind in ("forward", "step")),
        key=lambda e: (e.start, e.kind == "forward") if e.kind == "forward" else (e.end, False),
    )
    for e in order:
        block, j = blocks[e.stage], e.microbatch
        if e.kind == "forward":
            mixed.setdefault(j, np.empty(len(x0)))[block] = x[block]
            continue
        if j not in gradients:
            gradients[j] = gradient(j, mixed[j])
        if j != updates[e.stage]:
            raise InputError(f"stage {e.stage} updates with microbatch {j} after {updates[e.stage]} updates")
        x[block] -= gamma * gradients[j][block]
        updates[e.stage] += 1
        y[updates[e.stage], block] = x[block]
    return y
