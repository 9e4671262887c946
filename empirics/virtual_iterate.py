"""The virtual iterate y_k of error feedback, from the weights and the last updates of a run.

With x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}) it is y_k = x_k - c (U_{k-1} + ... + U_{k-lag}), a missing U_j (j < 0)
being U_0; so y_{k+1} = y_k + U_k for k >= 1. Nothing is looked at before: at k = 0 there is no y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Feedback:
    """Error feedback as x_{k+1} = x_k + U_k + coefficient (U_k - U_{k-lag})."""

    coefficient: float
    lag: int

    @classmethod
    def of(cls, tau: int, form: str, coefficient: float | None = None) -> Feedback:
        """That of a delay of tau >= 1 steps; coefficient None: the method's own."""
        own = cls(float(tau), 1) if form == "extrapolate" else cls(1.0, tau)
        return own if coefficient is None else cls(float(coefficient), own.lag)

    def __str__(self) -> str:
        past = "U_{k-1}" if self.lag == 1 else f"(U_{{k-1}} + ... + U_{{k-{self.lag}}})"
        return f"x_k - {past}" if self.coefficient == 1 else f"x_k - {self.coefficient:g} {past}"


@dataclass
class VirtualIterate:
    """y_k along a run: `add` each U_k, then `of` the weights after it."""

    feedback: Feedback
    _updates: list[Weights] = field(default_factory=list)

    def add(self, update: Weights) -> None:
        """U_k, of the next k."""
        self._updates = [*self._updates[1:], update] if self._updates else [update] * self.feedback.lag

    def of(self, x: Weights) -> dict[str, Tensor]:
        """y from x, both after the last update that was added."""
        c = self.feedback.coefficient
        return {name: value - c * sum(U[name] for U in self._updates) for name, value in x.items()}
