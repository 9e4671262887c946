"""Lemma A: one step of an LMO method descends, up to the error of its momentum. Kind: certified, pathwise.

Statement: f(x_{k+1}) <= f(x_k) - eta dn(grad f(x_k)) + 2 eta dn(e_k) + L eta^2/2, with dn the dual norm.

Proof: smoothness gives f(x_{k+1}) <= f(x_k) - eta <grad f(x_k), d_k> + L eta^2/2, since norm(d_k) <= 1. Then
<grad f, d> = <m, d> - <e, d> >= dn(m) - dn(e) and dn(m) >= dn(grad f) - dn(e).
Nearly tight: one dimension, momentum just across zero. Checked by tests/theory/test_lmo_path.py.
"""

from __future__ import annotations

from sympy import Rational

from theory.inequality import Inequality
from theory.symbols import symbols

f_now, f_next, grad_norm, error_norm, eta, L = symbols("f_now f_next grad_norm error_norm eta L")

INEQUALITY = Inequality(
    name="descent",
    title="Lemma A: descent of one step",
    statement=r"f(x_{k+1}) \le f(x_k) - \eta \|\nabla f(x_k)\|_* + 2 \eta \|e_k\|_* + \frac{L \eta^2}{2}",
    left=f_next,
    terms={
        "objective": f_now,
        "gradient": -eta * grad_norm,
        "momentum_error": 2 * eta * error_norm,
        "step": Rational(1, 2) * L * eta**2,
    },
    assumptions=("duality", "smoothness", "lmo"),
    reference="derived here, Lemma A; without delay: Kovalev 2025 (arXiv 2503.12645), proof of Theorem 2",
)
