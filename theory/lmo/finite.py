"""Theorem 1 with its finite sums kept: never larger, much smaller for short runs. Kind: upper bound.

Statement: as Theorem 1, with b = 1 - a, n = min(tau, K) and
    momentum lag  2 L eta (b/a) [1 - (1 - b^K)/(a K)]
    delay         2 L eta [n K - n(n+1)/2 - (b/a)(n - b^{K-n} (1 - b^n)/a)]/K
    noise         2 rho sigma sqrt(a/(2-a)) sqrt(1 - b^2 (1 - b^{2K})/(a (2-a) K))
    start         2 E0 b (1 - b^K)/(a K).

Proof: average Lemma C as it stands (its finite sums) over k = 0..K-1. For the noise,
E dn(nu_k) <= rho sigma sqrt(a/(2-a)) sqrt(1 - b^{2k+2}), and the root is concave (Jensen over k).
Checked by tests/theory/test_bounds.py (against the sums written out) and
tests/theory/test_theorems_on_runs.py.
"""

from __future__ import annotations

from sympy import Min, Rational, sqrt

from theory.bound import Bound
from theory.lmo.delayed import METRIC
from theory.lmo.parts import ASSUMPTIONS_LMO, INITIAL, LAG, NOISE, START, STEP, K, L, alpha, eta, tau

b = 1 - alpha
n = Min(tau, K)

BOUND = Bound(
    name="delayed-lmo-finite",
    title="Theorem 1 with finite sums: delayed LMO method, gradient at the iterate",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": 2 * LAG * (1 - (1 - b**K) / (alpha * K)),
        "delay": 2
        * L
        * eta
        * (n * K - Rational(1, 2) * n * (n + 1) - b / alpha * (n - b ** (K - n) * (1 - b**n) / alpha))
        / K,
        "noise": 2 * NOISE * sqrt(1 - b**2 * (1 - b ** (2 * K)) / (alpha * (2 - alpha) * K)),
        "start": 2 * START * (1 - b**K),
    },
    metric=METRIC,
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1 with Lemma C unsimplified",
)
