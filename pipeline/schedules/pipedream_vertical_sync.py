"""PipeDream with vertical sync (Harlap et al. 2018): a microbatch reads the first stage's version at every stage.

All stages then have the delay of the first, and every stage keeps as many versions.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.pipedream import PipeDream


@dataclass(frozen=True)
class PipeDreamVerticalSync(PipeDream):
    """With one microbatch per step every gradient is S - 1 steps old."""

    name = "pipedream-vertical-sync"
    title = "PipeDream, vertical sync"

    def version(self, stage: int, microbatch: int) -> int:
        return super().version(0, microbatch)

    def versions_stored(self, stage: int) -> int:
        return super().versions_stored(0)
