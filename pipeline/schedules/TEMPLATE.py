"""How to add a schedule: copy this file, change four things, and add the class to the list in ``__init__.py``.

Say here, in a few lines, what is special about the order and about the weights, and name the paper.

What follows from these lines by itself: the optimizer-step delays, the timeline with its bubble, the memory, the checks
of validity, the figure (``staleproof delays``, ``schedule``, ``compare``), and the real run if
:attr:`~pipeline.schedules.base.Schedule.runs_on_engine` is true (``staleproof train``). Two more witnesses are a closed
form in ``theory/delays/`` and the oracle's ages in ``pipeline/run.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.schedules.base import Action, Schedule


@dataclass(frozen=True)
class Template(Schedule):
    """PipeDream with every version one step older than it need be: a schedule nobody wants, complete in itself."""

    # 1. Its name on the command line, and its source.
    name = "template"
    title = "template"
    reference = "none"

    # 2. Which weight version each forward reads. The backward reads the same unless backward_version says otherwise.
    def version(self, stage: int, microbatch: int) -> int:
        backwards_done = max(0, microbatch - (self.stages - 1 - stage))
        return max(backwards_done // self.microbatches - 1, 0)

    # 3. How many versions that takes; the clock and the real run are held against it.
    def versions_stored(self, stage: int) -> int:
        return -(-(self.stages - stage - 1) // self.microbatches) + 2

    # 4. The order of each device. This is the base class's: one forward, one backward in turn, without a flush.
    def actions(self, device: int, steps: int) -> Iterator[Action]:
        m = self.microbatches
        forward = 0
        for backward in range(m * steps):
            while forward < m * steps and forward - backward < self.stages - device:
                yield self.forward(device, forward)
                forward += 1
            yield self.backward(device, backward)
            if (backward + 1) % m == 0:
                yield self.step(device, backward)
