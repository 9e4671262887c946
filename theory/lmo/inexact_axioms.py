"""The axioms of an inexact oracle: two numbers of the whole run; and the longest step that they allow."""

from __future__ import annotations

from theory.axioms import define, schema
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols

eta, r_lo, r_hi, longest = symbols("eta r_lo r_hi longest_step")


@schema("inexact-lmo")
def inexact_norm() -> Relation:
    """norm(d_k) <= r_hi."""
    return le(symbols("direction_norm")[0], r_hi)


@schema("inexact-lmo")
def inexact_value() -> Relation:
    """<m_{k+1}, d_k> >= r_lo dualnorm(m_{k+1})."""
    return ge(symbols("inner_momentum")[0], r_lo * symbols("momentum_norm")[0])


define("longest step", "eta r_hi", eq(longest, eta * r_hi))
