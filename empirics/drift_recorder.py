"""What any optimizer's run has of what the proofs speak of, relative and in the Frobenius norm: an observer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from empirics.estimators.model_norm import EuclideanNorm
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.weights import minus
from empirics.virtual_iterate import Feedback, VirtualIterate

#: Its own dual.
FROBENIUS = EuclideanNorm()


def _share(part: float, whole: float) -> float:
    """part / whole; NaN where the whole is 0: there is nothing to compare with."""
    return part / whole if whole else math.nan


def momentum_of(optimizer: Any, parameters: Mapping[str, Tensor], step: int) -> dict[str, Tensor]:
    """First moment of each parameter after ``step`` + 1 gradients: LMO, Muon, SGD (buffers) or AdamW (debiased)."""
    moments = {}
    for name, p in parameters.items():
        state = optimizer.state[p]
        if "exp_avg" in state:
            beta1 = next(g["betas"][0] for g in optimizer.param_groups if any(q is p for q in g["params"]))
            moments[name] = state["exp_avg"] / (1 - beta1 ** (step + 1))
        else:
            moments[name] = state["momentum" if "momentum" in state else "momentum_buffer"]
    return moments


@dataclass
class DriftRecorder:
    """Relative drift, momentum lag and delay bias of a run.

    z_k is x_k, or under error feedback, which is what ``feedback`` is for, the virtual iterate y_k:
    drift ||U_k - U_{k-1}|| / ||U_k|| at every step; at every ``every``-th step, with f the objective,
    delay_bias ||grad f(read) - grad f(z_k)|| / ||grad f(z_k)|| and momentum_lag ||m_{k+1} - grad f(z_k)|| / same.
    """

    objective: FiniteObjective
    every: int
    feedback: Feedback | None = None
    drift: list[float] = field(default_factory=list)
    delay_bias: list[float] = field(default_factory=list)
    momentum_lag: list[float] = field(default_factory=list)
    _previous: dict[str, Tensor] | None = None

    def __post_init__(self) -> None:
        self._virtual = None if self.feedback is None else VirtualIterate(self.feedback)

    def __call__(self, state: Any) -> None:
        U, previous = state.update, self._previous
        if previous is not None:
            self.drift.append(_share(FROBENIUS.norm(minus(U, previous)), FROBENIUS.norm(U)))
            if state.k % self.every == 0:
                z = state.x if self._virtual is None else self._virtual.of(state.x)
                _, at_z = self.objective.value_and_gradient(z)
                _, at_read = self.objective.value_and_gradient(state.read)
                size = FROBENIUS.norm(at_z)
                m = momentum_of(state.optimizer, state.parameters, state.k)
                self.delay_bias.append(_share(FROBENIUS.norm(minus(at_read, at_z)), size))
                self.momentum_lag.append(_share(FROBENIUS.norm(minus(m, at_z)), size))
        if self._virtual is not None:
            self._virtual.add(U)
        self._previous = U
