"""Kovalev 2025 (arXiv 2503.12645), Theorem 2, as a row to compare with: no delay. Kind: upper bound; a paper's.

Statement: (1/K) sum E dn(grad f(x_k)) <= Delta0/(eta K) + 2 rho sigma/(alpha K) + 2 sqrt(alpha) rho sigma + 3 L eta/2
           + 2 L eta/alpha, with the momentum started at a gradient sample (E0 <= rho sigma).
Its Lemma 3 bounds m_k against grad f(x_k): a gradient that is one step old already. `delayed-lmo` at tau = 0 and
E0 = rho sigma is smaller in every term that differs: 3 L eta less in step and lag together (2/a - 3/2, not 2/a + 3/2).
Checked by tests/theory/test_comparison_rows.py.
"""

from __future__ import annotations

from sympy import Rational, sqrt

from theory.bound import Bound
from theory.lmo.delayed import METRIC
from theory.lmo.parts import ASSUMPTIONS_LMO, INITIAL, K, L, alpha, eta, rho, sigma

BOUND = Bound(
    name="kovalev",
    title="Kovalev 2025, Theorem 2: LMO method without delay",
    terms={
        "initial": INITIAL,
        "step": Rational(3, 2) * L * eta,
        "momentum_lag": 2 * L * eta / alpha,
        "noise": 2 * sqrt(alpha) * rho * sigma,
        "start": 2 * rho * sigma / (alpha * K),
    },
    metric=METRIC,
    assumptions=(*(name for name in ASSUMPTIONS_LMO if name != "fixed-delay"), "no-delay", "sample-start"),
    reference="Kovalev 2025 (arXiv 2503.12645), Theorem 2",
    origin="paper",
)
