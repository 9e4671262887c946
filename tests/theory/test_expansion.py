"""Expansions of tuned bounds: against formulas and numbers far out, over all bounds; series against sympy's own."""

from __future__ import annotations

import functools
import math

import pytest
import sympy as sp

from theory.bound import Bound
from theory.errors import InputError
from theory.expansion import Expansion
from theory.pipedream.rates import best_step, growth
from theory.registry import BOUNDS, get_bound
from theory.series import NoSeries, Series, series_of
from theory.symbols import symbols

t, u = sp.Symbol("t", positive=True), sp.Symbol("u", positive=True)
VALUES = dict(L=1.3, tau=2, sigma=1.1, rho=1.4, Delta0=0.9, Delta1=1.2, E0=0.6, dbar=0.7, r_lo=0.8, r_hi=1.1)
VALUES |= dict(S=4, delta_max=9, G=1.2, B=1.7, H=3, theta=1.5, block_age=1.4)
REFUSED = {name for name in BOUNDS if name.startswith(("star-convex", "rpd-pl", "delayed-gd"))}
FAR = ["delayed-lmo", "delayed-lmo-nesterov", "kovalev", "delayed-lmo-median", "delayed-lmo-finite"]
FAR += ["delayed-lmo-inexact-median", "error-feedback-weights", "delayed-lmo-iterate"]
SGD = [name for name, bound in BOUNDS.items() if "gamma" in bound.symbols and name not in REFUSED]


@functools.cache
def expanded(name: str) -> Expansion:
    return get_bound(name).expand()


def at(expression: sp.Expr, values: dict[str, float]) -> float:
    return float(expression.subs({symbols(name)[0]: sp.Float(value, 40) for name, value in values.items()}))


def fitting(bound: Bound) -> dict[str, float]:
    return {name: value for name, value in VALUES.items() if name in bound.symbols}


@pytest.mark.parametrize("name, relative", [("delayed-lmo", 4), ("delayed-lmo-shifted", 8)])
def test_where_the_delay_goes(name, relative):
    expansion = get_bound(name).expand(("eta", "alpha"))
    L, Delta0, K, rho, sigma, tau, E0 = symbols("L Delta0 K rho sigma tau E0")
    A, B = 2 * sp.sqrt(2 * Delta0 * L), sp.sqrt(2) * rho * sigma  # A without its K^{-1/2}
    powers = {term: order.power for term, order in expansion.terms.items()}
    assert powers["noise"] == -sp.Rational(1, 4) == powers["initial"] == powers["momentum_lag"]
    assert powers["start"] == -sp.Rational(1, 2) and powers["delay"] == powers["step"] == -sp.Rational(3, 4)
    assert sp.simplify(expansion.at["alpha"].coefficient - A / B) == 0
    assert sp.simplify(expansion.total[0].coefficient - 2 * sp.sqrt(A * B)) == 0
    assert sp.simplify(expansion.terms["start"].coefficient - 2 * E0 * B / A) == 0
    a_star = expansion.at["alpha"].expression()
    assert sp.simplify(expansion.delay_relative.expression() - a_star * tau / relative) == 0
    assert expansion.delay.power == -sp.Rational(3, 4)
    assert sp.simplify(expansion.delay.coefficient - expansion.terms["delay"].coefficient) == 0


@pytest.mark.parametrize("name", list(BOUNDS))
def test_every_bound_expands_or_names_what_is_missing(name):
    """The leading orders of the terms add up to the leading order of the whole, at the tuned symbols."""
    bound = BOUNDS[name]
    if name in REFUSED:
        with pytest.raises(InputError, match=rf"^bound {name}: has no best .* missing is a term in 1/[^\n]*$"):
            bound.expand()
        return
    found, values = expanded(name), fitting(bound)
    whole = max(order.power for order in found.terms.values() if order)
    parts = sum(at(order.coefficient, values) for order in found.terms.values() if order and order.power == whole)
    assert found.horizon in bound.symbols and found.total[0].power == whole
    assert parts == pytest.approx(at(found.total[0].coefficient, values), rel=1e-12)


@pytest.mark.parametrize("name", FAR)
def test_expansions_far_out(name):
    """The remainder after three orders is of order K^{-1}: it falls 10 times where K grows 10 times."""
    bound = get_bound(name)
    total = sum(order.expression() for order in expanded(name).total)
    errors = []
    for K in (10**10, 10**12):
        here = fitting(bound) | dict(K=K)
        errors.append(abs(bound.tune(("eta", "alpha"), **here).value - at(total, here)))
    assert errors[0] > 0 and errors[1] / errors[0] == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize("name", SGD)
