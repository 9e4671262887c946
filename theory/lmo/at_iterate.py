"""Theorem 1 with half the delay: the gradient at the iterate, by running on. Kind: upper bound; tight at alpha = 1.

Statement: (1/K) sum_{k<K} E dn(grad f(x_k)) <= Delta0/(eta K) + 2 E0 (1-a)/(a K)
           + (1 + tau/K) [ L eta/2 + 2 L eta (1-a)/a + L eta tau + 2 rho sigma sqrt(a/(2-a)) ]
           - (tau/K) dn(grad f(x_0)).
The last term is left out of `BOUND` (it needs a constant of its own) and only makes the right side smaller.

Proof: apply Theorem 1s to K + tau steps. Its left side is, times K + tau, tau dn(grad f(x_0)) plus the sum of
E dn(grad f(x_j)) over j < K, since k -> (k - tau)+ takes 0 tau + 1 times and each j in 1..K-1 once. The last tau steps
need not be made: x_0, ..., x_{K-1} do not depend on them, and a run that obeys the assumptions can be continued.
So the factor 2 before tau in Theorem 1 is not needed: this bound is below Theorem 1 as soon as
    K > tau + 1/2 + 2 (1-a)/a + 2 rho sigma sqrt(a/(2-a))/(L eta),
and the shifted metric is no weaker than the one at the iterate but for O(tau/K). The same step turns Theorem 1m's
average at x_{(k-s)+} into one at x_k with the factor 1 + s/K, for every s.
Tight as K -> oo: the periodic orbits of theory.tightness. Machine-checked in `proofs/at_iterate`. Checked by
tests/theory/tightness/test_at_iterate.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.delayed import METRIC
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, LAG, NOISE, START, STEP, K, tau

_LONGER = 1 + tau / K

BOUND = Bound(
    name="delayed-lmo-iterate",
    title="Theorem 1 by running on: gradient at the iterate, half the delay",
    terms={
        "initial": INITIAL,
        "step": STEP * _LONGER,
        "momentum_lag": 2 * LAG * _LONGER,
        "delay": DELAY * _LONGER,
        "noise": 2 * NOISE * _LONGER,
        "start": 2 * START,
    },
    metric=METRIC,
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1s on K + tau steps",
)
