"""LocalSGD over a pipeline: R replicas of the model stream through one S-stage pipeline and average once a round.

Microbatch n trains replica n mod R, and its forward waits for the backward of n - R at the same stage, the last that
trained the same replica: no delay. A round is H local steps of every replica, m = H R microbatches; then the pipeline
drains and each stage averages its R copies. Set-up of arXiv 2606.03498; the method: Stich 2019, Yu et al. 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.schedules.base import Action, Schedule, multiple_of, positive_integer


@dataclass(frozen=True)
class LocalSGD(Schedule):
    """``replicas``: R (0: S of them); m must be a multiple of R.

    A round is what the clock counts as a step. Steps and versions of actions count the local steps of one replica.
    """

    replicas: int = 0

    name = "localsgd"
    title = "LocalSGD on replicas"
    reference = "arXiv 2606.03498; Yu et al. 2019"
    flushes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replicas == 0:
            object.__setattr__(self, "replicas", self.stages)
        positive_integer("replicas", self.replicas)
        # A round is H local steps of every replica.
        multiple_of("microbatches", self.microbatches, self.replicas, f"{self.name} with {self.replicas} replicas")

    @property
    def local_steps(self) -> int:
        """H, local steps of a replica in a round."""
        return self.microbatches // self.replicas

    @property
    def pipelines(self) -> int:
        return self.replicas

    def step_of(self, microbatch: int) -> int:
        return microbatch // self.replicas

    def pipeline_of(self, microbatch: int) -> int:
        return microbatch % self.replicas

    def version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1

    def in_flight(self, stage: int) -> int:
        return min(self.stages - stage, self.replicas)

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        positive_integer("steps", steps)
        m = self.microbatches
        for first in range(0, m * steps, m):
            for action in self.one_forward_one_backward(device, first, first + m):
                if action.kind != "step":
                    yield action
                if action.kind == "backward":
                    yield self.step(device, action.microbatch, action.pipeline)
            last = first + m - 1
            yield Action("reduce", last, self.step_of(last), device, self.step_of(last) + 1)
