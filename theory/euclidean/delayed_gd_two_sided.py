"""Delayed gradient descent, both interpolation inequalities of neighbouring iterates used. Kind: upper bound; exact
for tau = 0 and h <= 1, for K = 1, and for K = 2 where h (1+tau) <= 1.

Statement, h = L gamma, s = max(1, h (1+tau)), W = sum_{k<K-1} min(k, tau)^2, if h^2 (tau^2 + (tau+1)^2) <= 2:
    min_{k<K}||grad f(x_k)||^2 <= L Delta0/(1/2 + (K-1)(h - s h^2/4) - (h^3/4)((2 s - h)/(s - h)) W)
(without the last term for tau = 0). Where the condition of `delayed-gd` holds this one does, and the bound never
exceeds `delayed-gd-finite`: a full window's step adds (h^2/4)(2 - s - (tau h)^2/(s - h)) >= 0 more to the denominator.

Proof, in units L = 1: g_k = grad f(x_k), z_k = g_{(k-tau)+}, p_k = ||g_k - z_k||, d_k = ||g_{k+1} - g_k||. With
a - b = 1 and a + b = s, a times (k, k+1) and b times (k+1, k) of the interpolation inequalities give
    f(x_k) - f(x_{k+1}) >= (h/2)<g_k + g_{k+1}, z_k> + (s/4)(d_k^2 - h^2 ||z_k||^2).
Polarise: 2 <g, z> = ||g||^2 + ||z||^2 - ||g - z||^2, ||g_{k+1} - z_k|| <= p_k + d_k, and s d^2 - h (p+d)^2 >=
- h p^2 s/(s-h) for s > h: one step gives at least
    (h/4)(||g_k||^2 + ||g_{k+1}||^2 + 2 ||z_k||^2) - (s h^2/4)||z_k||^2 - (h/4)((2 s - h)/(s - h)) p_k^2.
p_k^2 <= ||x_k - x_{(k-tau)+}||^2 <= h^2 min(k, tau) sum of the ||z_j||^2 of that window (Cauchy-Schwarz). Sum over
k < K-1 and use f(x_{K-1}) - f_* >= ||g_{K-1}||^2/2. Each ||z_j||^2 keeps a factor that is nonnegative under the
condition, since no z_j is in more than tau windows: all squares may be replaced by the smallest. This s is the best one
that is at least 1, for full windows.
Without delay it is the exact rate of Abbaszadehpeivasti, de Klerk, Zamani 2022 (arXiv 2104.05468).
Checked by tests/theory/test_delayed_gd_two_sided.py against every certified worst case, its proof by
tests/theory/test_delayed_gd_proofs.py.
"""

from __future__ import annotations

from sympy import Integer, Le, Max, Rational

from theory.bound import Bound
from theory.euclidean.delayed_gd import BOUND as CLASSICAL
from theory.euclidean.delayed_gd import WINDOWS
from theory.symbols import symbols

gamma, L, tau, K, Delta0 = symbols("gamma L tau K Delta0")

h = L * gamma
s = Max(1, h * (1 + tau))
# (2 s - h)/(s - h); s/(s - h) = 1/max(1 - h, tau/(1+tau)), and the 1/2 decides only for tau = 0, where WINDOWS is 0.
BEND = 1 + 1 / Max(1 - h, tau / (1 + tau), Rational(1, 2))
WEIGHT = Rational(1, 2) + (K - 1) * (h - s * h**2 / 4) - h**3 * BEND * WINDOWS / 4

BOUND = Bound(
    name="delayed-gd-two-sided",
    title="Delayed gradient descent, two-sided: both inequalities of neighbours used",
    terms={"initial": L * Delta0 / WEIGHT},
    metric=CLASSICAL.metric,
    unit=CLASSICAL.unit,
    assumptions=CLASSICAL.assumptions,
    conditions=(Le(h**2 * (tau**2 + (tau + 1) ** 2), Integer(2)),),
    reference="derived here",
)
