"""Theorem 2s: error feedback at delay 1, the gradient at the weights, without the return term. Kind: upper bound.

Statement, tau = 1, K updates k = 1..K after the first, dbar the average of E delta_k <= 2:
    (1/K) sum_{j=0..K-1} E dn(grad f(x_j)) <= Delta0/(eta K) + L eta/2 + 2 L eta (1-a)/a + L eta dbar
        + L eta (1-a) min(2, dbar/a) + 2 rho sigma sqrt(a/(2-a)) + 2 E0 (1-a)^2/(a K).
Theorem 2 at x has 2 L eta dbar + L eta instead of L eta [dbar + (1-a) min(2, dbar/a)]: this one is smaller whenever
(1-a) min(2, dbar/a) < dbar + 1, so for all a >= 1/2 and for all dbar >= 1; the better of the two holds. Without
momentum (a = 1) it is L eta dbar alone. Against plain delay at the iterate (theory.lmo.at_iterate, L eta) the
correction's bound is smaller if dbar < a, or if dbar < 2 a - 1: a comparison of upper bounds.

Proof, m = m_{k+1}: <grad f(y_k), d_k> >= dn(m) - dn(m - grad f(y_k)) and
dn(m) >= dn(grad f(x_{k-1})) - dn(m - grad f(x_{k-1})). The first error is `ef-momentum-error`. In the second the
gradient of age i, P(i) = a (1-a)^i, was taken at x_{k-1-i}, and
    x_{k-1} - x_{k-1-i} = y_{k-1} - y_{k-1-i} + U_{k-2} - U_{k-2-i}
has norm at most eta (i + min(2, delta_{k-1} + ... + delta_{k-i})) for i >= 1 and is 0 for i = 0. P(i >= 1) = 1-a; over
the run each delta_j is counted sum_{q>=1} P(i >= q) = (1-a)/a times. The index k = 1..K gives x_0, ..., x_{K-1}.
Attained, K -> oo, at a = 1 and dbar = 1 on x^2/2 (theory.feedback.worst_case). Checked by
tests/theory/feedback/test_at_weights.py (on runs, and on that orbit).
"""

from __future__ import annotations

from sympy import Le, Min

from theory.bound import Bound
from theory.lmo import error_feedback
from theory.lmo.error_feedback import dbar
from theory.lmo.parts import L, alpha, eta

BOUND = Bound(
    name="error-feedback-weights",
    title="Theorem 2s: error feedback at delay 1, gradient at the weights",
    terms={
        **error_feedback.BOUND.terms,
        "delay": L * eta * dbar,
        "return": L * eta * (1 - alpha) * Min(2, dbar / alpha),
    },
    metric=r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|_*",
    assumptions=error_feedback.BOUND.assumptions,
    conditions=(Le(dbar, 2),),
    reference="derived here, Theorem 2s; method: arXiv 2606.30634, update level, coefficient 1",
)
