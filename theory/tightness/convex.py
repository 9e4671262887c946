"""Convex f: lower bounds on the delay constant for sign descent and l_1. Kind: exact instances.

n = 2 tau + 2, H_ij = cos(pi (i-j)/n), positive semidefinite of rank 2, alpha = 1, no noise, L = eta = 1 after scaling:
    l_1    flip coordinate k mod n of (1/2, ..., 1/2) at step k; L = max |H_ij| = 1;
    l_inf  x_i(k) = w(k - i), the triangle wave of theory.tightness.sign_orbit; L = 1/sin(pi/2n)^2.
In both the gradient norm at every iterate is, in units of L eta,
    cot(pi/(4 tau + 4))/2 = 1.2071, 1.8660, 2.5137, 3.1569 for tau = 1..4: .805, .746, .718, .702 of tau + 1/2,
and 2/pi of it as tau -> oo, as for the circle, which is convex too and remains the best known for l_2. Operator norm:
at least the value of sign descent (f(diag X) is convex). Over negacyclic positive semidefinite H a linear program finds
nothing better (l_1: n < 40, tau = 1..4; l_inf with the triangle wave: n < 12, tau = 1, 2). The history is given: the
clock is not convex.

Proof: u_i = (cos, sin)(pi i/n) gives H_ij = <u_i, u_j>, so f(x) = |z|^2/2 with z = sum x_i u_i in the plane.
l_inf: the steps of z are the vertices of the regular 2n-gon sum [-u_i, u_i], of length R = 1/sin(pi/2n); L = R^2; z
runs on a regular 2n-gon of radius r = R/(2 sin(pi/2n)), dual norm r R cos(pi/2n): z points to the middle of an edge.
l_1: the steps are the u_i, r = 1/(2 sin(pi/2n)), and the largest |<u_i, z>| is r cos(pi/2n).
In both cases the step is that of the point tau steps ago since a turn by tau steps and a half, and half an edge, is a
quarter turn: (tau + 1/2 + 1/2) pi/n = pi/2.
Checked by tests/theory/tightness/test_convex.py.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from theory.errors import InputError
from theory.symbols import symbols
from theory.tightness.lattice import check_natural
from theory.tightness.periodic import NORMS

(tau,) = symbols("tau")
CONSTANT = sp.cot(sp.pi / (4 * tau + 4)) / 2


def convex_orbit(norm: str, delay: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(H, points of one period, L) in floating point. Raises InputError for another norm or delay < 0."""
    n = 2 * check_natural("delay", delay) + 2
    if norm not in NORMS:
        raise InputError(f"norm={norm!r} is not one of {', '.join(NORMS)}")
    i = np.arange(n)
    H = np.cos(np.pi * (i[:, None] - i[None, :]) / n)
    k = np.arange(2 * n)[:, None]
    if norm == "l_1":
        points = np.where((k > i) & (k - n <= i), -0.5, 0.5)
        return H, points, 1.0
    age = (k - i) % (2 * n)
    return H, np.minimum(age, 2 * n - age) - n / 2, 1 / float(np.sin(np.pi / (2 * n))) ** 2
