"""f_* between two numbers that are proved, and with it Delta0 = f(x_0) - f_*.

Above: the smallest value that a solver (scipy's L-BFGS-B) has reached; it stands whether the solver converged or not.
Below: f(x) - ||grad f(x)||^2/(2 mu) at any x where f - mu/2 ||.||^2 is convex (Polyak 1963), or a floor that the
problem knows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.optimize import minimize

from empirics.constants import Constant, not_applicable
from empirics.estimators.weights import Weights, flatten, unflatten

if TYPE_CHECKING:
    from empirics.problems.interface import Problem

#: Relative round-off of a loss and of the gradient in the certificate.
ROUND_OFF = 1e-14


def minimise(
    problem: Problem, x0: Weights | None = None, most_steps: int = 500
) -> tuple[dict[str, torch.Tensor], float]:
    """(point, value): the best that the solver has visited. Deterministic."""
    like = problem.start() if x0 is None else dict(x0)
    best = (like, problem.value(like))

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        x = unflatten(torch.from_numpy(vector.copy()), like)
        f, g = problem.value_and_gradient(x)
        if f < best[1]:
            best = (x, f)
        return (f, flatten(g).numpy()) if math.isfinite(f) else (1e300, np.zeros_like(vector))

    minimize(
        objective,
        flatten(like).numpy(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": most_steps, "maxfun": 4 * most_steps, "ftol": 0.0, "gtol": 1e-12, "maxcor": 20},
    )
    return best


def f_star(problem: Problem, x0: Weights | None = None, most_steps: int = 500) -> Constant:
    """The bracket of f_*, with its round-off; the value is one that f takes. Not applicable without a lower end."""
    x, f = minimise(problem, x0, most_steps)
    if not math.isfinite(f):
        return not_applicable("f_star", f"f = {f} at the start", problem.name, "bound")
    below = []
    if problem.convexity > 0:
        _, g = problem.value_and_gradient(x)
        square = float((flatten(g) ** 2).sum())
        below.append((f - square / (2 * problem.convexity), f"strong convexity, mu = {problem.convexity:.3g}"))
    if problem.floor is not None:
        below.append(problem.floor)
    if not below:
        why = f"no lower bound of f is known; the smallest value found is {f:.6g}"
        return not_applicable("f_star", why, problem.name, "bound")
    low, why = max(below)
    slack = ROUND_OFF * max(abs(f), abs(low))
    note = f"above: reached by L-BFGS; below: {why}"
    end = min(low, f) - slack
    if problem.floor is not None and problem.floor[0] == 0:  # a sign, not a number that was computed
        end = min(max(end, 0.0), f)
    return Constant("f_star", f, "bound", problem.name, end, f + slack, method="bracket", note=note)


def initial_gap(name: str, f0: float, star: Constant) -> Constant:
    """Delta0 (or Delta1) at a point of value f0. Its value is the upper end: the one a bound needs."""
    if not star.applicable or star.low is None or star.high is None:
        return not_applicable(name, f"f_* is not known: {star.reason}", star.where, "bound")
    if not math.isfinite(f0):
        return not_applicable(name, f"f = {f0} at the start", star.where, "bound")
    low, high = max(f0 - star.high, 0.0), max(f0 - star.low, 0.0)
    how = "exact" if star.how == "exact" else "bound"
    return Constant(name, high, how, star.where, low, high, method="f(x_0) less the bracket of f_*", note=star.note)
