"""Error feedback on Muon: the drift of the polar factor, from the momentum's smallest singular values. Kind: certified.

d_k = Q_k, the polar factor of m_{k+1} (p x q, p >= q, full rank q; else transpose), s_k its smallest singular value,
tau = 1, m_k - m_{k-1} = a (g_{k-1} - m_{k-1}). In the operator norm, with D = |m_k - m_{k-1}|,
    square:        delta_k <= min(2, 2 D/(s + s')),
    rectangular:   delta_k <= min(2, D sqrt(4/(s + s')^2 + 1/max(s, s')^2)).
So error feedback provably helps Muon where the momentum is well conditioned against one step's change: in Theorem 2
dbar < 1 at y (and < 1/2 at the weights) as soon as 2 a |g - m| < s + s' (half of that) on average; every quantity is
measurable on the run. Honest limit: one singular value near 0 makes the bound 2, and then delta can be 2 (a flipped
singular direction). Any tau, k >= tau: weights of theory.feedback.linear, as in `normalised`.

Proof. m = Q H and n = P G with H, G symmetric positive definite, W = Q^T P, X = 1 - W, E = m - n. Then
    Q^T E = H - W G,   E^T P = H W - G,   so   H X + X G = Q^T E - E^T P,
X = int_0^oo e^{-Ht} (Q^T E - E^T P) e^{-Gt} dt, hence |X| <= 2 |E|/(s + s') in every unitarily invariant norm. Square:
|Q - P| = |X|. Rectangular: the part of P outside the range of Q is -(1 - Q Q^T) E G^{-1}, of norm at most |E|/s', or
|E|/s with the roles exchanged; the two parts have orthogonal ranges. Square case: R.-C. Li 1995 (SIAM J. Matrix Anal.
Appl. 16). Checked by tests/theory/feedback/test_drifts.py (the Sylvester identity; random and near-singular matrices).
"""

from __future__ import annotations

import numpy as np

from theory.errors import InputError


def polar_factor(m: np.ndarray) -> np.ndarray:
    """U V' of the thin singular value decomposition."""
    u, _, vt = np.linalg.svd(m, full_matrices=False)
    return np.asarray(u @ vt)


def drift_bound(momentum: np.ndarray, previous: np.ndarray) -> float:
    """The bound on the operator norm of the difference of the polar factors. Raises InputError for other shapes."""
    if momentum.shape != previous.shape or momentum.ndim != 2 or 0 in momentum.shape:
        raise InputError(
            f"momentum, previous: shapes {momentum.shape} and {previous.shape}; two equal matrix shapes are needed"
        )
    s, r = (float(np.linalg.svd(m, compute_uv=False)[-1]) for m in (momentum, previous))
    change = float(np.linalg.norm(momentum - previous, 2))
    if s + r == 0:
        return 2.0
    inner = 4 / (s + r) ** 2
    outer = 0.0 if momentum.shape[0] == momentum.shape[1] else 1 / max(s, r) ** 2
    return min(2.0, change * (inner + outer) ** 0.5)
