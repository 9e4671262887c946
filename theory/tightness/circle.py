"""The circle: the delay constant of l_2 (normalised SGD), and of the operator norm on any shape. Kind: exact instance.

f = L |x|_2^2/2 in the plane, alpha = 1, no noise. With theta = pi/(2 tau + 1) and r = eta/(2 sin(theta/2)) the points
x_k = r (cos k theta, sin k theta) satisfy x_{k+1} = x_k - eta x_{k-tau}/|x_{k-tau}|, so dn(grad f) at every iterate is
    L r = L eta / (2 sin(pi/(4 tau + 2))),
in average and in minimum; of L eta (tau + 1/2) that is 1, 2/3, .647, .642, .640 for tau = 0..4, 2/pi as tau -> oo.

Proof: x_{k+1} - x_k = 2 r sin(theta/2) (-sin((k+1/2) theta), cos((k+1/2) theta)), and
(k+1/2) theta - pi/2 = (k - tau) theta, so that is -eta (cos((k-tau) theta), sin((k-tau) theta)).
Operator norm: f(X e_1) on m x n matrices, m >= 2, has a gradient of rank one: its nuclear norm is the l_2 norm and its
polar factor the normalised column. Start: a round f keeps a run on the line of its start; on L (x^2 + mu y^2)/2 with mu
a little below 1 the method's own start spirals to the circle (test: within 1 - mu of the constant). Conjectured exact
for l_2. Checked by tests/theory/tightness/test_orbits.py.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from theory.errors import InputError
from theory.symbols import symbols
from theory.tightness.lattice import check_natural

(tau,) = symbols("tau")
RADIUS = 1 / (2 * sp.sin(sp.pi / (4 * tau + 2)))  # dn(grad f) in units of L eta


def circle(delay: int, k: sp.Expr | int) -> sp.Matrix:
    """x_k with L = eta = 1, exact; k may be symbolic."""
    check_natural("delay", delay)
    angle = sp.pi / (2 * delay + 1) * k
    return RADIUS.subs(tau, delay) * sp.Matrix([sp.cos(angle), sp.sin(angle)])


def elliptic_run(delay: int, mu: float, start: tuple[float, float], steps: int) -> np.ndarray:
    """Gradient norms of delayed normalised gradient descent on (x^2 + mu y^2)/2 from its own start; shape (steps,)."""
    check_natural("delay", delay)
    check_natural("steps", steps, 1)
    if not 0 < mu <= 1:
        raise InputError(f"mu={mu!r} is not allowed: mu must be a number in (0, 1]")
    curvature = np.array([1.0, mu])
    x = [np.array(start, dtype=float)]
    for k in range(steps):
        gradient = curvature * x[max(k - delay, 0)]
        x.append(x[k] - gradient / np.linalg.norm(gradient))
    return np.array(np.linalg.norm(curvature * np.array(x[:steps]), axis=1))
