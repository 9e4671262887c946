"""What proofs about the gradient s steps back use, at the reference x_{(k-s)+}."""

from __future__ import annotations

from sympy import Abs, Min

from theory.axioms import define, schema
from theory.relation import Relation, eq
from theory.symbols import symbols
from theory.vectors import vectors

tau, k, s = symbols("tau k s")


@schema("fixed-delay", place="x")
def steps_to_the_reference() -> Relation:
    """The gradient was taken min(k, tau) steps back, the reference is min(k, s) steps back."""
    return eq(symbols("reference_age")[0], Abs(Min(k, tau) - Min(k, s)))


_m, _m_before, _taken, _reference = vectors("momentum momentum_before grad_taken grad_reference")
_e, _e_before, _nu, _nu_before = vectors("reference_error reference_error_before noise noise_before")
_w, _w_before, _bias = vectors("reference_lag reference_lag_before reference_bias")
define("first reference", "x_{(0-s)+} = x_0", eq(_reference, vectors("grad")[0]), "first", "x")
define("reference error", "e^s_k = m_{k+1} - grad f(x_{(k-s)+})", eq(_e, _m - _reference), place="x")
define(
    "reference error before",
    "e^{s-1}_{k-1} = m_k - grad f(x_{(k-s)+}): it is s - 1 steps back there",
    eq(_e_before, _m_before - _reference),
    "later",
    "x",
)
define("reference lag", "w^s_k = e^s_k - nu_k", eq(_w, _e - _nu), place="x")
define(
    "reference lag before",
    "w^{s-1}_{k-1} = e^{s-1}_{k-1} - nu_{k-1}",
    eq(_w_before, _e_before - _nu_before),
    "later",
    "x",
)
define("reference bias", "from its gradient to the one taken", eq(_bias, _taken - _reference), place="x")
