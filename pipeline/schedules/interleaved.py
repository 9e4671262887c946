"""Interleaved 1F1B (Narayanan et al. 2021b, Megatron-LM): v model chunks a device, synchronous, a v-th of the bubble.

The model is cut into v S stages; device d holds stages d, d + S, ..., d + (v - 1) S. Microbatches advance in groups of
S: a group passes a device's first chunk, then its second, and so on; backwards take the chunks in reverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.schedules.base import Action, Schedule, multiple_of, positive_integer


@dataclass(frozen=True)
class Interleaved(Schedule):
    """v = ``chunks`` model chunks a device; S must divide m."""

    chunks: int = 2

    name = "interleaved-1f1b"
    title = "interleaved 1F1B"
    reference = "Narayanan et al. 2021b (Megatron-LM)"
    flushes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("chunks", self.chunks)
        multiple_of("microbatches", self.microbatches, self.stages, f"{self.name} with {self.stages} stages")

    @property
    def model_stages(self) -> int:
        return self.chunks * self.stages

    def device_of(self, stage: int, pipeline: int = 0) -> int:
        return stage % self.stages

    def version(self, stage: int, microbatch: int) -> int:
        return self.step_of(microbatch)

    def versions_stored(self, stage: int) -> int:
        return 1

    def in_flight(self, stage: int) -> int:
        device, chunk = stage % self.stages, stage // self.stages
        # Pass n of the backwards follows pass n + ahead of the forwards.
        started = [0]
        for c, _ in self._passes():
            started.append(started[-1] + (c == chunk))
        ahead, total = self._ahead(device), len(started) - 1
        peak = done = 0
        for n, (c, _) in enumerate(self._passes(backward=True)):
            peak = max(peak, started[min(n + ahead + 1, total)] - done)
            done += c == chunk
        return peak

    def _ahead(self, device: int) -> int:
        """Warm-up forwards of a device, over all its chunks."""
        return min(2 * (self.stages - 1 - device) + (self.chunks - 1) * self.stages, self.chunks * self.microbatches)

    def _passes(self, backward: bool = False) -> list[tuple[int, int]]:
        """(chunk, microbatch within the batch) of every pass of a device, in order."""
        S, v = self.stages, self.chunks
        order = []
        for n in range(v * self.microbatches):
            chunk = n // S % v
            order.append((v - 1 - chunk if backward else chunk, n // (S * v) * S + n % S))
        return order

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        positive_integer("steps", steps)
        m, S = self.microbatches, self.stages
        forwards, backwards = self._passes(), self._passes(backward=True)
        ahead = self._ahead(device)
        for first in range(0, m * steps, m):
            next_forward = 0
            for n, (chunk, j) in enumerate(backwards):
                while next_forward < len(forwards) and next_forward <= n + ahead:
                    forward_chunk, i = forwards[next_forward]
                    yield self.forward(forward_chunk * S + device, first + i)
                    next_forward += 1
                yield self.backward(chunk * S + device, first + j)
            for chunk in range(self.chunks):
                yield self.step(chunk * S + device, first + m - 1)
