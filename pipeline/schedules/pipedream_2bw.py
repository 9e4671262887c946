"""PipeDream-2BW (Narayanan et al. 2021): asynchronous 1F1B, two weight versions, delay 1 at any depth.

Batch k reads version k - 1 at every stage, so W(k+1) = W(k) + U(grad f(W(k-1))). Batches 0 and 1 both read W(0). Two
versions keep every device busy iff m >= S - 1: the first forward of batch k + 2 must not come before step k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline.errors import InputError
from pipeline.events import Kind
from pipeline.schedules.base import Action, Schedule, positive_integer

#: What to do with fewer than S - 1 microbatches a step.
POLICIES = ("refuse", "stall", "uniform")


@dataclass(frozen=True)
class PipeDream2BW(Schedule):
    """Delay exactly 1 after the first batch, two stored versions.

    policy: for m < S - 1. ``refuse``; ``stall``: forwards wait for their version, delay 1 and two versions but idle
    devices; ``uniform``: no idle device, delay ceil((S - 1)/m) and one more version than that.
    """

    policy: str = "refuse"

    name = "pipedream-2bw"
    title = "PipeDream-2BW"
    reference = "Narayanan et al. 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy not in POLICIES:
            raise InputError(f"policy = {self.policy!r}: allowed are {', '.join(POLICIES)}")
        if self.short and self.policy == "refuse":
            raise InputError(
                f"microbatches = {self.microbatches}: pipedream-2bw with {self.stages} stages needs at least "
                f"{self.stages - 1} (two weight versions do not cover more in flight), or a policy: stall, uniform"
            )

    @property
    def short(self) -> bool:
        """Whether m < S - 1, where the policy decides."""
        return self.microbatches < self.stages - 1

    @property
    def delay(self) -> int:
        """Optimizer-step delay of every stage after start-up."""
        return -(-(self.stages - 1) // self.microbatches) if self.short and self.policy == "uniform" else 1

    def version(self, stage: int, microbatch: int) -> int:
        return max(microbatch // self.microbatches - self.delay, 0)

    def versions_stored(self, stage: int) -> int:
        return self.delay + 1

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        if not self.short or self.policy == "uniform":
            return super().actions(device, steps)
        order = _stalling(self.stages, self.microbatches, positive_integer("steps", steps))[device]
        make = {"forward": self.forward, "backward": self.backward, "step": self.step}
        return (make[kind](device, j) for kind, j in order)


@lru_cache(maxsize=16)
def _stalling(S: int, m: int, steps: int) -> list[list[tuple[Kind, int]]]:
    """The order of each device for m < S - 1, found slot by slot with F = B = 1.

    A device runs a ready backward first, else the next forward if its version exists and fewer than S - s microbatches
    are in flight. Any fixed alternation of forwards and backwards would wait longer: max(m, S - 1) slots of F + B a
    step instead of (m + S - 1)/2.
    """
    total = m * steps
    order: list[list[tuple[Kind, int]]] = [[] for _ in range(S)]
    forwards, backwards = [0] * S, [0] * S  # done before this slot
    while backwards[0] < total:
        chosen: list[tuple[Kind, int] | None] = []
        for s in range(S):
            j, i = backwards[s], forwards[s]
            received = i > j if s == S - 1 else backwards[s + 1] > j
            version_exists = j // m >= i // m - 1
            if received:
                chosen.append(("backward", j))
            elif i < total and i - j < S - s and version_exists and (s == 0 or forwards[s - 1] > i):
                chosen.append(("forward", i))
            else:
                chosen.append(None)
        for s, action in enumerate(chosen):
            if action is None:
                continue
            order[s].append(action)
            if action[0] == "forward":
                forwards[s] += 1
            else:
                backwards[s] += 1
                if backwards[s] % m == 0:
                    order[s].append(("step", backwards[s] - 1))
    return order
