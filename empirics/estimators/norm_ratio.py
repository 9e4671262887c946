"""rho: the norm's own constant, and the effective one that the noise of a run really has.

dual(v) <= rho ||v||_F is attained by some v; noise of a run has less. The theorems use rho only through
E dual(n) <= rho sigma, so rho_effective = E dual(n) / sqrt(E ||n||_F^2) may stand in for it where it is known, for
noise of that batch size: it is no constant of the norm.
"""

from __future__ import annotations

import numpy as np

from empirics.constants import Constant, exact, from_interval, not_applicable, unfit
from empirics.errors import InputError
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import Weights, flatten
from empirics.statistics import Interval, bca_interval, log_jackknife_interval

#: From so many noises on the interval covers .93 to .975 (4000 repeats, level .95, sign geometry) under normal noise in
#: 1, 2, 5 and 50 dimensions and with the spectrum 1/i^2, uniform, exponential in 5, Student's t with 5 degrees of
#: freedom in 20, and normal of exponential size.
LEAST_NOISES = 32
#: var(||n||^2)/(E ||n||^2)^2, at most so much: 2 for a single normal number. A single exponential, Laplace or Student's
#: number has 3.6 to 8, and there the interval covers .82 to .93 even from 128.
MOST_SPREAD = 2.0


def rho(norm: AnyNorm, like: Weights) -> Constant:
    """Exact: the square root of the sum over layers of (weight rho_l)^2."""
    return exact("rho", norm.rho(like), "the model's norm")


def ratio_of(norm: AnyNorm, v: Weights) -> float:
    """dual(v)/||v||_F of one vector; InputError for v = 0."""
    size = float(flatten(v).norm())
    if size == 0.0:
        raise InputError("v: all entries are 0; allowed is a vector with a direction")
    return norm.dual(v) / size


def effective_ratio(duals: np.ndarray, frobenius: np.ndarray, axis: int = -1) -> np.ndarray:
    """mean(dual)/sqrt(mean(frobenius^2)) over samples."""
    return np.asarray(np.mean(duals, axis=axis) / np.sqrt(np.mean(np.square(frobenius), axis=axis)))


def effective_rho(
    duals: np.ndarray, frobenius: np.ndarray, where: str, level: float = 0.95, method: str = "jackknife"
) -> Constant:
    """From dual and Frobenius norms of independent noises n_i = g_i - grad f, each [n].

    method "jackknife" (of the logarithm, from LEAST_NOISES) or "bootstrap" (BCa, from 80). The note says where the
    interval may cover too seldom: for fewer, and where the sizes spread by more than MOST_SPREAD.
    """
    a, b = np.asarray(duals, dtype=float), np.asarray(frobenius, dtype=float)
    if method not in ("jackknife", "bootstrap"):
        raise InputError(f"method: {method!r}; allowed are jackknife, bootstrap")
    if a.shape != b.shape:
        raise InputError(f"frobenius: shape {b.shape} for {a.shape} of duals; allowed are pairs")
    if (why := unfit(a) or unfit(b)) is not None:
        return not_applicable("rho_effective", why, where, n=a.size)
    if method == "bootstrap":
        try:
            found = bca_interval(a, b, statistic=effective_ratio, level=level)
        except InputError as error:
            return not_applicable("rho_effective", str(error), where, n=a.size)
    else:
        found = _jackknife(a, b, level)
    return from_interval("rho_effective", found, where, "; ".join(["for noise of this batch size only", *_doubts(b)]))


def _doubts(frobenius: np.ndarray) -> list[str]:
    n, squares = frobenius.size, np.square(frobenius)
    out = [f"fewer than {LEAST_NOISES} noises, so the interval may cover too seldom"] if n < LEAST_NOISES else []
    spread = float(squares.var(ddof=1) / squares.mean() ** 2)
    if spread > MOST_SPREAD:
        out.append(f"few directions or heavy tails (spread {spread:.3g}), so the interval may cover too seldom")
    return out


def _jackknife(a: np.ndarray, b: np.ndarray, level: float) -> Interval:
    n = a.size
    left_out = (a.sum() - a) / (n - 1) / np.sqrt(((b**2).sum() - b**2) / (n - 1))
    return log_jackknife_interval(left_out, float(effective_ratio(a, b)), level, caution=2.0)
