"""Observers of a run: what the proofs speak of, measured step by step on the oracle.

:class:`DriftRecorder` measures any optimizer in the Frobenius norm; :class:`TheoremRecorder` measures a run of the LMO
optimizer in the run's own norm, with exact full gradients of a finite objective at sampled steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from empirics.estimators.model_norm import EuclideanNorm, ModelNorm
from empirics.estimators.objective import FiniteObjective
from empirics.estimators.weights import minus

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
    """Relative drift, momentum lag and delay bias of a run, in the Frobenius norm.

    With z_k = x_k, or z_k = y_k = x_k - U_{k-1} under error feedback:
    drift ||U_k - U_{k-1}|| / ||U_k|| at every step; at every ``every``-th step, with f the objective,
    delay_bias ||grad f(read) - grad f(z_k)|| / ||grad f(z_k)|| and momentum_lag ||m_{k+1} - grad f(z_k)|| / same.
    """

    objective: FiniteObjective
    every: int
    corrected: bool
    drift: list[float] = field(default_factory=list)
    delay_bias: list[float] = field(default_factory=list)
    momentum_lag: list[float] = field(default_factory=list)
    _previous: dict[str, Tensor] | None = None

    def __call__(self, state: Any) -> None:
        U, previous = state.update, self._previous
        if previous is not None:
            self.drift.append(_share(FROBENIUS.norm(minus(U, previous)), FROBENIUS.norm(U)))
            if state.k % self.every == 0:
                z = minus(state.x, previous) if self.corrected else state.x
                _, at_z = self.objective.value_and_gradient(z)
                _, at_read = self.objective.value_and_gradient(state.read)
                size = FROBENIUS.norm(at_z)
                m = momentum_of(state.optimizer, state.parameters, state.k)
                self.delay_bias.append(_share(FROBENIUS.norm(minus(at_read, at_z)), size))
                self.momentum_lag.append(_share(FROBENIUS.norm(minus(m, at_z)), size))
        self._previous = U


@dataclass
class TheoremRecorder:
    """Everything the delayed-LMO theorem speaks of, in the run's own norm, at every ``every``-th step.

    objective must be the finite sum that the run samples from, with ``batch`` sequences a step drawn with
    replacement. Per sampled step k: k, f_now, f_next, grad_norm (dual norm of grad f(x_k)), error_norm (of m_{k+1} -
    grad f(x_k)), delay_bias (of grad f(x_{(k-tau)+}) - grad f(x_k)), smoothness (dual norm of the gradient's change
    over step k, over the step's norm), step_norm; sigma at every fourth sample, by enumeration.
    """

    objective: FiniteObjective
    norm: ModelNorm
    every: int
    batch: int
    rows: list[dict[str, float]] = field(default_factory=list)
    start_error: float = math.nan
    rho: float = math.nan

    def __call__(self, state: Any) -> None:
        if state.k % self.every:
            return
        f_now, now = self.objective.value_and_gradient(state.x)
        f_next, following = self.objective.value_and_gradient(state.x_next)
        _, at_read = self.objective.value_and_gradient(state.read)
        if state.k == 0:
            self.start_error = self.norm.dual(now)  # m_0 = 0
            self.rho = self.norm.rho(state.x)
        m = momentum_of(state.optimizer, state.parameters, state.k)
        step_norm = self.norm.norm(minus(state.x_next, state.x))
        row = {
            "k": float(state.k),
            "f_now": f_now,
            "f_next": f_next,
            "grad_norm": self.norm.dual(now),
            "error_norm": self.norm.dual(minus(m, now)),
            "delay_bias": self.norm.dual(minus(at_read, now)),
            "step_norm": step_norm,
            "smoothness": _share(self.norm.dual(minus(following, now)), step_norm),
        }
        if len(self.rows) % 4 == 0:
            row["sigma"] = math.sqrt(self.objective.sequence_variance(state.x) / self.batch)
        self.rows.append(row)
