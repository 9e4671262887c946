"""Corollaries: Theorems 1 and 1s with the best step, and Theorem 1 with the best momentum too. Kind: upper bound.

C = L (1/2 + 2 (1-a)/a + c tau), c = 2 for Theorem 1, 1 for 1s. Terms in eta: Delta0/(eta K) + C eta, so
    eta* = sqrt(Delta0/(K C)), value 2 sqrt(Delta0 C/K) + noise + start             (delayed-lmo-tuned, -shifted-tuned).
Relative price of the delay, of the part that eta tunes: sqrt(1 + c tau/(1/2 + 2 (1-a)/a)) - 1.

Small a: C = (2 L/a)(1 + a (c tau/2 - 3/4)) exactly. With A = 2 sqrt(2 Delta0 L/K), B = sqrt(2) rho sigma the
leading part is A/sqrt(a) + B sqrt(a), least at a* = A/B, value 2 sqrt(A B) = O(K^{-1/4}). Put in (a valid choice,
optimal to leading order; a* <= 1 is the condition) it is delayed-lmo-tuned-both. There the start is
2 E0 B/(A K) = O(K^{-1/2}) and the delay (c tau/4) A^{3/2}/sqrt(B) = O(K^{-3/4}): relative to the value a* c tau/8,
that is a* tau/4 for Theorem 1 (`theory.expansion` derives these orders).
Machine-checked in `proofs/tuned`. Checked by tests/theory/test_tuned.py, test_lmo_variant_proofs.py and
test_tuned_proof.py.
"""

from __future__ import annotations

from sympy import Expr, Le, Rational, sqrt

from theory.bound import Bound
from theory.lmo import delayed, shifted
from theory.lmo.parts import E0, NOISE, START, Delta0, K, L, alpha, rho, sigma, tau

_HALF = Rational(1, 2)
BEST_ALPHA = 2 * sqrt(L) * sqrt(Delta0) / (sqrt(K) * rho * sigma)  # a* = A/B


def relative_price(delay_constant: Expr | int) -> Expr:
    """sqrt(C(tau)/C(0)) - 1; `delay_constant` is c of the docstring."""
    return sqrt(1 + delay_constant * tau / (_HALF + 2 * (1 - alpha) / alpha)) - 1


def _terms(c: int) -> dict[str, Expr]:
    C = _HALF + 2 * (1 - alpha) / alpha + c * tau  # in L
    size = sqrt(L) * sqrt(Delta0) / sqrt(K)
    return {
        "initial": size * sqrt(C),
        "step": size / (2 * sqrt(C)),
        "momentum_lag": 2 * size * (1 - alpha) / (alpha * sqrt(C)),
        "delay": c * size * tau / sqrt(C),
        "noise": 2 * NOISE,
        "start": 2 * START,
    }


def _tuned(original: Bound, c: int, what: str) -> Bound:
    return Bound(
        name=f"{original.name}-tuned",
        title=f"Corollary of {what}: the best step size",
        terms=_terms(c),
        metric=original.metric,
        assumptions=(*original.assumptions, "tuned-step"),
        reference=f"derived here, {what} at eta*",
    )


BOUND = _tuned(delayed.BOUND, 2, "Theorem 1")
SHIFTED = _tuned(shifted.BOUND, 1, "Theorem 1s")
_SIZE = sqrt(L) * sqrt(Delta0) / sqrt(K)
_NOISE = rho * sigma
_EXCESS = sqrt(1 + BEST_ALPHA * (tau - Rational(3, 4)))  # sqrt(C a*/(2 L))
_SMALL = _SIZE * sqrt(_SIZE) / sqrt(_NOISE) / _EXCESS  # sqrt(L) size/sqrt(C) at a*
BOTH = Bound(
    name="delayed-lmo-tuned-both",
    title="Corollary of Theorem 1, momentum too: the best step size and the leading-order best momentum",
    terms={
        "initial": sqrt(_SIZE) * sqrt(_NOISE) * _EXCESS,
        "step": _SMALL / 2,
        "momentum_lag": sqrt(_SIZE) * sqrt(_NOISE) * (1 - BEST_ALPHA) / _EXCESS,
        "delay": 2 * _SMALL * tau,
        "noise": 2 * _NOISE * sqrt(BEST_ALPHA) / sqrt(2 - BEST_ALPHA),
        "start": E0 * (_NOISE / _SIZE - 2) / K,
    },
    metric=delayed.METRIC,
    assumptions=(*delayed.BOUND.assumptions, "tuned-step", "tuned-momentum"),
    conditions=(Le(4 * L * Delta0, K * rho**2 * sigma**2),),
    reference="derived here, Theorem 1 at eta* and a*",
)
