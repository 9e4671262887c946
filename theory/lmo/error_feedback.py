"""Theorem 2: LMO method with a delay and error feedback. Kind: upper bound.

A run of K+1 updates, sums over k = 1..K, y and delta_k as in `error_feedback_path`, dbar the average of
E delta_k. For tau = 1, where y_1 = x_0, with Delta0 = f(x_0) - f_* and dbar <= 2:
    (1/K) sum_{k=1..K} E dn(grad f(y_k)) <= Delta0/(eta K) + L eta/2
        + 2 [ L eta (1-a)/a + L eta dbar + rho sigma sqrt(a/(2-a)) + E0 (1-a)^2/(a K) ];
    at x_k: L eta more, since norm(x_k - y_k) = norm(U_{k-1}) <= eta.
Any tau >= 1, both forms, dbar <= 2 tau: y_1 = x_0 - (tau-1) U_0 is not x_0, so the initial gap is
    Delta1 = E f(y_1) - f_* and the start has 2 L eta (tau-1) (1-a)/(a K) more. At tau = 1 it is the first.

Proof: `ef-average` and `ef-momentum-error` in expectation; sum_{k>=1} (1-a)^{k+1} = (1-a)^2/a; the weights
alpha (1-a)^{k-i} of delta_i sum to at most 1 over k. The delay term of Theorem 2 at y is below that of
Theorem 1 at x iff dbar < tau: that compares two upper bounds, not two runs.
Checked by tests/theory/test_bounds.py and tests/theory/test_theorems_on_runs.py.
"""

from __future__ import annotations

from sympy import Ge, Le

from theory.bound import Bound
from theory.lmo.parts import ASSUMPTIONS_LMO, INITIAL, LAG, NOISE, START, STEP, K, L, alpha, eta, tau
from theory.symbols import symbols

dbar, Delta1 = symbols("dbar Delta1")

_DRIFT = L * eta * dbar
_ASSUMPTIONS = (*ASSUMPTIONS_LMO, "error-feedback")
_REFERENCE = "derived here, Theorem 2; method: arXiv 2606.30634, update level, coefficient 1"

BOUND = Bound(
    name="error-feedback",
    title="Theorem 2: error feedback at delay 1, gradient at the virtual iterate",
    terms={
        "initial": INITIAL,
        "step": STEP,
        "momentum_lag": 2 * LAG,
        "delay": 2 * _DRIFT,
        "noise": 2 * NOISE,
        "start": 2 * START * (1 - alpha),
    },
    metric=r"\frac{1}{K} \sum_{k=1}^{K} \mathbb{E} \|\nabla f(y_k)\|_*",
    assumptions=(*_ASSUMPTIONS, "delay-one"),
    conditions=(Le(dbar, 2),),
    reference=_REFERENCE,
)

BOUND_AT_X = Bound(
    name="error-feedback-at-x",
    title="Theorem 2 at the weights: error feedback at delay 1",
    terms={**BOUND.terms, "return": L * eta},
    metric=r"\frac{1}{K} \sum_{k=1}^{K} \mathbb{E} \|\nabla f(x_k)\|_*",
    assumptions=BOUND.assumptions,
    conditions=BOUND.conditions,
    reference=_REFERENCE,
)

BOUND_ANY_DELAY = Bound(
    name="error-feedback-any-delay",
    title="Theorem 2 for any delay: error feedback, gradient at the virtual iterate",
    terms={
        **BOUND.terms,
        "initial": Delta1 / (eta * K),
        "start": 2 * START * (1 - alpha) + 2 * L * eta * (tau - 1) * (1 - alpha) / (alpha * K),
    },
    metric=BOUND.metric,
    assumptions=_ASSUMPTIONS,
    conditions=(Ge(tau, 1), Le(dbar, 2 * tau)),
    reference=_REFERENCE,
)
