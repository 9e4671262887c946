"""PipeMare (Yang et al. 2021): no flush, one weight version, and a forward and a backward share every slot.

Stage s (from 0) runs the forward of microbatch j and the backward of microbatch j - (2(S - s) - 1) in one slot, the
forward first; a step follows every m-th backward. So the forward of j reads version
floor(max(0, j - (2(S - s) - 1)) / m): on average (2(S - s) - 1)/m steps old, the figure of the paper, and in whole
steps its floor or its ceiling. Backwards read the newest weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class PipeMare(Schedule):
    """Forward delay (2(S - s) - 1)/m steps on average, backward delay 0."""

    name = "pipemare"
    title = "PipeMare"
    reference = "Yang et al. 2021"

    def version(self, stage: int, microbatch: int) -> int:
        return self.step_of(max(0, microbatch - self.in_flight(stage) + 1))

    def backward_version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1

    def in_flight(self, stage: int) -> int:
        return 2 * (self.stages - stage)
