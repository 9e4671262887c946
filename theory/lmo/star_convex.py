"""Star-convex f, decoupled weight decay: the last iterate's objective. Kind: upper bound.

x_{k+1} = (1-b) x_k - eta d_k, 0 < b <= 1, norm(x_0) <= eta/b, r = b norm(x_*)/eta <= 1 (left out: r = 1). With
p = 1-b, q = 1-a:
    E[f(x_K) - f_*] <= p^K Delta0 + 2 L eta^2/b + ((1+r) eta/b) [rho sigma sqrt(a/(2-a)) + 2 L eta ((1-a)/a + tau)]
                       + (1+r) eta E0 (1-a) (p^K - q^K)/(a-b)                                          (star-convex),
and with the sum over the run kept, (1 - p^K)/b in place of every 1/b, which is never larger      (star-convex-finite).

Proof: x_{k+1} = (1-b) x_k + b v_k with v_k = -(eta/b) d_k, so all iterates stay in the ball of radius eta/b and
norm(x_{k+1} - x_k) <= 2 eta. v_k minimises <m, .> over that ball, which holds x_*:
    <grad f(x_k), v_k - x_*> <= <grad f(x_k) - m, v_k - x_*> <= dn(e_k) (1+r) eta/b,
and star-convexity gives <grad f(x_k), x_* - x_k> <= f_* - f(x_k). With smoothness, D_k = f(x_k) - f_*:
    D_{k+1} <= (1-b) D_k + (1+r) eta dn(e_k) + 2 L eta^2.
Unroll; Lemma C with steps of norm 2 eta; sum_{k<K} p^{K-1-k} = (1 - p^K)/b and sum_{k<K} p^{K-1-k} q^{k+1} =
q (p^K - q^K)/(p - q), which is K q^K where a = b.
Room: x_k = p^j x_{k-j} + (1-p^j) w with w in the ball, so j steps move it by (2 eta/b)(1-p^j), not 2 eta j. No noise:
dn(e_k) <= q^{k+1} E0 + (2 L eta/b)(1 - a p^tau/(1-pq)), whose limit b -> 0 is the 2 L eta ((1-a)/a + tau) above.
Machine-checked, but for the room, in `proofs/star_convex`. Checked by tests/theory/test_star_convex.py and
test_star_convex_proof.py.
"""

from __future__ import annotations

from sympy import Expr

from theory.bound import Bound
from theory.functions import GeometricSum
from theory.lmo.parts import DELAY, E0, LAG, NOISE, Delta0, K, L, alpha, eta
from theory.symbols import symbols

b, r = symbols("b r")

METRIC = r"\mathbb{E} f(x_K) - f_*"
UNIT = "f"
ASSUMPTIONS = (
    "duality",
    "smoothness",
    "star-convex",
    "weight-decay",
    "lmo",
    "fixed-delay",
    "unbiased",
    "independent-batch",
    "variance",
    "norm-ratio",
)
CONTRACTION = (1 - b) ** K * Delta0
ERROR = (1 + r) * eta  # how often a momentum error counts, each step
START = ERROR * E0 * (1 - alpha) * GeometricSum(1 - b, 1 - alpha, K)


def _terms(total: Expr) -> dict[str, Expr]:
    """`total`: sum_{k<K} (1-b)^{K-1-k}, or what bounds it."""
    return {
        "initial": CONTRACTION,
        "step": 2 * L * eta**2 * total,
        "momentum_lag": ERROR * 2 * LAG * total,
        "delay": ERROR * 2 * DELAY * total,
        "noise": ERROR * NOISE * total,
        "start": START,
    }


BOUND = Bound(
    name="star-convex",
    title="Star-convex theorem: LMO method with decoupled weight decay",
    terms=_terms(1 / b),
    metric=METRIC,
    unit=UNIT,
    assumptions=ASSUMPTIONS,
    reference="derived here; the setting of arXiv 2606.30634, Theorem 4.2",
    optional={"r": 1},
)

FINITE = Bound(
    name="star-convex-finite",
    title="Star-convex theorem with finite sums: LMO method with decoupled weight decay",
    terms=_terms((1 - (1 - b) ** K) / b),
    metric=METRIC,
    unit=UNIT,
    assumptions=ASSUMPTIONS,
    reference="derived here; the setting of arXiv 2606.30634, Theorem 4.2",
    optional={"r": 1},
)
