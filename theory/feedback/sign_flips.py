"""Error feedback on sign descent: count the curvature of the coordinates that flip. Kind: certified, pathwise.

For l_inf one flipped coordinate makes delta = 2, and dbar says nothing. Assume coordinate smoothness (more than L):
    |grad f(x) - grad f(y)|_1 <= sum_i l_i |x_i - y_i|,    Lam = sum_i l_i >= L;
for a quadratic l_i is the l_1 norm of column i of H, and Lam = L if H is diagonal or has no negative entry. With F_k
the set of i where d_{k-1} and d_{k-2} differ and phi_k = sum_{i in F_k} l_i/Lam, tau = 1:
    error feedback:  |grad f(x_{k-1}) - grad f(y_k)|_1 <= 2 eta Lam phi_k;    plain delay:  ... <= eta Lam.
So L dbar in Theorem 2 may be 2 Lam phibar, and the delay term at y is below that of plain delay (with Lam for L) iff
phibar < 1/2, whatever the dimension. Coordinate i can flip only if a |g_i - m_i| >= |m_i|. On white Gaussian noise two
successive momenta have correlation 1 - a, so P(flip) = arccos(1 - a)/pi: below 1/2 for every a < 1, .10 at a = .05.
Any tau, k >= tau: a coordinate drifts by at most 2 eta times the sum of the weights w_j (theory.feedback.linear) of its
flips.
Proof: y_k - x_{k-1} = -eta (d_{k-1} - d_{k-2}) is 0 off F_k and +-2 eta on it.
Checked by tests/theory/feedback/test_drifts.py.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from theory.errors import InputError
from theory.lmo.parts import alpha

FLIP_PROBABILITY = sp.acos(1 - alpha) / sp.pi  # of one coordinate, white Gaussian noise


def flip_share(signs: np.ndarray, coordinate_smoothness: np.ndarray) -> np.ndarray:
    """phi between successive rows of d, shape (steps, n) -> (steps - 1,). Raises InputError for shapes or l_i < 0."""
    l = np.asarray(coordinate_smoothness, dtype=float)
    if signs.ndim != 2 or l.shape != signs.shape[1:] or not (l >= 0).all() or not l.sum() > 0:
        raise InputError(f"coordinate_smoothness: shape {l.shape} or its values do not fit signs of {signs.shape}")
    return np.asarray((np.diff(signs, axis=0) != 0) @ l / l.sum())
