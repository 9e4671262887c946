"""ZB-H1 (Qi et al. 2024, zero-bubble pipeline parallelism): 1F1B with the weight gradient split off and put later.

``backward`` is the gradient of the inputs alone, so the stage before can go on at once; the weight gradient of
microbatch n - s follows backward n at stage s and the rest fills the end of the batch. Synchronous, delay 0; no more
activations than 1F1B has at its first stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.schedules.base import Action
from pipeline.schedules.one_f_one_b import OneFOneB


@dataclass(frozen=True)
class ZBH1(OneFOneB):
    """The bubble shrinks to (S - 1)(F + B - W), B the gradient of the inputs, W of the weights.

    That is for m >= S and W <= min(F, B); otherwise read the clock.
    """

    name = "zb-h1"
    title = "ZB-H1"
    reference = "Qi et al. 2024"
    splits_backward = True

    def in_flight(self, stage: int) -> int:
        """Between forward and weight gradient: S at every stage, as s weight gradients wait there."""
        return min(self.stages, self.microbatches)

    def actions(self, device: int, steps: int) -> Iterator[Action]:
        m = self.microbatches
        for first in range(0, m * steps, m):
            plain = OneFOneB(self.stages, m).actions(device, 1)
            for kind, n, *_ in plain:
                if kind == "forward":
                    yield self.forward(device, first + n)
                elif kind == "backward":
                    yield self.backward(device, first + n)
                    if n >= device:
                        yield self.weight(device, first + n - device)
            for n in range(max(m - device, 0), m):
                yield self.weight(device, first + n)
            yield self.step(device, first + m - 1)
