"""One step of a linear method on one mode, as a matrix and a noise vector. Kind: exact.

State: x_k, ..., x_{k-n}, then V_k = -eta m_k, then what the correction remembers (lag entries):
    error-feedback           U_{k-1}, ..., U_{k-lag}
    gradient-extrapolation   e_{k-1} = -eta g_{k-1}
    weight-prediction        nothing more: n = tau + lag instead of n = tau
The recursion is that of `theory.quadratic.method`; every quantity of it is written here as a row over (state, noise),
the last entry being the coefficient of eta s xi_k.
Checked by tests/theory/test_quadratic_method.py (against a literal transcription, path by path).
Without noise the state moves by A; xi_i moves the later states by A^0 b, A b, A^2 b, ..., whatever i >= 1 is, so two
sequences of numbers per mode hold every covariance: what xi_0 adds, and what any later xi_i adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from theory.quadratic.method import QuadraticMethod


def recursion(method: QuadraticMethod, h: float | np.ndarray, first: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(A(h), b): the state's map and what one unit of eta s xi adds to it; shapes h.shape + (n, n) and (n,).

    h: any real number, for curvature may be negative.

    first: step 0, which finds x_j = x_0 for every j and no memory: the gradient is that at x_0, the momentum starts as
    method.start says, and the correction remembers this step as all earlier ones.
    """
    step = np.asarray(h, dtype=np.float64)
    size, c, lag, tau = method.size, method.c, method.lag, int(method.tau)
    v = method.ages  # index of V_k; x before, memory after
    unit = np.eye(size, size + 1)

    point = unit[0] if first else unit[tau]  # where the gradient is taken
    if method.correction == "weight-prediction" and not first:
        point = point + c * (unit[tau] - unit[tau + lag])  # lag = 1: x_{k-tau} + c U_{k-tau-1}
    fresh = -step[..., None] * point
    fresh[..., size] = -1.0
    used = fresh
    if method.correction == "gradient-extrapolation" and not first:
        used = fresh + c * (fresh - unit[v + lag])
    if first:
        momentum = used * (method.gain if method.start == "zero" else 1.0)
    else:
        momentum = method.beta * unit[v] + method.gain * used
    update = method.beta * momentum + method.gain * used if method.nesterov else momentum
    move = update
    if method.correction == "error-feedback" and not first:
        move = update + c * (update - unit[v + lag])

    rows = np.zeros((*step.shape, size, size + 1))
    rows[..., 0, :] = unit[0] + move
    rows[..., 1:v, :] = unit[: v - 1]
    rows[..., v, :] = momentum
    if size > v + 1:
        rows[..., v + 1, :] = update if method.correction == "error-feedback" else fresh
        rows[..., v + 2 :, :] = rows[..., v + 1 : v + 2, :] if first else unit[v + 1 : size - 1]
    noise = rows[..., size].reshape(-1, size)[0]  # the same for every h
    return np.ascontiguousarray(rows[..., :size]), noise


def responses(
    method: QuadraticMethod, h: float | np.ndarray, start: float | np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, first, later), each (steps + 1,) + h.shape, for any real h; not finite where the method leaves float64.

    mean: x_k from x_0 = start without noise. first[k]: what one unit of eta s xi_0 adds to x_k. later[j]: what one
    unit of eta s xi_i, i >= 1, adds to x_{i+j}.
    """
    step = np.asarray(h, dtype=np.float64)
    out = np.zeros((3, steps + 1, *step.shape))
    out[0, 0] = start
    if steps:
        matrix, noise = recursion(method, step, first=True)
        later, later_noise = recursion(method, step)
        states = np.empty((*step.shape, method.size, 3))  # columns: mean, after xi_0, after a later xi
        states[..., 0] = matrix[..., : method.ages].sum(axis=-1) * np.asarray(start, dtype=np.float64)[..., None]
        states[..., 1], states[..., 2] = noise, later_noise
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(1, steps + 1):
                out[:, k] = np.moveaxis(states[..., 0, :], -1, 0)
                states = later @ states
    return out[0], out[1], out[2]
