"""The table of quantities: one of each name, LaTeX and symbol; domains that say what they admit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theory.errors import InputError
from theory.symbols import NATURAL, POSITIVE, QUANTITIES, Domain, Quantity, get_quantity, symbols


def test_table():
    wanted = "eta alpha tau sigma rho L K Delta0 E0 beta dbar S m k c".split()
    assert set(wanted) <= set(QUANTITIES)
    for name, quantity in QUANTITIES.items():
        assert quantity.name == name == str(quantity.symbol)
        assert quantity.symbol == get_quantity(name).symbol
    for column in ("latex", "meaning"):
        assert len({getattr(quantity, column) for quantity in QUANTITIES.values()}) == len(QUANTITIES), column
    eta, tau, sigma = symbols("eta tau sigma")
    assert eta.is_positive and tau.is_integer and tau.is_nonnegative and sigma.is_nonnegative
    with pytest.raises(InputError, match="unknown quantity 'etha'; known: eta"):
        symbols("eta etha")


def test_check_keeps_shape_and_type():
    tau = QUANTITIES["tau"]
    assert tau.check(3).shape == () and tau.check(3).dtype == np.float64
    assert tau.check(np.arange(6, dtype=np.int32).reshape(2, 3)).shape == (2, 3)
    assert tau.check(np.float32(2)) == 2.0
    assert tau.check([1, 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "domain, inside, outside, text",
    [
        (NATURAL, [0, 1, 10**9], [-1, 0.5, math.nan, math.inf], "an integer >= 0"),
        (POSITIVE, [1e-300, 1e300], [0, -1, math.inf], "a number > 0"),
        (Domain(0, 1, open_low=True), [1e-9, 1], [0, 1 + 1e-9], "a number in (0, 1]"),
        (Domain(0, 1, open_high=True), [0, 1 - 1e-9], [1, -1e-9], "a number in [0, 1)"),
        (Domain(high=2), [-1e9, 2], [2.1, -math.inf], "a number <= 2"),
        (Domain(high=2, open_high=True), [1.9], [2], "a number < 2"),
        (Domain(), [-5, 5], [math.nan, math.inf, -math.inf], "a finite number"),
        (Domain(integer=True), [-5, 5], [0.5], "an integer"),
    ],
)
def test_domains(domain, inside, outside, text):
    assert domain.admits(np.array(inside, dtype=float)).all()
    assert not domain.admits(np.array(outside, dtype=float)).any()
    assert domain.text == text


def test_construction_refuses_nonsense():
    with pytest.raises(InputError, match="admits no number"):
        Domain(low=1, high=0)
    with pytest.raises(InputError, match="admits no number"):
        Domain(low=1, high=1, open_low=True)
    good = dict(name="x", latex="x", unit="1", domain=POSITIVE, meaning="a number")
    Quantity(**good)
    for change in (dict(name="2x"), dict(latex="{x"), dict(latex=""), dict(unit="kg"), dict(meaning="")):
        with pytest.raises(InputError):
            Quantity(**{**good, **change})
