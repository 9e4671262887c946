"""Theorem 1m: the gradient measured s steps before the iterate, best at the median age. Kind: upper bound.

With A = i + tau the age of a gradient inside the momentum, P(i) = a (1-a)^i (`age`), for every integer s >= 0:
    (1/K) sum_{k<K} E dn(grad f(x_{(k-s)+})) <= Delta0/(eta K) + L eta/2 + 2 E0 (1-a)/(a K)
        + 2 rho sigma sqrt(a/(2-a)) + L eta [(1-a)/a + tau + E|A - s|].
s = 0 is Theorem 1, s = tau Theorem 1s. Left out, s is the median of A: no other s gives a smaller right side. For small
a the factor of L eta falls from 2/a to (1 + ln 2)/a.

Proof: with y = x_{(k-s)+}, <grad f(x_k), d_k> >= dn(m) - dn(m - grad f(x_k)) and
dn(m) >= dn(grad f(y)) - dn(m - grad f(y)).
The first error is Lemma C. In the second a gradient of age A lies at most |A - s| steps from x_{(k-s)+}, as clipping
indices at 0 brings points closer. Without the noise it is, with h(s) = E|A - s|,
    dn(m_{k+1} - nu_k - grad f(x_{(k-s)+})) <= b^{k+1} E0 + L eta h(s)    for all k, s >= 0:
b E0 at k = 0; for s <= tau that of 1s and tau - s steps more, and h(s) = b/a + tau - s; for s > tau it is at most b
times that of (k-1, s-1), the same gradient seen from m_k, plus a L eta (s - tau), and h(s) = b h(s-1) + a (s - tau).
The terms: `momentum_lag` and `delay` come from the first error, `reference` from the second.
Machine-checked: `proofs/median`. Checked by tests/theory/test_median.py, test_age.py and test_lmo_variants_on_runs.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.lmo.age import CLASSICAL
from theory.lmo.parts import ASSUMPTIONS_LMO, DELAY, INITIAL, LAG, NOISE, START, STEP, L, eta

METRIC = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_{(k-s_{\mathrm{ref}})_+})\|_*"

BOUND = Bound(
    name="delayed-lmo-median",
    title="Theorem 1m: delayed LMO method, gradient at the median age of the momentum",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": LAG,
        "delay": DELAY,
        "reference": L * eta * CLASSICAL.distance(),
        "noise": 2 * NOISE,
        "start": 2 * START,
    },
    metric=METRIC,
    assumptions=ASSUMPTIONS_LMO,
    reference="derived here, Theorem 1m",
    optional={"s": CLASSICAL.median},
)
