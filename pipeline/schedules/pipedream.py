"""PipeDream with weight stashing (Harlap et al. 2018): asynchronous 1F1B, no flush, no vertical sync.

A forward reads the newest version its stage has; the backward of the same microbatch reads the same, stashed version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class PipeDream(Schedule):
    """With one microbatch per step the gradient of stage s is S - 1 - s steps old."""

    name = "pipedream"
    title = "PipeDream, weight stashing"
    reference = "Harlap et al. 2018"
    default_microbatches: ClassVar[int | None] = 1

    def version(self, stage: int, microbatch: int) -> int:
        # When stage s starts the forward of microbatch j, the backward of j - (S - 1 - s) - 1 is its latest.
        backwards_done = max(0, microbatch - (self.stages - 1 - stage))
        return backwards_done // self.microbatches

    def versions_stored(self, stage: int) -> int:
        # Just after a step S - s - 1 microbatches are in flight; they read versions floor(i/m) of as many consecutive
        # i, and the newest version comes on top.
        return -(-(self.stages - stage - 1) // self.microbatches) + 1
