"""PipeDream-2BW (Narayanan et al. 2021): asynchronous 1F1B, two weight versions, delay 1 at any depth.

Batch k reads version k - 1 at every stage, so W(k+1) = W(k) + U(grad f(W(k-1))). Batches 0 and 1 both read W(0). Two
versions suffice iff m >= S - 1: the first forward of batch k + 2 must not come before step k.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class PipeDream2BW(Schedule):
    """Delay exactly 1 after the first batch, two stored versions."""

    name = "pipedream-2bw"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.microbatches < self.stages - 1:
            raise InputError(
                f"microbatches = {self.microbatches}: pipedream-2bw with {self.stages} stages needs at least "
                f"{self.stages - 1} (with fewer, two weight versions do not cover the microbatches in flight)"
            )

    def version(self, stage: int, microbatch: int) -> int:
        return max(microbatch // self.microbatches - 1, 0)

    def versions_stored(self, stage: int) -> int:
        return 2
