"""Runs of the real optimizer code on matrix least squares: LMO inside Delayed (and ErrorFeedback), as a path.

`walk` yields one update after the other, `record` keeps them; nothing on the path is computed here.
Indices follow the theory: update k makes x_{k+1} from m_{k+1}; without correction k = 0..K-1, with error feedback
K + 1 updates are made and everything is evaluated at y_k for k = 1..K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from empirics.errors import InputError
from empirics.norms import get_norm
from empirics.problems.matrix_least_squares import MatrixLeastSquares
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import FORMS, ErrorFeedback
from pipeline.optim.lmo import LMO, lmo_direction


@dataclass(frozen=True)
class Setting:
    """One run: delay tau, correction "none" or "error-feedback" with its form, step eta, injection alpha,
    noise level sigma (E ||n||_F^2 = sigma^2), K steps of the theorem, norm of empirics.norms; nesterov: its direction.
    """

    name: str
    tau: int
    eta: float
    alpha: float
    K: int
    sigma: float = 0.0
    correction: str = "none"
    form: str = "extrapolate"
    norm: str = "spectral"
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.correction not in ("none", "error-feedback"):
            raise InputError(f"correction: {self.correction!r}; allowed are none, error-feedback")
        if self.form not in FORMS:
            raise InputError(f"form: {self.form!r}; allowed are {', '.join(FORMS)}")
        least = 1 if self.correction == "error-feedback" else 0
        if isinstance(self.tau, bool) or not isinstance(self.tau, int) or self.tau < least:
            raise InputError(f"tau: {self.tau!r}; allowed is an integer >= {least} for correction {self.correction}")
        if isinstance(self.K, bool) or not isinstance(self.K, int) or self.K < 1:
            raise InputError(f"K: {self.K!r}; allowed is an integer >= 1")
        if not 0 < self.eta < math.inf or not 0 < self.alpha <= 1 or not 0 <= self.sigma < math.inf:
            raise InputError(
                f"eta, alpha, sigma: {self.eta!r}, {self.alpha!r}, {self.sigma!r}; "
                "allowed are eta > 0, 0 < alpha <= 1, sigma >= 0"
            )
        get_norm(self.norm)

    @property
    def updates(self) -> int:
        """Optimizer updates of the run."""
        return self.K + (1 if self.correction == "error-feedback" else 0)


def build(parameters: list[torch.nn.Parameter], setting: Setting) -> tuple[Delayed, LMO]:
    """The real optimizer of a setting, and the LMO inside it."""
    lmo = LMO(parameters, lr=setting.eta, alpha=setting.alpha, norm=setting.norm, nesterov=setting.nesterov)
    if setting.correction == "none":
        return Delayed(lmo, setting.tau), lmo
    return Delayed(ErrorFeedback(lmo, setting.tau, setting.form), setting.tau), lmo


@dataclass(frozen=True)
class Path:
    """What a run left behind; N updates, matrices of shape [rows, cols].

    x [N+1], y [N+1] (virtual iterates; x itself without correction), m [N] (m[k] is the theory's m_{k+1}), d [N]
    (direction of update k), taken [N] (the point where the gradient of update k was taken), noise [N], m0.
    """

    problem: MatrixLeastSquares
    setting: Setting
    x: np.ndarray
    y: np.ndarray
    m: np.ndarray
    d: np.ndarray
    taken: np.ndarray
    noise: np.ndarray
    m0: np.ndarray


def record(
    problem: MatrixLeastSquares,
    setting: Setting,
    noise: np.ndarray,
    x0: np.ndarray | None = None,
    m0: np.ndarray | None = None,
) -> Path:
    """Run the optimizer. noise [N, rows, cols]: added to the gradient of step k.

    x0, m0: start and first momentum, zero by default. Raises InputError for shapes that do not fit.
    """
    x, y, m, d, taken, start, momentum = [], [], [], [], [], None, None
    for step in walk(problem, setting, noise, x0, m0):
        if start is None:
            start, momentum = step.x, step.momentum_before
            x, y = [start], [start]
        taken.append(step.taken)
        x.append(step.x_next)
        y.append(step.x_next if setting.correction == "none" else step.virtual())
        m.append(step.momentum.copy())
        a, source = setting.alpha, step.momentum
        source = (1 - a) * source + a * step.gradient if setting.nesterov else source
        d.append(lmo_direction(torch.from_numpy(source), setting.norm).numpy())
    assert momentum is not None
    return Path(problem, setting, np.array(x), np.array(y), np.array(m), np.array(d), np.array(taken), noise, momentum)


@dataclass(frozen=True)
class Walked:
    """Update k as it has just been made: weights before and after, where the gradient was taken, the gradient with its
    noise, U_k, the momentum before (m_0 only) and after (a view of the optimizer's own); virtual() is y_{k+1}."""

    k: int
    x: np.ndarray
    x_next: np.ndarray
    taken: np.ndarray
    gradient: np.ndarray
    update: np.ndarray
    momentum: np.ndarray
    momentum_before: np.ndarray | None
    virtual: Callable[[], np.ndarray]


def walk(
    problem: MatrixLeastSquares,
    setting: Setting,
    noise: np.ndarray,
    x0: np.ndarray | None = None,
    m0: np.ndarray | None = None,
) -> Iterator[Walked]:
    """The run of `record`, one update after the other; nothing of it is kept here."""
    N, shape = setting.updates, problem.shape
    if noise.shape != (N, *shape):
        raise InputError(f"noise: shape {noise.shape}; allowed is {(N, *shape)}")
    start = np.zeros(shape) if x0 is None else np.asarray(x0, dtype=float).reshape(shape)
    momentum = np.zeros(shape) if m0 is None else np.asarray(m0, dtype=float).reshape(shape)
    p = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer, lmo = build([p], setting)
    lmo.state[p]["momentum"] = torch.from_numpy(momentum.copy())
    x = start
    points = {0: start}  # x_k by k, as long as a gradient will be taken there
    for k in range(N):
        taken = p.detach().numpy()
        at = next((known for known in points.values() if np.array_equal(known, taken)), None)
        at = taken.copy() if at is None else at
        gradient = problem.grad(at) + noise[k]
        p.grad = torch.from_numpy(gradient)
        optimizer.step()
        x_next = optimizer.newest()[0].detach().numpy().copy()
        base = optimizer.base
        update = base.history[p][-1].numpy().copy() if isinstance(base, ErrorFeedback) else x_next - x

        def virtual() -> np.ndarray:
            return np.asarray(optimizer.virtual_parameters()[0].numpy())

        m = lmo.state[p]["momentum"].numpy()
        yield Walked(k, x, x_next, at, gradient, update, m, momentum if k == 0 else None, virtual)
        x = points[k + 1] = x_next
        points.pop(k - setting.tau, None)
