"""Theorem V: stationary variance at first order in h, EMA momentum. Kind: asymptotic.

Var = (eta s^2/(2 lam)) [1 + h (q/2 + D) + O(h^2)],  q = (1-beta)/(1+beta), an equality up to the remainder:
    no correction            D = tau
    coefficient c, lag 1     D = tau - c + 2 c (c+1) q, best at c* = 1/(4q) - 1/2 with D = tau - 2 q c*^2
    extrapolate (c = tau)    D = 2 tau (tau+1) q
    telescoped               D = 4 tau - 8 beta (1 - beta^tau)/(1 - beta^2)
A correction of coefficient c lowers the variance iff c < 1/(2q) - 1; at tau = 1, c = 1 breaks even at beta =
3/5. Checked by tests/theory/test_quadratic_theory.py (against the Lyapunov equation, extrapolated to h = 0).
"""

from __future__ import annotations

import sympy as sp

from theory.symbols import symbols

beta, tau, c = symbols("beta tau c")
q = (1 - beta) / (1 + beta)

D_PLAIN = tau
D_COEFFICIENT = tau - c + 2 * c * (c + 1) * q
D_EXTRAPOLATE = 2 * tau * (tau + 1) * q
D_TELESCOPED = 4 * tau - 8 * beta * (1 - beta**tau) / (1 - beta**2)
BEST_COEFFICIENT = 1 / (4 * q) - sp.Rational(1, 2)


def first_order(delay_term: sp.Expr) -> sp.Expr:
    """The coefficient of h inside the bracket, q/2 + D, for one of the D above."""
    return q / 2 + delay_term
