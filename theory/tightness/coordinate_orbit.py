"""The l_1 orbit that attains Theorem 1s, for every tau: the delay constant 1 cannot be improved. Kind: tight.

Norm l_1 (an LMO step moves one steepest coordinate), n = 2 tau + 1, f = w'Hw/2, H_ij = +1 for |i-j| <= tau, else -1;
L = max |H_ij| = 1, eta = 1. From w_0 = (1/2, ..., 1/2) step k flips coordinate k mod n; period 4 tau + 2. At every
iterate the l_inf norm of grad f is n/2 = tau + 1/2: Theorem 1s at alpha = 1, in average and in minimum.

Proof: after k <= n flips w_j = -1/2 for j < k, else 1/2. Coordinate i of the gradient tau steps ago, at k = i - tau
with tau <= i < n: H_ij = +1 exactly for j >= i - tau = k, where w_j = +1/2, and -1 for j < k, where w_j = -1/2; all n
products are +1/2, so g_i = n/2, the largest possible, and the step at i flips coordinate i downwards. For i < tau the
state of tau steps ago is that of k = i + n - tau flips with the other sign, by the same count.

f is not bounded below. `cut_off` multiplies it by a function of eps log|w|_2 that falls from 1 to 0: all entries of the
Hessian change by at most eps (4 sqrt(n) + 2 n (1 + eps)), so with L <= 1 + O(eps) the orbit stays and f is bounded; the
constant is the supremum as eps -> 0. Start: on this quadratic a backward search finds no lattice point off the
orbit that leads to it (tau = 1, 2, 3); theory.tightness.clock leads the method's own start to it in max(l_1, one more
coordinate), the norm of two layers.
Checked by tests/theory/tightness/test_orbits.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from theory.errors import InputError
from theory.tightness.lattice import check_natural
from theory.tightness.periodic import PeriodicOrbit


def coordinate_orbit(tau: int) -> PeriodicOrbit:
    """The orbit for that delay, exact. tau <= 7."""
    n = 2 * check_natural("tau", tau) + 1
    H = tuple(tuple(Fraction(1 if abs(i - j) <= tau else -1) for j in range(n)) for i in range(n))
    points = [tuple([Fraction(1, 2)] * n)]
    for k in range(2 * n - 1):
        points.append(tuple(-w if j == k % n else w for j, w in enumerate(points[-1])))
    return PeriodicOrbit("l_1", tau, H, tuple(points))


def cut_off_smoothness(tau: int, eps: float) -> float:
    """An upper bound on L of the cut-off f. Raises InputError unless eps > 0."""
    n = 2 * check_natural("tau", tau) + 1
    _check_eps(eps)
    return 1 + eps * (4 * n**0.5 + 2 * n * (1 + eps))


def cut_off(tau: int, eps: float, w: np.ndarray) -> float:
    """f(w) chi(eps log(|w|_2 / R)), R = sqrt(n)/2 the radius of the orbit; chi = 1 up to 0, 0 from 1 on, C^1 with
    |chi'| <= 2 and |chi''| <= 4.

    Proof of the bound on L: |grad f|_inf <= |w|_1 <= sqrt(n) |w|_2, |f| <= |w|_1^2/2 <= n |w|_2^2/2, u = eps log|w|_2
    has |grad u|_inf <= eps/|w|_2 and Hessian entries <= 2 eps/|w|_2^2. The entries of Hess(f chi) - chi Hess f are at
    most 2 sqrt(n) eps sup|chi'| + (n/2)(eps^2 sup|chi''| + 2 eps sup|chi'|). f chi vanishes for |w|_2 >= R e^{1/eps}.
    """
    _check_eps(eps)
    H = np.array(coordinate_orbit(tau).H, dtype=float)
    radius = float(np.linalg.norm(w))
    s = 0.0 if radius == 0 else min(max(eps * np.log(radius / (len(H) ** 0.5 / 2)), 0.0), 1.0)
    chi = 1 - 2 * s * s if s <= 0.5 else 2 * (1 - s) ** 2
    return float(w @ H @ w / 2 * chi)


def _check_eps(eps: float) -> None:
    if not eps > 0:
        raise InputError(f"eps={eps!r} is not allowed: eps must be a number > 0")
