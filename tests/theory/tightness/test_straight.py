"""A straight run: the momentum's own bound and, at alpha = 1, Theorem 1s are equalities."""

from __future__ import annotations

from fractions import Fraction

import pytest

from theory import get_bound
from theory.errors import InputError
from theory.tightness.straight import excess


@pytest.mark.parametrize("tau", range(5))
@pytest.mark.parametrize("alpha", [Fraction(1), Fraction(1, 2), Fraction(9, 10)])
def test_attained(tau, alpha):
    found = excess(tau, alpha, 80, 7)
    terms = {
        name: get_bound(name).evaluate_terms(
            L=1, eta=1, alpha=float(alpha), tau=tau, sigma=0, rho=1, Delta0=0, K=1, E0=0
        )
        for name in ("delayed-lmo-momentum", "delayed-lmo-shifted")
    }
    own = sum(terms["delayed-lmo-momentum"].values())
    assert float(found.momentum) == pytest.approx(own, rel=1e-12)  # 0.5^80 is left of the start
    assert found.shifted == Fraction(1, 2) + tau and found.at_iterate == Fraction(1, 2)
    if alpha == 1:
        assert float(found.shifted) == sum(terms["delayed-lmo-shifted"].values())
    else:
        assert float(found.shifted) < sum(terms["delayed-lmo-shifted"].values())


def test_bad_input():
    for tau, alpha, warm_up, steps in ((2, 1, 1, 5), (1, 2, 3, 5), (1, 1, 3, 0)):
        with pytest.raises(InputError):
            excess(tau, Fraction(alpha), warm_up, steps)
