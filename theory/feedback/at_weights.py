"""Theorem 2s: error feedback at delay 1, the gradient at the weights, without the return term. Kind: upper bound.

Statement, tau = 1, K updates k = 1..K after the first, dbar the average of E delta_k <= 2:
    (1/K) sum_{j=0..K-1} E dn(grad f(x_j)) <= Delta0/(eta K) + L eta/2 + 2 L eta (1-a)/a + L eta dbar
        + L eta (1-a) dbar + 2 rho sigma sqrt(a/(2-a)) + 2 E0 (1-a)^2/(a K).
Theorem 2 at x (x_1, ..., x_K) has 2 L eta dbar + L eta instead of (2-a) L eta dbar: L eta (1 + a dbar) more, always.
Without momentum (a = 1) it is L eta dbar alone. Against plain delay at the iterate (theory.lmo.at_iterate, L eta) the
correction's bound is smaller if dbar < 1/(2-a): a comparison of upper bounds.

Proof, m = m_{k+1}: <grad f(y_k), d_k> >= dn(m) - dn(m - grad f(y_k)) and
dn(m) >= dn(grad f(x_{k-1})) - dn(m - grad f(x_{k-1})). The first error is `ef-momentum-error`. The second is, but for
the noise, 1-a times m_k - grad f(x_{k-1}), as the gradient of step k is taken at x_{k-1}; and that is the first error
one step before, at most (1-a)/a L eta + L eta sum_i a (1-a)^{k-1-i} delta_i, and the change from y_{k-1} to x_{k-1}, at
most L eta. In other words, the gradient of age i >= 1 was taken at x_{k-1-i}, delta_{k-i} before y_{k-i}, that is i - 1
steps before y_{k-1}, which is one before x_{k-1}: together eta (i + delta_{k-i}). Over the run each delta_j is counted
1-a times. The index k = 1..K gives x_0, ..., x_{K-1}.
Attained, K -> oo, at a = 1 and dbar = 1 on x^2/2 (theory.feedback.worst_case). Machine-checked in
theory/lmo/proofs/error_feedback_weights.py. Checked by tests/theory/feedback/test_at_weights.py (on runs, and on that
orbit) and test_at_weights_proof.py.
"""

from __future__ import annotations

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
        "return": L * eta * (1 - alpha) * dbar,
    },
    metric=r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|_*",
    assumptions=error_feedback.BOUND.assumptions,
    conditions=error_feedback.BOUND.conditions,
    reference="derived here, Theorem 2s; method: arXiv 2606.30634, update level, coefficient 1",
)
