"""Theorem V: stationary variance at first order in h, for any linear update filter. Kind: asymptotic.

Assumptions: white noise of deviation s; x_{k+1} - x_k = -eta G (lam x_{k-tau} + s xi_k), G rational, stable, G(1) = 1.
    Var = (eta s^2/(2 lam)) [1 + h (1/2 + g1 + tau + 2 R) + O(h^2)],   g1, R of `theory.quadratic.filters`,
an equality up to the remainder. (Var = (eta^2 s^2/2 pi) int |W + h z^{-tau}|^{-2} dw, W = (z-1)/G; near w = 0 the
denominator is h^2 + w^2 (1 - 2h (1/2 + g1 + tau)), and what is left at h = 0 is R.)
A correction (c, lag l) turns G into G (1 + c (1 - z^{-l})). It changes the bracket by h (D - tau),
    error feedback, gradient extrapolation   D = tau - c l + 2 c (c+1) A_l     A_l: window energy of G
    weight prediction                        D = tau - c l
so the coefficient of h is B + D, B = 1/2 + g1 + 2R of G alone: lag is taken away, noise is paid for. It pays iff
2 (c+1) A_l < l. With G of gain gamma read gamma eta for eta, gamma h for h: heavy ball has the D of EMA momentum.

Closed forms, q = (1-beta)/(1+beta), heavy ball and EMA: B = q/2, A_1 = q,
    no correction            D = tau
    coefficient c, lag 1     D = tau - c + 2 c (c+1) q, best at c* = 1/(4q) - 1/2 with D = tau - 2 q c*^2
    extrapolate (c = tau)    D = 2 tau (tau+1) q
    telescoped               D = 4 tau - 8 beta (1 - beta^tau)/(1 - beta^2)
A correction of coefficient c lowers the variance iff c < 1/(2q) - 1; at tau = 1, c = 1 breaks even at beta =
3/5. Nesterov: B = (1 + beta - 2 beta^2 - 4 beta^3)/(2 (1+beta)), A_1 = q_N below in place of q; it breaks even at
beta = 0.7396, and weight prediction with c = tau has D = 0 with every filter.
Checked by tests/theory/test_quadratic_theory.py, test_quadratic_filters.py (against the Lyapunov equation,
extrapolated to h = 0) and tests/agreement/test_linear_optimizers.py (break-even of the optimizer code).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from theory.quadratic.filters import mean_lag, momentum_filter, remainder, window_energy
from theory.symbols import symbols

if TYPE_CHECKING:
    from theory.quadratic.method import QuadraticMethod

beta, tau, c = symbols("beta tau c")
q = (1 - beta) / (1 + beta)

D_PLAIN = tau
D_COEFFICIENT = tau - c + 2 * c * (c + 1) * q
D_EXTRAPOLATE = 2 * tau * (tau + 1) * q
D_TELESCOPED = 4 * tau - 8 * beta * (1 - beta**tau) / (1 - beta**2)
BEST_COEFFICIENT = 1 / (4 * q) - sp.Rational(1, 2)

B_NESTEROV = (1 + beta - 2 * beta**2 - 4 * beta**3) / (2 * (1 + beta))
Q_NESTEROV = (1 + beta - 2 * beta**2 - 2 * beta**3 + 2 * beta**4) / (1 + beta)
D_EXTRAPOLATE_NESTEROV = 2 * tau * (tau + 1) * Q_NESTEROV
D_TELESCOPED_NESTEROV = 4 * tau - 8 * beta**2 * (1 + beta - beta**2) * (1 - beta**tau) / (1 - beta**2)


def first_order(delay_term: sp.Expr) -> sp.Expr:
    """The coefficient of h inside the bracket, q/2 + D, for one of the D above: heavy ball or EMA momentum."""
    return q / 2 + delay_term


def bracket(G: sp.Expr, tau: sp.Expr = sp.S.Zero) -> sp.Expr:
    """1/2 + g1 + tau + 2R of a filter; tau = 0: B. Raises InputError as `filters.remainder`."""
    return sp.factor(sp.Rational(1, 2) + mean_lag(G) + tau + 2 * remainder(G))


def delay_term(
    G: sp.Expr, tau: sp.Expr, c: sp.Expr = sp.S.Zero, lag: int = 0, extrapolates_noise: bool = True
) -> sp.Expr:
    """D of a filter with delay tau and correction (c, lag); lag = 0: none.

    extrapolates_noise: False for weight prediction.
    """
    gone = tau - c * lag
    return sp.factor(gone + 2 * c * (c + 1) * window_energy(G, lag)) if lag and extrapolates_noise else gone


def first_order_of(method: QuadraticMethod) -> sp.Rational:
    """The method's coefficient of gamma h inside the bracket, gamma = gain/(1-beta), exact for its decimals."""
    c, momentum, _ = method.exact
    G = momentum_filter(momentum, method.nesterov)
    extrapolates = method.correction != "weight-prediction"
    return bracket(G) + delay_term(G, sp.Integer(int(method.tau)), c, method.lag, extrapolates)
