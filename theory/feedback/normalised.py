"""Error feedback on normalised SGD: the drift from what the optimizer measures. Kind: certified, pathwise; sharp.

l_2, d_k = m_{k+1}/|m_{k+1}|, tau = 1, k >= 2: delta_k = |d_{k-1} - d_{k-2}| obeys
    delta_k <= min(2, 2 |m_k - m_{k-1}|/(|m_k| + |m_{k-1}|)),    m_k - m_{k-1} = a (g_{k-1} - m_{k-1}).
Since |m_k| >= |m_{k-1}| - a |g - m|, also delta_k <= 2 a |g - m|/|m| with either momentum as |m|.
Consequence with Theorem 2: if a |g - m| <= (|m| + |m'|)/4 at every step, then dbar <= 1/2 and the delay term at the
weights is no larger than that of plain delay; dbar < 1 for the terms at y. Any tau, k >= tau: y_k - x_{k-tau} is a sum
of the d_j - d_{j-1} with the weights of theory.feedback.linear, so delta_k <= sum_j w_j s_{k-1-j}, s_j the bound above
for one pair (0 for j <= 0): kappa times the largest. At 1 <= k < tau add tau - k (theory.feedback.far).

Proof, p = |u|, q = |v|, D = |u - v|, delta = |u/p - v/q|: D^2 = (p - q)^2 + p q delta^2, and
    4 D^2 p q - (D^2 - (p - q)^2)(p + q)^2 = (p - q)^2 ((p + q)^2 - D^2) >= 0 by the triangle inequality,
so delta^2 <= 4 D^2/(p + q)^2 (Dunkl and Williams 1964). Equality for p = q and for opposite vectors.
Checked by tests/theory/feedback/test_drifts.py (identity by sympy; random and extreme vectors).
"""

from __future__ import annotations

import numpy as np


def drift_bound(momentum: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """min(2, 2 |m - m'|/(|m| + |m'|)) over the last axis; 2 where both are zero."""
    size = np.linalg.norm(momentum, axis=-1) + np.linalg.norm(previous, axis=-1)
    change = 2 * np.linalg.norm(momentum - previous, axis=-1)
    return np.asarray(np.where(change < 2 * size, change / np.where(size > 0, size, 1.0), 2.0))
