"""Coefficients in LaTeX: equal to what they stand for, like terms together."""

from __future__ import annotations

import pytest
import sympy as sp

from theory import BOUNDS
from theory.readable import coefficient_latex, coefficient_parts, like_terms
from theory.symbols import symbols

tau, L, Delta0, rho, sigma, r_lo, r_hi = symbols("tau L Delta0 rho sigma r_lo r_hi")


@pytest.mark.parametrize("name", ["delayed-lmo-inexact", "rpd-a-drift", "local-sgd-counted"])
def test_like_terms_are_equal(name: str) -> None:
    for order in BOUNDS[name].expand().total:
        free = sorted(order.coefficient.free_symbols, key=str)
        at = {symbol: sp.Rational(3 + 2 * i, 7) for i, symbol in enumerate(free)}
        before, after = (sp.N(form.subs(at)) for form in (order.coefficient, like_terms(order.coefficient)))
        assert abs(before - after) <= 1e-12 * abs(before)


def test_how_they_are_written() -> None:
    x = Delta0 ** sp.Rational(3, 4) * L ** sp.Rational(3, 4) / sp.sqrt(rho * sigma)
    apart = x * (4 * tau - 3) / 2 + x
    assert coefficient_latex(apart) == (
        r"\frac{\left(\Delta_0 L\right)^{3/4} \left(4 \tau - 1\right)}{2 \left(\rho \sigma\right)^{1/2}}"
    )
    assert coefficient_latex((r_hi / r_lo + 1) ** 2 / L) == (
        r"\frac{\left(r_{\mathrm{hi}} + r_{\mathrm{lo}}\right)^{2}}{L r_{\mathrm{lo}}^{2}}"
    )
    assert coefficient_latex(L - rho).startswith(r"\left(") and coefficient_latex(2 * L * tau) == r"2 L \tau"
    assert coefficient_parts(L - rho) == [coefficient_latex(L - rho)]
    terms = [L**i * rho / (Delta0**i + sigma) ** 2 for i in range(1, 6)]
    assert len(coefficient_parts(sp.Add(*terms))) == 5 and "+ L" not in coefficient_parts(sp.Add(*terms))[0]
