"""Lemma C: the error of the momentum, unrolled. Kind: certified, pathwise; tight.

Statement, for k >= 0 with b = 1 - alpha, n = min(k, tau) and noise nu_k = alpha sum_{i<=k} b^{k-i} n_i:
    dn(e_k) <= b^{k+1} E0 + L eta b (1 - b^k)/alpha + L eta [n - b^{k-n+1} (1 - b^n)/alpha] + dn(nu_k).
The second and third term are the finite sums sum_{j=1..k} b^j and alpha sum_{i=1..k} b^{k-i} min(i, tau);
they grow to b/alpha and tau, which is the lemma as used in Theorem 1. E0 = dn(m_0 - grad f(x_0)) on the path.

Proof: e_0 = b (m_0 - grad f(x_0)) + alpha n_0, as x_{(0-tau)+} = x_0, and for k >= 1
    e_k = b e_{k-1} + b (grad f(x_{k-1}) - grad f(x_k))
        + alpha (grad f(x_{(k-tau)+}) - grad f(x_k)) + alpha n_k.
Unroll; smoothness and steps of norm at most eta; Lemma B. In expectation the noises are orthogonal martingale
differences although the gradients are stale:
    E dn(nu_k) <= rho sigma sqrt(alpha/(2-alpha)) sqrt(1 - b^{2k+2}).
Tight: a quadratic on which every step goes the same way. Checked by tests/theory/test_lmo_path.py.
"""

from __future__ import annotations

from sympy import Expr, Min

from theory.inequality import Inequality
from theory.symbols import symbols

error_norm, noise_norm, E0, L, eta, alpha, tau, k = symbols("error_norm noise_norm E0 L eta alpha tau k")


def lag_sum(steps: Expr) -> Expr:
    """sum_{j=1..steps} (1-alpha)^j: mean age of the gradients in the momentum, in steps, without delay."""
    return (1 - alpha) * (1 - (1 - alpha) ** steps) / alpha


def delay_sum(steps: Expr) -> Expr:
    """alpha sum_{i=1..steps} (1-alpha)^{steps-i} min(i, tau): what the delay adds to that age."""
    n = Min(steps, tau)
    return n - (1 - alpha) ** (steps - n + 1) * (1 - (1 - alpha) ** n) / alpha


INEQUALITY = Inequality(
    name="momentum-error",
    title="Lemma C: error of the momentum",
    statement=r"\|e_k\|_* \le (1-\alpha)^{k+1} E_0 + L \eta \sum_{j=1}^{k} (1-\alpha)^j"
    r" + L \eta \alpha \sum_{i=1}^{k} (1-\alpha)^{k-i} \min(i, \tau) + \|\nu_k\|_*",
    left=error_norm,
    terms={
        "start": (1 - alpha) ** (k + 1) * E0,
        "momentum_lag": L * eta * lag_sum(k),
        "delay": L * eta * delay_sum(k),
        "noise": noise_norm,
    },
    assumptions=("smoothness", "lmo", "constant-step", "fixed-delay"),
    reference="derived here, Lemma C; without delay: Kovalev 2025 (arXiv 2503.12645), Lemma 3",
)
