"""Runs of the real optimizer code on matrix least squares, and the proofs' steps evaluated along them.

`record` drives LMO inside Delayed (and ErrorFeedback) and keeps the path; nothing on the path is computed here.
`realised` turns a path into the quantities that `theory.lmo.PATHWISE` asks for. `utilisation` is left/right of
such a step after the terms that are the objective's progress ("objective", "gradient", "initial") are moved to
the left: what remains on the right is what the lemma pays for, so that a constant that is 5 % too small shows.

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
from theory.inequality import Inequality
from theory.lmo import PATHWISE

PROGRESS_TERMS = ("objective", "gradient", "initial")
# Float64 sums along a run: the left side may be off by this share of the largest number it was computed from.
SLACK = 1e-13
# What a utilisation may exceed 1 by: the same round-off against the smallest right side of a run.
ROUND_OFF = 1e-10


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


def discounted(values: np.ndarray, alpha: float, weight: float) -> np.ndarray:
    """weight sum_{i<=k} (1-alpha)^{k-i} values_i for every k, along the first axis."""
    out, total = np.empty_like(values), np.zeros_like(values[0])
    for k, value in enumerate(values):
        total = (1 - alpha) * total + weight * value
        out[k] = total
    return out


def realised(path: Path) -> dict[str, np.ndarray | float]:
    """The quantities of the theory on this path, per step (arrays [K]) or per run (numbers).

    Besides the names of theory.symbols: "f_scale" and "grad_scale", the largest objective and gradient norm.
    """
    s, problem, norm = path.setting, path.problem, get_norm(path.setting.norm)
    first = s.updates - s.K  # 0 without correction, 1 with it
    at = path.y[first : first + s.K + 1]  # the points where the theorem looks, K + 1 of them
    f, grad = problem.f(at), problem.grad(at)
    grad_norm = norm.dual(grad)
    error_norm = norm.dual(path.m[first:] - grad[:-1])
    L, E0 = problem.L(s.norm), float(norm.dual(path.m0 - problem.grad(path.x[0])))
    taken_grad = problem.grad(path.taken)
    values: dict[str, np.ndarray | float] = {
        "f_now": f[:-1],
        "f_next": f[1:],
        "grad_norm": grad_norm[:-1],
        "error_norm": error_norm,
        "delay_bias": norm.dual(taken_grad[first:] - grad[:-1]),
        "noise_norm": norm.dual(discounted(path.noise, s.alpha, s.alpha))[first:],
        "k": np.arange(first, first + s.K, dtype=float),
        "f_first": float(f[0]),
        "f_last": float(f[-1]),
        "mean_grad_norm": float(grad_norm[:-1].mean()),
        "mean_error_norm": float(error_norm.mean()),
        "eta": s.eta,
        "alpha": s.alpha,
        "tau": float(s.tau),
        "L": L,
        "E0": E0,
        "K": float(s.K),
        "f_scale": float(np.abs(problem.f(path.y)).max()),
        "grad_scale": float(norm.dual(problem.grad(path.y)).max()),
        "mean_momentum_norm": float(norm.dual(path.m[first:]).mean()),
        "mean_taken_norm": float(norm.dual(taken_grad[first:]).mean()),
        "mean_grad_norm_at_x": float(norm.dual(problem.grad(path.x[first : first + s.K])).mean()),
    }
    if first:
        delta = norm.norm(at[:-1] - path.taken[first:]) / s.eta
        values["delta"] = delta
        values["delta_mean_weighted"] = discounted(delta, s.alpha, s.alpha)
        values["dbar"] = float(delta.mean())
    return values


def sides(inequality: Inequality, values: dict[str, np.ndarray | float]) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) per step [K] (or [1] for a statement about the run), progress terms moved to the left.

    The left side is reduced by SLACK times the largest number it was computed from.
    """
    left = np.atleast_1d(np.asarray(inequality.evaluate(values)[0], dtype=float))
    right = np.zeros_like(left)
    for name, term in inequality.evaluate_terms(values).items():
        if name in PROGRESS_TERMS:
            left = left - np.asarray(term)
        else:
            right = right + np.asarray(term)
    scale = float(values["grad_scale"])
    if "objective" in inequality.terms:
        scale = float(values["f_scale"]) + float(values["eta"]) * scale
    elif "initial" in inequality.terms:
        scale += float(values["f_scale"]) / (float(values["eta"]) * float(values["K"]))
    left = left - np.sign(left) * np.minimum(np.abs(left), SLACK * scale)
    return left, np.broadcast_to(right, left.shape)


def utilisation(inequality: Inequality, values: dict[str, np.ndarray | float]) -> np.ndarray:
    """left/right of `sides`; where the right side is not positive: 0 if left <= right holds, inf if not."""
    left, right = sides(inequality, values)
    out = np.full(left.shape, np.inf)
    np.divide(left, right, out=out, where=right > 0)
    return np.where((right <= 0) & (left <= right), 0.0, out)


def inequalities_of(setting: Setting) -> dict[str, Inequality]:
    """The proof's steps that apply to a setting: the plain ones, or those at the virtual iterate."""
    corrected = setting.correction == "error-feedback"
    return {name: step for name, step in PATHWISE.items() if name.startswith("ef-") == corrected}


def identity_errors(path: Path) -> dict[str, float]:
    """Equalities along a path, each as the largest error over steps and entries, relative to the largest entry.

    recursion   m_{k+1} = (1-alpha) m_k + alpha (grad f(x_{(k-tau)+}) + n_k), with x read from the path
    direction   norm(d_k) <= 1 and <m_{k+1}, d_k> = dual(m_{k+1})
    step        y_{k+1} = y_k - eta d_k, for k >= 1 and y_1 = x_0 + (tau-1) eta d_0 with error feedback
    """
    s, problem, norm = path.setting, path.problem, get_norm(path.setting.norm)
    N = s.updates
    stale = path.x[np.maximum(np.arange(N) - s.tau, 0)]
    source = problem.grad(stale) + path.noise
    before = np.concatenate([path.m0[None], path.m[:-1]])
    recursion = np.abs(path.m - (1 - s.alpha) * before - s.alpha * source).max() / np.abs(source).max()
    dual = norm.dual(path.m)
    inner = (path.m * path.d).sum(axis=(-2, -1))
    direction = max(
        float(np.maximum(norm.norm(path.d) - 1.0, 0.0).max()), float(np.abs(inner - dual).max() / dual.max())
    )
    U = -s.eta * path.d
    expected = path.y[:-1] + U
    if s.correction == "error-feedback":
        expected[0] = path.x[0] - (s.tau - 1) * U[0]
    step = np.abs(path.y[1:] - expected).max() / max(float(np.abs(path.y).max()), s.eta)
    return {"recursion": float(recursion), "direction": direction, "step": float(step)}
