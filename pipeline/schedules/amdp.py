"""AMDP (arXiv 2605.29664): S/2 pipelines in alternating directions over the same S devices, one update per window.

Pipeline p puts stage i on device (2p + i) mod S for even p and (2p + 1 - i) mod S for odd p, so every device holds one
stage of every pipeline: half the model. First and last stages lie on the devices 0 and 3 mod 4, the edge devices. A
cycle is S microbatches, two per pipeline. The copies of a stage sum their gradients once per window of m microbatches;
the step stands directly before the first backward of the next window, so that each gradient of a window enters that
window's update, and forwards of the next window that came earlier have read weights one step older than their
backwards do: a gap of at most one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline.schedules.base import Action, Schedule, multiple_of, positive_integer


@dataclass(frozen=True)
class AMDP(Schedule):
    """S a multiple of 4, m (the window) a multiple of S; no old version is stored."""

    name = "amdp"
    title = "AMDP"
    reference = "arXiv 2605.29664"
    shares_weights = True

    def __post_init__(self) -> None:
        super().__post_init__()
        multiple_of("stages", self.stages, 4, self.name)
        multiple_of("microbatches", self.microbatches, self.stages, f"{self.name} with {self.stages} stages")

    @property
    def pipelines(self) -> int:
        return self.stages // 2

    def pipeline_of(self, microbatch: int) -> int:
        return microbatch % self.stages % self.pipelines

    def device_of(self, stage: int, pipeline: int = 0) -> int:
        return (2 * pipeline + (stage if pipeline % 2 == 0 else 1 - stage)) % self.stages

    def version(self, stage: int, microbatch: int) -> int:
        k, within = divmod(microbatch, self.microbatches)
        if k == 0 or within >= self.stages:
            return k
        device = self.device_of(stage, self.pipeline_of(microbatch))
        forwards, _ = _cycle(self.stages, device)
        # On an edge device the last forward of the cycle comes after the step.
        return k if _is_edge(device) and forwards[-1] == within else k - 1

    def backward_version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1

    def in_flight(self, stage: int) -> int:
        """Of one copy: the two microbatches of its pipeline, and at stage 0 a third that the last cycle left."""
        return 3 if stage == 0 else 1 if stage == self.stages - 1 else 2

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        positive_integer("steps", steps)
        S, m = self.stages, self.microbatches
        forwards, backwards = _cycle(S, device)
        for first in range(0, m * steps, S):
            f = [self.forward(self._stage(device, j), first + j) for j in forwards]
            b = [self.backward(self._stage(device, j), first + j) for j in backwards]
            new_window = first % m == 0 and first > 0
            if _is_edge(device):
                yield from f[:2]
                if first > 0:
                    yield self.backward(self._stage(device, backwards[-1]), first - S + backwards[-1])
                    if new_window:
                        yield from self._reduces(device, first - 1)
                yield from f[2:-1]
                if new_window:
                    yield from self._steps(device, first - 1)
                yield b[0]
                yield f[-1]
                yield from b[1:-1]
            else:
                yield from f
                if new_window:
                    yield from self._steps(device, first - 1)
                yield from b
                if (first + S) % m == 0:
                    yield from self._reduces(device, first + S - 1)
        last = m * steps - 1
        if _is_edge(device):
            yield self.backward(self._stage(device, backwards[-1]), last + 1 - S + backwards[-1])
            yield from self._reduces(device, last)
        yield from self._steps(device, last)

    def _stage(self, device: int, j: int) -> int:
        return _stage_on(self.stages, device, self.pipeline_of(j))

    # Pipeline 0's copy, the one that really steps, comes first: who waits for another device's copy has done its own.

    def _reduces(self, device: int, last: int) -> Iterator[Action]:
        k = self.step_of(last)
        for p in range(self.pipelines):
            yield Action("reduce", last, k, _stage_on(self.stages, device, p), k, p)

    def _steps(self, device: int, last: int) -> Iterator[Action]:
        for p in range(self.pipelines):
            yield self.step(_stage_on(self.stages, device, p), last, p)


def _is_edge(device: int) -> bool:
    return device % 4 in (0, 3)


def _stage_on(S: int, device: int, p: int) -> int:
    """Stage of pipeline p that ``device`` holds."""
    return (device - 2 * p if p % 2 == 0 else 2 * p + 1 - device) % S


@lru_cache(maxsize=1024)
def _cycle(S: int, device: int) -> tuple[list[int], list[int]]:
    """Forward and backward order of a device: microbatches of the first cycle, j and j + P of pipeline j.

    Both microbatches of a pipeline enter in slots 0 and 1 and advance a stage a slot; a device serves by arrival, a
    pipeline's first microbatch before a second, then the lower pipeline. The backward order is the forward order of
    the neighbouring pipelines.
    """
    P = S // 2
    arrivals = []
    for p in range(P):
        arrivals += [(_stage_on(S, device, p) + second, second, p) for second in (0, 1)]
    forwards = [p + P * second for _, second, p in sorted(arrivals)]
    neighbour = [(p - 1) % P if p % 2 == 0 else (p + 1) % P for p in range(P)]
    backwards = [neighbour[j % P] + P * (j // P) for j in forwards]
    return forwards, backwards
