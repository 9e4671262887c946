"""What the solver is told of minima, maxima and powers; a false claim that a wrong translation would prove."""

from __future__ import annotations

import pytest
import sympy as sp

pytest.importorskip("z3", reason="the extra proofs is not installed")

import z3

from theory.checkers.linear import implies_positive
from theory.checkers.solver import counterexample, proves
from theory.errors import InputError
from theory.proof import ge, le, symbols

S, k, tau, L, alpha, gamma, K, grad = symbols("S k tau L alpha gamma K grad_norm")


@pytest.mark.mutation
def test_arguments_of_minima_and_maxima_may_be_fractions():
    """1/S once counted as 1 there: min(2, 1/S) >= 1 would have been proved."""
    for least in (sp.Min(2, 1 / S), sp.Min(sp.Rational(1, 2), tau / (1 + tau))):
        assert not proves([], ge(least, sp.Rational(1, 3)))
        assert proves([], ge(least, sp.Integer(0)))
        assert counterexample([], ge(least, sp.Rational(1, 3))) is not None
    assert proves([], le(sp.Min(2, 1 / S), 1 / S)) and not proves([], ge(sp.Min(2, 1 / S), 1 / S - 1 / S**2 / 2 + 1))
    largest = sp.Max(1, L * gamma, tau / (1 + tau))
    assert proves([], ge(largest, sp.Integer(1))) and proves([], ge(largest, L * gamma))
    assert proves([le(L * gamma, sp.Integer(1))], le(largest, sp.Integer(1)))
    assert not proves([], le(largest, sp.Integer(1)))
    with pytest.raises(InputError, match="is not seen to be positive"):
        proves([], le(sp.Min(1, 1 / grad), sp.Integer(1)))


@pytest.mark.mutation
def test_powers_of_what_is_at_least_one_are_at_least_one():
    one = sp.Integer(1)
    assert proves([], ge((1 + L * gamma) ** k, one)) and not proves([], ge((1 - alpha) ** k, one))
    assert proves([], le((1 - alpha) ** k, one)) and not proves([], le((1 + L * gamma) ** k, one))
    assert proves([], le((1 - 1 / S) ** k, one)) and not proves([], ge((1 - 1 / S) ** k, one))
    assert not proves([], ge(L**k, one)) and not proves([], le(L**k, one))
    with pytest.raises(InputError, match="exponents are sums of natural numbers"):
        proves([], ge((1 + L * gamma) ** symbols("inner_grad")[0], one))


@pytest.mark.mutation
def test_linear_consequences():
    x, y = sp.symbols("x y", real=True)
    known = [(1 - x * y + y, "<="), (y - 2, "==")]  # x y >= 1 + y, y = 2
    assert implies_positive(z3, known, x * y - 2, 5.0)
    assert not implies_positive(z3, known, x * y - 3, 5.0)
    assert not implies_positive(z3, known[:1], x * y - 2, 5.0)
    assert not implies_positive(z3, [], x**2 + x * y, 5.0)
    p = sp.Symbol("p", nonnegative=True)
    assert implies_positive(z3, [], 1 + p * K, 5.0) and not implies_positive(z3, [], 1 + p * x, 5.0)
