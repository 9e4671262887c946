"""Theorem 1: delayed LMO method, smooth nonconvex objective, no weight decay. Kind: upper bound.

Statement: (1/K) sum_{k<K} E dn(grad f(x_k)) <= Delta0/(eta K) + L eta/2
           + 2 [ L eta (1-a)/a + L eta tau + rho sigma sqrt(a/(2-a)) + E0 (1-a)/(a K) ].
The delay adds exactly 2 L eta tau to this bound (not: to the measured average). `delayed-lmo-iterate` bounds the same
average with half of that.

Proof: `average` (Lemma A summed) and Lemma C in expectation; sum_{k<K} (1-a)^{k+1} <= (1-a)/a.
Checked by tests/theory/test_bounds.py and tests/theory/test_theorems_on_runs.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, LAG, NOISE, START, STEP

METRIC = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|_*"

BOUND = Bound(
    name="delayed-lmo",
    title="Theorem 1: delayed LMO method, gradient at the iterate",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": 2 * LAG,
        "delay": 2 * DELAY,
        "noise": 2 * NOISE,
        "start": 2 * START,
    },
    metric=METRIC,
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1; without delay compare Kovalev 2025 (arXiv 2503.12645), Theorem 2",
)
