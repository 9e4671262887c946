"""The axiom of a tuned step: eta is where Delta0/(eta K) and C eta are equal."""

from __future__ import annotations

from sympy import Rational, sqrt

from theory.axioms import schema
from theory.errors import InputError
from theory.metrics import TUNED
from theory.relation import Relation, eq
from theory.symbols import symbols

alpha, eta, tau, K, L, Delta0 = symbols("alpha eta tau K L Delta0")


@schema("tuned-step")
def tuned_step(c: int) -> Relation:
    """eta sqrt(L K C) = sqrt(Delta0) with C = 1/2 + 2 (1-alpha)/alpha + c tau, c = theory.metrics.TUNED[metric]."""
    if c not in TUNED.values():
        raise InputError(f"c = {c!r} is not allowed; give one of {', '.join(map(str, TUNED.values()))}")
    C = Rational(1, 2) + 2 * (1 - alpha) / alpha + c * tau
    return eq(sqrt(Delta0), eta * sqrt(L) * sqrt(K) * sqrt(C))
