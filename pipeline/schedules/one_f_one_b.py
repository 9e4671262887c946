"""1F1B with a flush (Narayanan et al. 2021, PipeDream-Flush; Fan et al. 2021, DAPPLE): synchronous, delay 0."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class OneFOneB(Schedule):
    """Every microbatch of batch k reads version k: the pipeline drains before each optimizer step."""

    name = "1f1b"
    title = "1F1B with a flush"
    reference = "Narayanan et al. 2021 (PipeDream-Flush); Fan et al. 2021 (DAPPLE)"
    flushes = True

    def version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1

    def in_flight(self, stage: int) -> int:
        return min(self.stages - stage, self.microbatches)
