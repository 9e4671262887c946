"""Theorem 1m, momentum's own norm: what the optimizer itself can measure. Kind: upper bound.

Statement: (1/K) sum_{k<K} E dn(m_{k+1}) <= Delta0/(eta K) + L eta/2
           + L eta (1-a)/a + L eta tau + rho sigma sqrt(a/(2-a)) + E0 (1-a)/(a K): no factor 2 anywhere.

Proof: <grad f(x_k), d_k> >= dn(m_{k+1}) - dn(e_k) in the descent step, then Lemma C for the one error that is
left. Checked by tests/theory/test_bounds.py and tests/theory/test_theorems_on_runs.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, LAG, NOISE, START, STEP

BOUND = Bound(
    name="delayed-lmo-momentum",
    title="Theorem 1m, own norm: delayed LMO method, dual norm of the momentum itself",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": LAG,
        "delay": DELAY,
        "noise": NOISE,
        "start": START,
    },
    metric=r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|m_{k+1}\|_*",
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1m, own norm",
)
