"""A bound as a value, over all bounds: JSON trees, derivatives, admissible ranges, optional symbols."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from theory import BOUNDS, QUANTITIES, Bound, InputError, get_bound
from theory.functions import GeometricSum
from theory.serialise import expression_from_json, expression_to_json
from theory.symbols import symbols

GENERIC = dict(
    L=1.7, eta=0.02, alpha=0.3, tau=2, sigma=20.0, rho=1.4, Delta0=2.5, K=37, E0=1.1, dbar=0.8, Delta1=2.2, gamma=0.03
) | dict(S=3, M=41, H=4, delta_max=7, theta=1.6, G=1.3, B=2.1, mu=0.4, block_age=1.2)
GENERIC |= dict(s=5, b=0.2, r=0.7, r_lo=0.8, r_hi=1.1)


def generic(bound: Bound) -> dict:
    return {name: GENERIC[name] for name in bound.symbols}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_json_round_trip(name):
    bound = BOUNDS[name]
    text = json.dumps(bound.to_json())
    again = Bound.from_json(json.loads(text))
    assert again == bound and hash(again) == hash(bound)
    assert again.evaluate(**generic(bound)) == bound.evaluate(**generic(bound))
    assert json.dumps(again.to_json()) == text


EVIL = "__import__('os').system('false')"


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(format="pickle"), "not an object with format"),
        (dict(extra=1), "key 'extra'"),
        (dict(name=3), "name 3 is not text"),
        (dict(terms=[]), r"terms \[\] is not an object"),
        (dict(terms={"step": EVIL}), "unknown quantity"),
        (dict(terms={"step": [EVIL, "L"]}), "operator"),
        (dict(terms={"step": ["lambdify", "L"]}), "operator 'lambdify'"),
        (dict(terms={"step": ["/", 1, 0]}), "no fraction"),
        (dict(terms={"step": ["/", True, 2]}), "no fraction"),
        (dict(terms={"step": 0.5}), "0.5 is no name, integer"),
        (dict(terms={"step": True}), "True is no name"),
        (dict(terms={"step": None}), "None is no name"),
        (dict(terms={"step": []}), r"\[\] is no name"),
        (dict(terms={"step": ["+", "L"]}), r"\+ with 1 operands"),
        (dict(terms={"step": ["^", 10, 10**9]}), "beyond 64 bits"),
        (dict(terms={"step": ["^", 10**40, 1000]}), "beyond 64 bits"),
        (dict(terms={"step": ["^", ["*", 3, "L"], 10**12]}), "beyond 64 bits"),
        (dict(terms={"step": ["^", ["^", ["*", 3, "L"], 1000], 1000]}), "beyond 64 bits"),
        (dict(terms={"step": ["GeometricSum", 2, 3, 30_000_000]}), "GeometricSum.*beyond 64 bits in 1000 terms"),
        (dict(terms={"step": ["GeometricSum", ["*", 3, "L"], ["*", 3, "L"], 10**12]}), "in 1000 terms"),
        (dict(terms={"step": ["GeometricSum", 10**40, 3, 1000]}), "in 1000 terms"),
        (dict(terms={"step": ["ceiling", ["exp", 1_000_000]]}), "exp of a number.*up to 1000"),
        (dict(terms={"step": ["ceiling", ["exp", ["exp", 20]]]}), "exp of a number.*up to 1000"),
        (dict(terms={"step": ["floor", ["^", ["exp", 1000], 1000]]}), "floor of a number"),
        (dict(terms={"step": ["ceiling", ["*", ["exp", 900], ["exp", 900]]]}), "ceiling of a number"),
        (dict(terms={"step": ["floor", ["log", -2]]}), "floor of a number"),
        (dict(terms={"luck": "L"}), "unknown term 'luck'"),
        (dict(conditions=[["=", "L", 1]]), "condition"),
        (dict(conditions=[["<=", "L"]]), "condition"),
        (dict(assumptions=[1]), "are not names"),
        (dict(assumptions=["luck"]), "unknown assumption 'luck'"),
        (dict(optional={"luck": 1}), "optional 'luck' is not a quantity"),
        (dict(kind="guess"), "kind 'guess'"),
        (dict(unit="kg"), "unit 'kg'"),
    ],
)
def test_json_refusals(change, message):
    data = copy.deepcopy(get_bound("delayed-lmo").to_json()) | change
    with pytest.raises(InputError, match=message) as caught:
        Bound.from_json(data)
    assert "\n" not in str(caught.value)


def test_numbers_within_the_caps_are_computed():
    assert expression_from_json(["GeometricSum", 2, 3, 4]) == 8 + 12 + 18 + 27
    assert expression_from_json(["ceiling", ["exp", 10]]) == 22027
    assert expression_from_json(["GeometricSum", "alpha", "alpha", 3]) == 3 * QUANTITIES["alpha"].symbol ** 2


def test_a_long_geometric_sum_stays_as_it_is():
    """No closed form of 30 million digits; its float is right."""
    long = GeometricSum(sp.Rational(1, 2), sp.Rational(1, 3), 30_000_000)
    assert isinstance(long, GeometricSum) and float(long) == 0
    long = GeometricSum(1, sp.Rational(999, 1000), 30_000_000)
    assert isinstance(long, GeometricSum) and float(long) == pytest.approx(1000, rel=1e-14)
    assert float(GeometricSum(1, 1, 5000)) == 5000


def test_json_of_nonsense():
    for data in (None, [], "x", 3, {}):
        with pytest.raises(InputError, match="not an object"):
            Bound.from_json(data)
    deep: object = "L"
    for _ in range(100):
        deep = ["+", deep, 1]
    with pytest.raises(InputError, match="nested deeper"):
        expression_from_json(deep)
    missing = get_bound("delayed-lmo").to_json()
    del missing["metric"]
    with pytest.raises(InputError, match="'metric' is unknown or missing"):
        Bound.from_json(missing)


def test_symbols_of_one_name_are_never_mixed():
    real = sp.Symbol("L", real=True)
    with pytest.raises(InputError, match="other assumptions"):
        expression_to_json(real)
    with pytest.raises(InputError, match="'L' is not a quantity"):
        Bound("x", "x", {"step": real}, "x", (), "x")
    with pytest.raises(InputError, match="'L' is not a quantity"):
        Bound("x", "x", {"step": symbols("L")[0]}, "x", (), "x", conditions=(sp.Le(real, 1),))
    for text in ('["+", "L", "eta"]', '"sigma"'):  # what is read has the table's symbol
        for symbol in expression_from_json(json.loads(text)).free_symbols:
            assert symbol == QUANTITIES[str(symbol)].symbol
    with pytest.raises(InputError, match="sin"):
        expression_to_json(sp.sin(symbols("L")[0]))


@pytest.mark.parametrize("name", list(BOUNDS))
def test_derivatives_against_differences(name):
    """Central differences of relative step 1e-5: error of order 1e-10 relative, and round-off 1e-11."""
    bound, values = BOUNDS[name], generic(BOUNDS[name])
    for symbol in bound.symbols:
        if QUANTITIES[symbol].domain.integer:
            with pytest.raises(InputError, match=f"derivative by '{symbol}'"):
                bound.derivative(symbol)
            continue
        x, step = values[symbol], 1e-5 * values[symbol]
        up, down = (bound.evaluate(**values | {symbol: point}) for point in (x + step, x - step))
        numeric = (up - down) / (2 * step)
        exact = bound.derivative_at(symbol, **values)
        assert exact == pytest.approx(numeric, rel=1e-6, abs=1e-8 * bound.evaluate(**values) / x), symbol
    with pytest.raises(InputError, match="derivative by 'zeta'"):
        bound.derivative("zeta")


def test_derivative_is_an_expression():
    eta, L, K, Delta0 = symbols("eta L K Delta0")
    bound = Bound("x", "x", {"initial": Delta0 / (eta * K), "step": L * eta}, "x", (), "x")
    assert bound.derivative("eta") == L - Delta0 / (eta**2 * K)


def test_admissible_ranges():
    bound = get_bound("pipedream-exact")
    (interval,) = bound.admissible("gamma", S=16, L=1)
    root = (-1 + np.sqrt(1 + 8 * 225)) / (4 * 225)  # of x + 2 x^2 15^2 = 1
    assert interval.open_low and interval.low == 0 and interval.high == pytest.approx(root, rel=1e-12)
    assert interval.contains(interval.high) and not interval.contains(0)
    values = dict(S=16, M=10, L=1, sigma=0.1, Delta0=1)
    with pytest.raises(InputError, match=rf"gamma must be <= {str(root)[:7]}") as caught:
        bound.evaluate(**values, gamma=0.1)
    printed = float(str(caught.value).split("gamma must be <= ")[1].split(",")[0])
    assert printed <= root and bound.evaluate(**values, gamma=printed) > 0  # what is printed is itself allowed
    (stages,) = bound.admissible("S", gamma=0.1, L=1)
    assert (stages.low, stages.high) == (1, 7) and bound.evaluate(**values | dict(S=7), gamma=0.1) > 0
    with pytest.raises(InputError, match="holds only"):
        bound.evaluate(**values | dict(S=8), gamma=0.1)
    (free,) = get_bound("delayed-lmo").admissible("alpha")
    assert (free.low, free.high, free.open_low, free.open_high) == (0, 1, True, False)
    with pytest.raises(InputError, match="missing S, L"):
        bound.admissible("gamma")
    assert bound.admissible("gamma", S=1, L=0)[0].high == np.inf


@pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.conditions])
def test_every_condition_names_an_admissible_value(name):
    """Break each condition; some value that the refusal names is then accepted."""
    bound, values = BOUNDS[name], generic(BOUNDS[name])
    for symbol in bound.symbols:
        if not any(QUANTITIES[symbol].symbol in c.free_symbols for c in bound.conditions):
            continue
        intervals = bound.admissible(symbol, **values)
        assert any(interval.contains(values[symbol]) for interval in intervals)
        for interval in intervals:
            ends = [interval.high] if np.isfinite(interval.high) else []
            for end in ends:
                if interval.contains(end):
                    bound.evaluate(**values | {symbol: end})
                beyond = end + (1 if QUANTITIES[symbol].domain.integer else 0.01 * max(end, 1))
                with pytest.raises(InputError, match=symbol):
                    bound.evaluate(**values | {symbol: beyond})


def test_round_off_of_conditions_is_relative_and_small():
    """Conditions of set quantities hold to float64 at any scale of units; only those of measurements give 1e-6."""
    both = get_bound("delayed-lmo-tuned-both")
    small = dict(L=1e-7, Delta0=1e-7, K=4, rho=1.0, sigma=1e-7, tau=1, E0=0.0)
    assert both.evaluate(**small) > 0  # 4 L Delta0 = K rho^2 sigma^2, in either rounding
    for change in (dict(L=1.01e-7), dict(Delta0=1.01e-7), dict(sigma=[1e-7, 0.99e-7])):
        with pytest.raises(InputError, match="holds only"):
            both.evaluate(**small | change)
    paper = get_bound("rpd-paper")
    values = generic(paper) | dict(L=3.0)
    assert paper.evaluate(**values | dict(gamma=1 / 3.0)) > 0
    with pytest.raises(InputError, match="holds only"):
        paper.evaluate(**values | dict(gamma=(1 + 1e-9) / 3.0))
    drift = get_bound("error-feedback")
    assert drift.evaluate(**generic(drift) | dict(dbar=2 + 1e-6)) > 0
    with pytest.raises(InputError, match="holds only"):
        drift.evaluate(**generic(drift) | dict(dbar=2 + 1e-5))
    quality = get_bound("delayed-lmo-inexact")
    tiny = generic(quality) | dict(r_lo=1e-7, r_hi=0.5e-7)
    with pytest.raises(InputError, match="holds only"):
        quality.evaluate(**tiny)


def test_optional_symbols_are_checked_when_constructed():
    L, eta, tau, s = symbols("L eta tau s")
    good = dict(name="x", title="x", terms={"step": L * eta * s}, metric="x", assumptions=(), reference="x")
    assert Bound(**good, optional={"s": 2}).evaluate(L=1, eta=0.5) == 1
    for optional, message in (({"tau": 1}, "optional tau"), ({"s": tau}, "optional s"), ({"s": s + 1}, "optional s")):
        with pytest.raises(InputError, match=message):
            Bound(**good, optional=optional)
    with pytest.raises(InputError, match="missing eta; needed: eta, L"):
        Bound(**good, optional={"s": 2}).evaluate(L=1)


def test_exact_numbers_are_values():
    """Fractions and numbers of sympy count as the floats they are; symbols, complex and infinite ones do not."""
    bound = Bound("x", "x", {"step": symbols("L")[0] * symbols("eta")[0]}, "x", (), "x")
    assert bound.evaluate(L=Fraction(1, 2), eta=sp.Rational(1, 4)) == 0.125
    assert bound.evaluate(L=sp.sqrt(2), eta=sp.Integer(1)) == float(sp.sqrt(2))
    assert bound.evaluate(L=[Fraction(1, 2), sp.pi], eta=1).tolist() == [0.5, float(sp.pi)]
    for bad in (sp.Symbol("q"), sp.I, sp.oo, sp.nan, sp.zoo, sp.true, Fraction(10**400), Fraction(1, 10**400)):
        with pytest.raises(InputError, match="eta"):
            bound.evaluate(L=1, eta=bad)


@pytest.mark.parametrize(
    "tree",
    [
        ["log", 0],
        ["^", 0, -1],
        ["^", ["log", 0], -1],
        ["Min", ["log", 0], 1],
        ["Max", ["log", -1], "L"],
        ["*", 0, ["log", 0]],
        ["exp", ["^", 0, -1]],
        ["log", -1],
        ["^", 0, ["*", -1, "L"]],
    ],
)
def test_infinite_and_complex_terms_are_not_loaded(tree):
    data = get_bound("delayed-lmo").to_json()
    data["terms"]["step"] = tree
    with pytest.raises(InputError, match="not finite|not a finite real|not a real") as caught:
        Bound.from_json(data)
    assert "\n" not in str(caught.value)
