"""Delayed gradient descent, x_{k+1} = x_k - gamma grad f(x_{(k-tau)+}), f smooth, no noise. Kind: upper bound.

Statement, h = L gamma, if h + (tau h)^2 <= 1:
    min_{k<K}||grad f(x_k)||^2 <= 2 Delta0/(gamma K (2 - h - (tau h)^2))                            (delayed-gd),
and with the windows of the start counted, n = min(tau, K)                                        (delayed-gd-finite)
    <= 2 Delta0/(gamma (K (2 - h) - h^2 W)),  W = sum_{k<K} min(k, tau)^2 = n(n-1)(2n-1)/6 + (K-n) tau^2.

Proof: z_k = x_{(k-tau)+}. The descent step, exact gradients:
    f(x_{k+1}) <= f(x_k) - (gamma/2)||grad f(x_k)||^2 - (gamma/2)(1 - h)||grad f(z_k)||^2
                  + (gamma L^2/2)||x_k - z_k||^2,
||x_k - z_k||^2 <= gamma^2 min(k, tau) sum_{j=(k-tau)+..k-1} ||grad f(z_j)||^2 (Cauchy-Schwarz). Summed over k < K, each
||grad f(z_j)||^2 keeps a factor of at least 1 - h - (tau h)^2 >= 0; all factors together are K (2 - h) - h^2 W, every
x_k and z_k is one of x_0 .. x_{K-1}, so all squares may be replaced by the smallest.
The step may not grow beyond h < 2 sin(pi/(4 tau+2)), about pi/(2 tau), where a quadratic is unstable.
Checked by tests/theory/test_pipedream_runs.py (noise-free runs) and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Integer, Le, Min, Rational

from theory.bound import Bound
from theory.symbols import symbols

gamma, L, tau, K, Delta0 = symbols("gamma L tau K Delta0")

h = L * gamma
n = Min(tau, K)
WINDOWS = Rational(1, 6) * n * (n - 1) * (2 * n - 1) + (K - n) * tau**2

BOUND = Bound(
    name="delayed-gd",
    title="Delayed gradient descent in the Euclidean norm",
    terms={"initial": 2 * Delta0 / (gamma * K * (2 - h - (tau * h) ** 2))},
    metric=r"\min_{k<K} \|\nabla f(x_k)\|^2",
    unit="f^2/x^2",
    assumptions=("euclidean", "smoothness", "lower-bound", "delayed-gd"),
    conditions=(Le(h + (tau * h) ** 2, Integer(1)),),
    reference="derived here",
)

FINITE = Bound(
    name="delayed-gd-finite",
    title="Delayed gradient descent in the Euclidean norm, windows of the start counted",
    terms={"initial": 2 * Delta0 / (gamma * (K * (2 - h) - h**2 * WINDOWS))},
    metric=BOUND.metric,
    unit=BOUND.unit,
    assumptions=BOUND.assumptions,
    conditions=BOUND.conditions,
    reference="derived here",
)
