"""Sign descent at tau = 2: which quadratics cannot attain Theorem 1s. Kind: upper bound, by linear programs.

For a periodic orbit of the method on f = x'Hx/2 (L = eta = 1) the proof of Theorem 1s is an identity:
    average of dn(grad f) = average over k of (1/2) sum_{|j| <= tau} <H d_k, d_{k+j}>,
so it is tau + 1/2 iff <H d_k, d_{k+j}> = 1 for all |j| <= tau. Since |H d_k|_1 <= 1, every coordinate i with
(H d_k)_i != 0 then keeps its sign over the 2 tau + 1 steps k - tau..k + tau. Take an orbit with x_{k+p} = -x_k. Each
coordinate steps through a wave of +-1 of half period p; f may be replaced by the average of its p shifted copies in p
times as many coordinates (same L, same gradient norms), and coordinates of one wave may be merged. So it is enough to
look at negacyclic H on the shifts of the waves that have a run of at least 2 tau + 1 equal signs: a linear program.
Statement (`bound`): tau = 2: p = 5, 6, 7: at most 2, 13/6, 1.436 with these waves, all below 5/2, so 5/2 is not
attained with these half periods; tau = 1: 3/2 at p = 4, attained. Constraints that are left out only raise the value.
Checked by tests/theory/tightness/test_sign_limits.py.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog

from theory.errors import InputError
from theory.tightness.lattice import check_natural

Wave = tuple[int, ...]
TOLERANCE = 1e-7
LARGEST = 16  # coordinates: sign vectors are enumerated


def eligible_waves(tau: int, half_period: int) -> list[Wave]:
    """Half periods of waves w(k + p) = -w(k) with a run of 2 tau + 1 equal signs, one of each shift class."""
    check_natural("tau", tau)
    p = check_natural("half_period", half_period, 1)
    found: set[Wave] = set()
    for wave in itertools.product((1, -1), repeat=p):
        full = wave + tuple(-w for w in wave)
        twice = full + full
        runs = (all(w == twice[k] for w in twice[k : k + 2 * tau + 1]) for k in range(2 * p))
        if 2 * tau + 1 <= 2 * p and any(runs):
            found.add(max(twice[k : k + p] for k in range(2 * p)))
    return sorted(found, reverse=True)


def _problem(tau: int, p: int, waves: list[Wave]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(basis of the symmetric negacyclic H, x_0, signs that the gradient at x_0 must have)."""
    n = p * len(waves)
    x, signs = [], []
    for wave in waves:
        full = wave + tuple(-w for w in wave)  # the step of coordinate i at k is full[k - i]
        level = np.concatenate([[0], np.cumsum(full)])[: 2 * p] - sum(wave) / 2
        x += [level[-i % (2 * p)] for i in range(p)]
        signs += [-full[(tau - i) % (2 * p)] for i in range(p)]
    basis: list[np.ndarray] = []
    for a, b, d in itertools.product(range(len(waves)), range(len(waves)), range(p)):
        H = np.zeros((n, n))
        for j in range(p):
            H[a * p + (j + d) % p, b * p + j] += 1 if j + d < p else -1
        H = H + H.T
        if H.any() and not any(np.array_equal(H, other) or np.array_equal(H, -other) for other in basis):
            basis.append(H)
    return np.array(basis), np.array(x, dtype=float), np.array(signs, dtype=float)


def bound(tau: int, half_period: int) -> float:
    """The largest dn(grad f)/(L eta) with eligible waves; 0 without any. Raises InputError beyond 16 coordinates."""
    waves = eligible_waves(tau, half_period)
    n = half_period * len(waves)
    if n > LARGEST:
        raise InputError(f"half_period={half_period}: {n} coordinates; at most {LARGEST} are admitted")
    if not waves:
        return 0.0
    basis, x, signs = _problem(tau, half_period, waves)
    gradient = basis @ x  # (len(basis), n)
    corners = 1.0 - 2.0 * (np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1)
    rows, limits = list(-(signs * gradient).T), [0.0] * n
    while True:
        result = linprog(-gradient @ signs, np.array(rows), limits, bounds=(-1, 1), method="highs")
        product = corners @ np.tensordot(result.x, basis, 1)
        values = np.abs(product).sum(axis=1)
        if values.max() <= 1 + TOLERANCE:
            return -float(result.fun)
        for worst in np.argsort(-values)[:20]:
            other = np.where(product[worst] >= 0, 1.0, -1.0)
            rows.append(np.einsum("i,kij,j->k", corners[worst], basis, other))
            limits.append(1.0)
