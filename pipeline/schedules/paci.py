"""PACI (arXiv 2606.07881): asynchronous 1F1B with local accumulation, one weight version, nothing stashed.

Forward and backward both read the newest weights, so a microbatch in flight across a step sees two versions: the
mismatch of S - 1 - s microbatches is accepted and bounded by accumulating over m of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.pipedream import PipeDream


@dataclass(frozen=True)
class PACI(PipeDream):
    """m microbatches are accumulated at each stage (the paper's a); the backward is never stale."""

    name = "paci"
    title = "PACI"
    reference = "arXiv 2606.07881"
    default_microbatches = None

    def backward_version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1
