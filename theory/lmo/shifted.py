"""Theorem 1s: the same run, the gradient measured where it was taken. Kind: upper bound; tight at alpha = 1.

Statement: (1/K) sum_{k<K} E dn(grad f(x_{(k-tau)+})) <= Delta0/(eta K) + L eta/2
           + 2 L eta (1-a)/a + L eta tau + 2 rho sigma sqrt(a/(2-a)) + 2 E0 (1-a)/(a K).
Half the delay of Theorem 1.

Proof: with y = x_{(k-tau)+}, <grad f(x_k), d_k> >= dn(m) - dn(m - grad f(x_k)) and
dn(m) >= dn(grad f(y)) - dn(m - grad f(y)). The first error is Lemma C. In the second the gradient i steps
back in the momentum is at most i steps from y (clipping at 0 brings points closer), so its age is (1-a)/a and
the delay is gone. Tight: norm l_1, dimension 2 tau + 1, a periodic orbit with dn(grad f) = L eta (tau + 1/2)
at every iterate. Checked by tests/theory/test_bounds.py and tests/theory/test_theorems_on_runs.py (the
orbit).
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, LAG, NOISE, START, STEP

BOUND = Bound(
    name="delayed-lmo-shifted",
    title="Theorem 1s: delayed LMO method, gradient where it was taken",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": 2 * LAG,
        "delay": DELAY,
        "noise": 2 * NOISE,
        "start": 2 * START,
    },
    metric=r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_{(k-\tau)_+})\|_*",
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1s",
)
