"""PipeDream with weight stashing (Harlap et al. 2018): asynchronous 1F1B, no flush, no vertical sync.

A forward reads the newest version its stage has; the backward of the same microbatch reads the same, stashed version.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class PipeDream(Schedule):
    """With one microbatch per step the gradient of stage s is S - 1 - s steps old."""

    microbatches: int = 1

    name = "pipedream"

    def version(self, stage: int, microbatch: int) -> int:
        # When stage s starts the forward of microbatch j, the backward of j - (S - 1 - s) - 1 is its latest.
        backwards_done = max(0, microbatch - (self.stages - 1 - stage))
        return backwards_done // self.microbatches

    def versions_stored(self, stage: int) -> int:
        # In flight: S - s consecutive microbatches, just before the backward of the oldest, which read versions
        # floor(i/m) of S - s consecutive i; plus nothing: the newest of them is the newest there is.
        return -(-(self.stages - stage - 1) // self.microbatches) + 1
