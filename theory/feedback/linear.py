"""Error feedback on linear EMA updates: the delay's bias becomes second order in L eta. Kind: upper bound.

Method, in l_2: m_{k+1} = (1-a) m_k + a g_k, g_k = grad f(x_{(k-tau)+}) + n_k, U_k = -eta m_{k+1},
x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}), a missing U_j is U_0; y_k as in theory.lmo.error_feedback_path. f is any
L-smooth function, the n_k are martingale differences with E|n_k|^2 <= sigma^2. Write r_j = m_{j+1} - m_j for j >= 1,
r_j = 0 for j <= 0.

Drift (identity, every path, k >= tau): y_k - x_{k-tau} = -eta sum_j w_j r_{k-1-j}, with the weights
    extrapolate  w = 1, 2, ..., tau                        sum tau (tau+1)/2
    telescoped   w = 1, 2, ..., tau, ..., 2, 1             sum tau^2
At tau = 1: y_k - x_{k-1} = -eta r_{k-1} = -eta a (g_{k-1} - m_{k-1}), where plain delay has x_k - x_{k-1} = -eta m_k.

Statement, if tau L eta < 1, kappa the sum of weights, K >= tau updates, means with divisor K
(R^2 = (1/K) sum_{j=1..K} E|r_j|^2, M^2 = (1/K) sum_{k<K} E|m_{k+1}|^2):
    R <= [ L eta M + a sigma sqrt(2/(2-a)) + E0 (1-a) sqrt(a/((2-a) K)) ] / (1 - tau L eta),
    ((1/K) sum_{k=tau..K} E|grad f(x_{k-tau}) - grad f(y_k)|^2)^{1/2} <= L eta kappa R.
The steps 1 <= k < tau are not in that mean: y_k - x_0 = eta (tau-k) m_1 - eta sum_j w_j r_{k-1-j}. With them the right
side has L eta (E|m_1|^2)^{1/2} ((tau-1) tau (2 tau-1)/(6 K))^{1/2} more (L times `early`; nothing at tau = 1).
E0 = (E|m_0 - grad f(x_0)|^2)^{1/2}. Plain delay: rms bias <= L eta tau M. So without noise the bound on the delay's
bias, that of k >= tau, falls from L eta tau M to (L eta)^2 kappa M/(1 - tau L eta), below it iff
    L eta < tau/(kappa + tau^2): extrapolate 2/(3 tau + 1), telescoped 1/(2 tau), both 1/2 at tau = 1.
That compares bounds, in the metric of y; M is each method's own. The noise enters with a sigma kappa: momentum is what
makes the correction pay (see noise), and at a = 1 it does not.

Proof: unroll r_j = (1-a) r_{j-1} + a (g_j - g_{j-1}), where for j = 1 the first is a (g_0 - m_0):
    r_j = a (1-a)^j (grad f(x_0) - m_0) + a sum_{i=1..j} (1-a)^{j-i} [grad f(x_{(i-tau)+}) - grad f(x_{(i-1-tau)+})]
        + a n_j - a^2 sum_{i<j} (1-a)^{j-1-i} n_i.
Noise: orthogonal, a^2 sigma^2 (1 + a/(2-a)). Gradients: at most L |x_{i-tau} - x_{i-1-tau}|, which is at most
L eta (|m| + tau terms |r|), since c lag = tau; Minkowski over the run, and a sum (1-a)^i <= 1. Solve for R.
Checked by tests/theory/feedback/test_linear.py (identities for symbolic updates; noisy and nonquadratic runs).
"""

from __future__ import annotations

import sympy as sp

from theory.errors import InputError
from theory.lmo.parts import E0, K, L, alpha, eta, sigma
from theory.lmo.parts import tau as TAU
from theory.tightness.lattice import check_natural

FORMS = ("extrapolate", "telescoped")
KAPPA = {"extrapolate": TAU * (TAU + 1) / 2, "telescoped": TAU**2}
BETTER_BELOW = {form: TAU / (kappa + TAU**2) for form, kappa in KAPPA.items()}  # L eta, without noise
NOISE = alpha * sigma * sp.sqrt(2 / (2 - alpha))
START = E0 * (1 - alpha) * sp.sqrt(alpha / ((2 - alpha) * K))


def weights(form: str, tau: int) -> list[int]:
    """Weights of r_{k-1}, r_{k-2}, ... in the drift. Raises InputError for another form or tau < 1."""
    check_natural("tau", tau, 1)
    if form not in FORMS:
        raise InputError(f"form={form!r} is not one of {', '.join(FORMS)}")
    rising = list(range(1, tau + 1))
    return rising if form == "extrapolate" else rising + rising[-2::-1]


def drift_rms(form: str, tau: int, mean_square_momentum: sp.Expr) -> sp.Expr:
    """The bound on rms |y_k - x_{k-tau}|, k = tau..K, in M^2 and the symbols of theory; holds for tau L eta < 1."""
    kappa = sum(weights(form, tau))
    return eta * kappa * (L * eta * sp.sqrt(mean_square_momentum) + NOISE + START) / (1 - tau * L * eta)


def early(tau: int, mean_square_first: sp.Expr) -> sp.Expr:
    """What the steps 1 <= k < tau add to `drift_rms` at most, in E|m_1|^2."""
    check_natural("tau", tau, 1)
    return eta * sp.sqrt(mean_square_first * sp.Rational((tau - 1) * tau * (2 * tau - 1), 6) / K)
