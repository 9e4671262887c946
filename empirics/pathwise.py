"""The proofs' steps evaluated along runs on matrix least squares (`lmo_path`).

`realised` turns a path into the quantities that `theory.lmo.PATHWISE` asks for. `utilisation` is left/right of
such a step after the terms that are the objective's progress ("objective", "gradient", "initial") are moved to
the left: what remains on the right is what the lemma pays for, so that a constant that is 5 % too small shows.
"""

from __future__ import annotations

import numpy as np

from empirics.lmo_path import Path, Setting
from empirics.norms import get_norm
from theory.inequality import Inequality
from theory.lmo import PATHWISE

PROGRESS_TERMS = ("objective", "gradient", "initial")
# Float64 sums along a run: the left side may be off by this share of the largest number it was computed from.
SLACK = 1e-13
# What a utilisation may exceed 1 by: the same round-off against the smallest right side of a run.
ROUND_OFF = 1e-10


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
