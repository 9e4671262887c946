"""GPipe (Huang et al. 2019): all forwards of a batch, then all its backwards, then the step. Synchronous, delay 0."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schedules.one_f_one_b import OneFOneB


@dataclass(frozen=True)
class GPipe(OneFOneB):
    """1F1B with all m forwards ahead: the same bubble, m microbatches of activations at every stage.

    Backwards run in the order of the forwards, as in torch's ScheduleGPipe.
    """

    name = "gpipe"
    title = "GPipe"
    reference = "Huang et al. 2019"

    def in_flight(self, stage: int) -> int:
        return self.microbatches
