"""Delayed gradient descent, x_{k+1} = x_k - gamma grad f(x_{(k-tau)+}), f smooth, no noise. Kind: upper bound.

Statement, h = L gamma, if h + (tau h)^2 <= 1:
    min_{k<K}||grad f(x_k)||^2 <= 2 Delta0/(gamma K (2 - h - (tau h)^2))                            (delayed-gd),
and never larger, with the short windows of the start and the last iterate counted               (delayed-gd-finite)
    <= 2 L Delta0/(1 + h ((K-1)(2 - h) - h^2 W)),  W = sum_{k<K-1} min(k, tau)^2 = n(n-1)(2n-1)/6 + (K-1-n) tau^2,
n = min(tau, K-1). At K = 1 it is the worst case, 2 L Delta0.

Proof: z_k = x_{(k-tau)+}. The descent step, exact gradients:
    f(x_{k+1}) <= f(x_k) - (gamma/2)||grad f(x_k)||^2 - (gamma/2)(1 - h)||grad f(z_k)||^2
                  + (gamma L^2/2)||x_k - z_k||^2,
||x_k - z_k||^2 <= gamma^2 min(k, tau) sum_{j=(k-tau)+..k-1} ||grad f(z_j)||^2 (Cauchy-Schwarz). Summed over k < K, each
||grad f(z_j)||^2 keeps a factor of at least 1 - h - (tau h)^2 >= 0; every x_k and z_k is one of x_0 .. x_{K-1}, so all
squares may be replaced by the smallest, and the factors add up to at least K (2 - h) - K (tau h)^2. Second: sum over
k < K-1 with the factors as they are, and f(x_{K-1}) - f_* >= ||grad f(x_{K-1})||^2/(2 L), which counts 1/h where one
more step counts at most 2 - h.
The step may not grow beyond h < 2 sin(pi/(4 tau+2)), about pi/(2 tau), where a quadratic is unstable.
Checked by tests/theory/test_delayed_gd_proofs.py, test_pipedream_runs.py (noise-free runs), test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Integer, Le, Min, Rational

from theory.bound import Bound
from theory.symbols import symbols

gamma, L, tau, K, Delta0 = symbols("gamma L tau K Delta0")

h = L * gamma
n = Min(tau, K - 1)
WINDOWS = Rational(1, 6) * n * (n - 1) * (2 * n - 1) + (K - 1 - n) * tau**2
FINITE_WEIGHT = 1 + h * ((K - 1) * (2 - h) - h**2 * WINDOWS)

BOUND = Bound(
    name="delayed-gd",
    title="Delayed gradient descent: Euclidean norm, no noise",
    terms={"initial": 2 * Delta0 / (gamma * K * (2 - h - (tau * h) ** 2))},
    metric=r"\min_{k<K} \|\nabla f(x_k)\|^2",
    unit="(f/x)^2",
    assumptions=("euclidean", "smoothness", "lower-bound", "delayed-gd"),
    conditions=(Le(h + (tau * h) ** 2, Integer(1)),),
    reference="derived here",
)

FINITE = Bound(
    name="delayed-gd-finite",
    title="Delayed gradient descent with finite sums: start and last iterate counted",
    terms={"initial": 2 * L * Delta0 / FINITE_WEIGHT},
    metric=BOUND.metric,
    unit=BOUND.unit,
    assumptions=BOUND.assumptions,
    conditions=BOUND.conditions,
    reference="derived here",
)
