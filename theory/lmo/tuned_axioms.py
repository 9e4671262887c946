"""The axioms of a tuned step, where Delta0/(eta K) and C eta are equal, and of a tuned momentum.

alpha = 2 scale/noise_scale > 0 with scale = sqrt(L Delta0/K), noise_scale = rho sigma: none of them is 0.
"""

from __future__ import annotations

from sympy import Rational, sqrt

from theory.axioms import schema
from theory.errors import InputError
from theory.metrics import TUNED
from theory.relation import Relation, eq
from theory.symbols import symbols

alpha, eta, tau, K, L, Delta0, sigma, rho = symbols("alpha eta tau K L Delta0 sigma rho")
scale, noise_scale = symbols("scale noise_scale")


@schema("tuned-step")
def tuned_step(c: int) -> Relation:
    """eta sqrt(L K C) = sqrt(Delta0) with C = 1/2 + 2 (1-alpha)/alpha + c tau, c = theory.metrics.TUNED[metric]."""
    if c not in TUNED.values():
        raise InputError(f"c = {c!r} is not allowed; give one of {', '.join(map(str, TUNED.values()))}")
    C = Rational(1, 2) + 2 * (1 - alpha) / alpha + c * tau
    return eq(sqrt(Delta0), eta * sqrt(L) * sqrt(K) * sqrt(C))


@schema("tuned-momentum")
def tuned_momentum() -> Relation:
    """alpha = 2 scale/noise_scale."""
    return eq(alpha, 2 * scale / noise_scale)


@schema("tuned-momentum")
def scale_of_the_run() -> Relation:
    """scale = sqrt(L Delta0/K)."""
    return eq(scale, sqrt(L) * sqrt(Delta0) / sqrt(K))


@schema("tuned-momentum")
def scale_of_the_noise() -> Relation:
    """noise_scale = rho sigma."""
    return eq(noise_scale, rho * sigma)
