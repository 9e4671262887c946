"""Uniform delay: every gradient of every stage is tau optimizer steps old; asynchronous, no device idles.

Batch k reads version max(k - tau, 0) at every stage. A pipeline of S stages needs tau >= ceil((S - 1)/m); more is
allowed and keeps more versions, so the effect of the delay can be measured apart from the depth. tau = 1 is
PipeDream-2BW.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.schedules.base import Schedule


@dataclass(frozen=True)
class UniformDelay(Schedule):
    """Delay ``tau`` (None: the least that the depth allows) at every stage, tau + 1 versions."""

    tau: int | None = None

    name = "uniform"
    title = "uniform delay"
    reference = "derived here"

    def __post_init__(self) -> None:
        super().__post_init__()
        least = -(-(self.stages - 1) // self.microbatches)
        if self.tau is None:
            object.__setattr__(self, "tau", least)
        elif isinstance(self.tau, bool) or not isinstance(self.tau, int) or self.tau < least:
            raise InputError(
                f"tau = {self.tau!r}: {self.name} with {self.stages} stages and {self.microbatches} microbatches "
                f"allows integers of at least {least}"
            )

    def version(self, stage: int, microbatch: int) -> int:
        assert self.tau is not None
        return max(self.step_of(microbatch) - self.tau, 0)

    def versions_stored(self, stage: int) -> int:
        assert self.tau is not None
        return self.tau + 1