def test_expansions_in_gamma_far_out(name):
    """Against the exact best step: the remainder is of order K^{-3/2}, 1000 times less where K grows 100 times."""
    bound = get_bound(name)
    found = expanded(name)
    total, step = sum(order.expression() for order in found.total), found.at["gamma"].expression()
    errors, steps = [], []
    for K in (10**8, 10**10):
        here = fitting(bound) | {found.horizon: K}
        gamma = bound.tune(("gamma",), **here).at["gamma"] if "variance" in name else best_step(bound, **here)
        errors.append(abs(bound.evaluate(**here, gamma=gamma) - at(total, here)))
        steps.append(gamma / at(step, here))
    assert errors[0] > 0 and errors[1] / errors[0] < 2e-3
    assert 0 < abs(steps[1] - 1) < 0.2 * abs(steps[0] - 1)  # relative error K^{-1/2}


def test_the_delay_of_randomized_pipedream_as_the_table_of_rates_has_it():
    """The powers of S of theory.pipedream.rates, from the expansion: S^4 where windows are not counted, S^2 for D."""
    for name, power in (("rpd-paper", 4), ("rpd-b", 3), ("rpd-c", 4), ("rpd-d", 2)):
        delay = expanded(name).delay
        assert delay.power == -1 and growth(delay.coefficient) == power


def test_with_momentum_fixed():
    expansion = get_bound("delayed-lmo").expand(("eta",))
    noise, rest = expansion.total
    assert noise.power == 0 and rest.power == -sp.Rational(1, 2) and set(expansion.at) == {"eta"}
    bound, values = get_bound("delayed-lmo"), fitting(get_bound("delayed-lmo")) | dict(alpha=0.2, K=10**12)
    assert at(noise.expression() + rest.expression(), values) == pytest.approx(bound.tune(("eta",), **values).value)
    assert get_bound("delayed-lmo-finite").expand(("eta",)).total[0] == noise
    median = get_bound("delayed-lmo-median").expand(("eta",))
    assert median.total[1].coefficient.has(symbols("s")[0])


def test_the_median_age_is_a_real_number_there():
    """(1 + ln 2)/alpha in place of 2/alpha: the leading order is smaller by the fourth root of the ratio."""
    one, median = (expanded(name).total[0].coefficient for name in ("delayed-lmo", "delayed-lmo-median"))
    assert float(sp.simplify(median / one)) == pytest.approx(((1 + math.log(2)) / 2) ** 0.25)


def test_expansion_refusals():
    for name, tuned, message in (
        ("delayed-lmo", ("alpha",), "tuned alpha; an expansion is one after tuning eta or eta, alpha"),
        ("delayed-lmo", (), "tuned nothing"),
        ("delayed-lmo", ("eta", "eta"), "tuned eta, eta"),
        ("rpd-b", ("gamma", "alpha"), "tuned gamma, alpha; an expansion is one after tuning gamma"),
    ):
        with pytest.raises(InputError, match=message):
            get_bound(name).expand(tuned)


ALPHA, K = symbols("alpha K")
KNOWN: dict[sp.Symbol, Series] = {ALPHA: {sp.Integer(2): u}, K: {sp.Integer(-4): sp.S.One}}


@pytest.mark.parametrize(
    "expression",
    [
        (1 - ALPHA) ** 2 / ALPHA,
        sp.sqrt(ALPHA) / sp.sqrt(2 - ALPHA),
        sp.log(2) / sp.log(1 - ALPHA),
        (1 + ALPHA / 3) ** sp.Rational(5, 3) / K,
        sp.exp(ALPHA) * (1 + 1 / sp.sqrt(K)),
    ],
)
def test_series_are_those_of_sympy(expression):
    found = series_of(expression, KNOWN)
    low = min(found)
    wanted = sp.series(expression.subs({ALPHA: u * t**2, K: t**-4}) / t**low, t, 0, 4).removeO()
    ours = sum(c * t ** (p - low) for p, c in found.items() if p < low + 4)
    assert sp.simplify(ours - wanted) == 0


def test_powers_below_all_orders_and_branches():
    assert series_of((1 - ALPHA) ** K, KNOWN) == {} == series_of((1 - ALPHA) ** K, {K: KNOWN[K]})
    tau, s = symbols("tau s")
    assert series_of(sp.Min(tau, K - 1), KNOWN) == {0: tau}
    assert series_of(sp.Max(sp.Rational(1, 4), 1 - ALPHA), KNOWN) == {0: 1, 2: -u}
    assert series_of(sp.Abs(ALPHA - 1), KNOWN) == {0: 1, 2: -u}
    for none in ((1 + ALPHA) ** K, sp.Max(ALPHA * (tau - s), 0), sp.log(ALPHA), sp.sin(ALPHA), sp.Abs(ALPHA + tau - s)):
        with pytest.raises(NoSeries):
            series_of(none, KNOWN)
