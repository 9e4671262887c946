"""Lemma B: what a delay of tau steps does to a gradient. Kind: certified, pathwise; tight.

Statement: dn(grad f(x_{(k-tau)+}) - grad f(x_k)) <= L eta min(k, tau); min(k, tau) <= tau is the delay after
start-up.

Proof: smoothness, and min(k, tau) steps of norm at most eta lie between the two points.
Tight: a quadratic on which every step goes the same way. Checked by tests/theory/test_lmo_path.py.
"""

from __future__ import annotations

from sympy import Min

from theory.inequality import Inequality
from theory.symbols import symbols

delay_bias, L, eta, tau, k = symbols("delay_bias L eta tau k")

INEQUALITY = Inequality(
    name="delay",
    title="Lemma B: bias of a delayed gradient",
    statement=r"\|\nabla f(x_{(k-\tau)_+}) - \nabla f(x_k)\|_* \le L \eta \min(k, \tau)",
    left=delay_bias,
    terms={"delay": L * eta * Min(k, tau)},
    assumptions=("smoothness", "lmo", "constant-step", "fixed-delay"),
    reference="derived here, Lemma B",
)
