"""Bounds as values: known numbers, limits, units, exact sums, evaluation on any input, refusal of bad
input.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sympy as sp

from theory import BOUNDS, QUANTITIES, Bound, InputError, get_bound
from theory.bound import TERM_NAMES
from theory.symbols import UNITS, symbols

POINT = dict(L=1, eta=0.01, alpha=0.05, tau=1, sigma=0, rho=1, Delta0=1, K=1000, E0=0)
GENERIC = dict(
    L=1.7, eta=0.02, alpha=0.3, tau=2, sigma=0.9, rho=1.4, Delta0=2.5, K=37, E0=1.1, dbar=0.8, Delta1=2.2
) | dict(gamma=0.03, S=3, M=41, H=4, delta_max=7, theta=1.6, G=1.3, B=2.1, mu=0.4, block_age=1.2) | dict(
    s=5, b=0.2, r=0.7, r_lo=0.8, r_hi=1.1
)


def generic(bound: Bound) -> dict:
    values = {name: GENERIC[name] for name in bound.symbols}
    return at(values, sigma=20.0) if bound.name == "delayed-lmo-tuned-both" else values  # where its alpha is below 1


def horizon(bound: Bound) -> str:
    """What counts the steps of a bound."""
    return "K" if "K" in bound.symbols else "M"


def at(values: dict, **changes) -> dict:
    """values with those changes that they have a place for."""
    return values | {name: value for name, value in changes.items() if name in values}


@pytest.mark.parametrize(
    "name, value",
    [
        ("delayed-lmo", 0.505),  # .1 + .005 + .38 + .02
        ("delayed-lmo-shifted", 0.495),
        ("delayed-lmo-momentum", 0.305),  # .1 + .005 + .19 + .01
        ("delayed-lmo-finite", 0.497),  # lag .38 - .0076, delay .02 - .0004: the geometric sums over K = 1000
    ],
)
def test_known_values(name, value):
    assert abs(get_bound(name).evaluate(**POINT) - value) <= 1e-15


@pytest.mark.mutation
@pytest.mark.parametrize("change", [dict(tau=2), dict(alpha=0.049), dict(K=999), dict(L=1.001)])
def test_known_value_moves_with_every_constant(change):
    assert abs(get_bound("delayed-lmo").evaluate(**{**POINT, **change}) - 0.505) > 1e-5


def test_terms_of_theorem_1():
    terms = get_bound("delayed-lmo").evaluate_terms(**generic(get_bound("delayed-lmo")))
    a, eta, L, K = 0.3, 0.02, 1.7, 37
    expected = dict(
        initial=2.5 / (eta * K),
        step=L * eta / 2,
        momentum_lag=2 * L * eta * (1 - a) / a,
        delay=2 * L * eta * 2,
        noise=2 * 1.4 * 0.9 * np.sqrt(a / (2 - a)),
        start=2 * 1.1 * (1 - a) / (a * K),
    )
    assert terms == pytest.approx(expected, rel=1e-14)
    assert list(terms) == [name for name in TERM_NAMES if name in expected]


def test_relations_between_bounds():
    classical, shifted = get_bound("delayed-lmo"), get_bound("delayed-lmo-shifted")
    assert sp.simplify(classical.terms["delay"] - 2 * shifted.terms["delay"]) == 0
    for term in ("initial", "step", "momentum_lag", "noise", "start"):
        assert shifted.terms[term] == classical.terms[term]
    momentum = get_bound("delayed-lmo-momentum")
    for term in ("momentum_lag", "delay", "noise", "start"):
        assert sp.simplify(classical.terms[term] - 2 * momentum.terms[term]) == 0
    at_y, at_x = get_bound("error-feedback"), get_bound("error-feedback-at-x")
    for term in ("initial", "step", "momentum_lag", "noise"):
        assert at_y.terms[term] == classical.terms[term]
    L, eta, alpha, tau, dbar, Delta0, Delta1 = symbols("L eta alpha tau dbar Delta0 Delta1")
    assert sp.simplify(at_y.terms["start"] - (1 - alpha) * classical.terms["start"]) == 0
    assert sp.simplify(at_y.terms["delay"] - classical.terms["delay"].subs(tau, dbar)) == 0
    assert sp.simplify(at_x.expression - at_y.expression - L * eta) == 0
    general = get_bound("error-feedback-any-delay").expression.subs({tau: 1, Delta1: Delta0})
    assert sp.simplify(general - at_y.expression) == 0


def test_limits():
    """tau = 0 removes the delay, alpha = 1 removes lag and start, sigma = 0 the noise, K large the initial
    terms.
    """
    symbol = {name: quantity.symbol for name, quantity in QUANTITIES.items()}
    for bound in BOUNDS.values():
        for term, name, value in (
            ("momentum_lag", "alpha", 1),
            ("start", "alpha", 1),
            ("noise", "sigma", 0),
            ("delay", "tau", 0),
            ("delay", "dbar", 0),
            ("delay", "delta_max", 0),
            ("delay", "block_age", 0),
        ):
            expression = bound.terms.get(term, sp.S.Zero)
            if bound.origin == "derived here" and expression.has(symbol[name]):
                assert sp.simplify(expression.subs(symbol[name], value)) == 0, (bound.name, term)
        for term in ("initial", "start"):
            values = {symbol["alpha"]: sp.Rational(1, 3), symbol["tau"]: 2, symbol["b"]: sp.Rational(1, 5)}
            if "mu" in bound.symbols:  # a contraction: sympy wants its factor as a number
                values |= {symbol[name]: sp.Rational(1, 5) for name in ("mu", "gamma")} | {symbol["S"]: 3}
            far = bound.terms.get(term, sp.S.Zero).subs(values).subs(sp.Min(2, symbol["K"] - 1), 2)
            assert sp.limit(far, symbol[horizon(bound)], sp.oo) == 0, (bound.name, term)


def test_units():
    """Rescaling f by 3 and x by 5 rescales every term like the metric: a gradient, its square, or f."""
    for bound in BOUNDS.values():
        before = generic(bound)
        after = {}
        for name, value in before.items():
            power_f, power_x = QUANTITIES[name].dimension
            after[name] = value * 3.0**power_f * 5.0**power_x
        old, new = bound.evaluate_terms(**before), bound.evaluate_terms(**after)
        for term in old:
            power_f, power_x = UNITS[bound.unit]
            assert new[term] == pytest.approx(old[term] * 3.0**power_f * 5.0**power_x, rel=1e-12), (bound.name, term)


def test_finite_sums_are_the_averages_of_lemma_c():
    bound = get_bound("delayed-lmo-finite")
    for K in (1, 2, 5, 40):
        for tau in (0, 1, 3, 60):
            for a in (0.05, 0.5, 1.0):
                b, steps = 1 - a, range(K)
                terms = bound.evaluate_terms(
                    L=1, eta=1, alpha=a, tau=tau, sigma=1, rho=1, Delta0=0, K=K, E0=1
                )
                lag = 2 * np.mean([sum(b**j for j in range(1, k + 1)) for k in steps])
                delay = 2 * np.mean(
                    [a * sum(b ** (k - i) * min(i, tau) for i in range(1, k + 1)) for k in steps]
                )
                variance = np.mean([a * a * sum(b ** (2 * (k - i)) for i in range(k + 1)) for k in steps])
                assert terms["momentum_lag"] == pytest.approx(lag, abs=1e-12)
                assert terms["delay"] == pytest.approx(delay, abs=1e-12)
                assert terms["noise"] == pytest.approx(2 * np.sqrt(variance), rel=1e-12)
                assert terms["start"] == pytest.approx(2 * np.mean([b ** (k + 1) for k in steps]), abs=1e-14)


def test_finite_is_never_larger():
    finite, classical = get_bound("delayed-lmo-finite"), get_bound("delayed-lmo")
    rng = np.random.default_rng(1)
    n = 2000
    values = dict(
        L=rng.uniform(0, 3, n),
        eta=rng.uniform(0.01, 1, n),
        alpha=rng.uniform(0.01, 1, n),
        tau=rng.integers(0, 9, n),
        sigma=rng.uniform(0, 2, n),
        rho=rng.uniform(1, 4, n),
        Delta0=1,
        K=rng.integers(1, 200, n),
        E0=rng.uniform(0, 3, n),
    )
    small, large = finite.evaluate_terms(**values), classical.evaluate_terms(**values)
    for term in large:
        assert np.all(small[term] <= large[term] + 1e-12), term  # round-off of terms up to 1e2


@pytest.mark.parametrize("name", list(BOUNDS))
def test_arrays_equal_loops_and_ints_equal_floats(name):
    bound = get_bound(name)
    values, count = generic(bound), horizon(bound)
    steps = np.array([1, 2, 3, 10**7])
    column = bound.evaluate(**{**values, count: steps})
    assert isinstance(column, np.ndarray) and column.shape == (4,)
    for K, from_array in zip(steps, column, strict=True):
        for number in (int(K), float(K), np.int64(K), np.float64(K)):
            assert bound.evaluate(**{**values, count: number}) == pytest.approx(from_array, rel=1e-15)
    assert isinstance(bound.evaluate(**values), float)
    step = next(name for name in ("eta", "gamma", "Delta0") if name in bound.symbols)
    grid = bound.evaluate(**{**values, count: steps[:, None], step: np.array([0.01, 0.02])})
    assert grid.shape == (4, 2)
    assert bound.evaluate(**{**values, count: [1, 2]}).shape == (2,)
    assert bound.evaluate(**{**values, count: np.array([], dtype=int)}).shape == (0,)


@pytest.mark.parametrize("name", list(BOUNDS))
@pytest.mark.parametrize("K", [10**12, 10**15, np.int64(10**12), 10**30])
def test_huge_integers_do_not_wrap(name, K):
    bound = get_bound(name)
    values, count = generic(bound), horizon(bound)
    far = bound.evaluate(**{**values, count: K})
    assert far == pytest.approx(bound.evaluate(**{**values, count: float(K)}), rel=1e-12)
    assert 0 < far < bound.evaluate(**values)


def test_edges_of_the_domain():
    for name in BOUNDS:
        if name == "delayed-lmo-tuned-both":  # its alpha divides by sigma
            continue
        values = at(generic(get_bound(name)), alpha=1, sigma=0, E0=0, L=0, K=1, M=1, S=1, H=1, delta_max=0, block_age=0)
        assert np.isfinite(get_bound(name).evaluate(**values))
    mixed = get_bound("delayed-lmo-finite").evaluate(
        **{**POINT, "tau": np.array([0, 1, 5]), "sigma": [0, 1, 0]}
    )
    one_by_one = [
        get_bound("delayed-lmo-finite").evaluate(**{**POINT, "tau": t, "sigma": s})
        for t, s in ((0, 0), (1, 1), (5, 0))
    ]
    np.testing.assert_allclose(mixed, one_by_one, rtol=1e-15)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(eta=0), r"eta=0 is not allowed: eta must be a number > 0"),
        (dict(eta=-0.1), r"eta=-0.1"),
        (dict(alpha=0), r"alpha must be a number in \(0, 1\]"),
        (dict(alpha=1.01), r"alpha=1.01"),
        (dict(tau=-1), r"tau=-1 is not allowed: tau must be an integer >= 0"),
        (dict(tau=1.5), r"tau=1.5"),
        (dict(K=0), r"K must be an integer >= 1"),
        (dict(K=-(10**7)), r"K=-10000000"),
        (dict(K=[5, 0]), r"K=0"),
        (dict(sigma=float("nan")), r"sigma=nan"),
        (dict(L=float("inf")), r"L=inf"),
        (dict(L="one"), r"L='one' is not a number >= 0"),
        (dict(L=True), r"L=True"),
        (dict(L=1 + 2j), r"L=\(1\+2j\)"),
        (dict(L=None), r"L=None"),
        (dict(L=10**400), r"L=1000"),
        (dict(L=[True, 2]), r"L="),
        (dict(eta=1e-320, K=1), r"term initial: not a finite number"),
        (dict(eta=[0.1, 0.2], K=[1, 2, 3]), r"do not broadcast"),
        (dict(mu=1), r"unknown symbol 'mu'; allowed: eta, alpha, tau"),
        (dict(dbar=1), r"unknown symbol 'dbar'"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(InputError, match=message) as caught:
        get_bound("delayed-lmo").evaluate(**{**POINT, **change})
    assert "\n" not in str(caught.value)


def test_missing_and_unknown_names():
    with pytest.raises(InputError, match="missing K, L"):
        get_bound("delayed-lmo").evaluate(**{k: v for k, v in POINT.items() if k not in ("L", "K")})
    with pytest.raises(InputError, match="unknown bound 'lmo'; .* --list prints all"):
        get_bound("lmo")


def test_conditions():
    bound = get_bound("error-feedback")
    for dbar in (2, 2 + 1e-12):  # a drift measured on a run may pass its limit by round-off
        assert bound.evaluate(**{**generic(bound), "dbar": dbar})
    with pytest.raises(InputError, match=r"holds only for dbar <= 2; given dbar=2.1"):
        bound.evaluate(**{**generic(bound), "dbar": [1, 2.1]})
    general = get_bound("error-feedback-any-delay")
    assert general.evaluate(**{**generic(general), "dbar": 4, "tau": 2})
    with pytest.raises(InputError, match=r"dbar <= 2\*tau; given tau=2, dbar=4.1"):
        general.evaluate(**{**generic(general), "dbar": 4.1, "tau": 2})
    with pytest.raises(InputError, match="tau >= 1"):
        general.evaluate(**{**generic(general), "tau": 0})


def test_construction_refuses_nonsense():
    L, eta, alpha, s = symbols("L eta alpha s")
    good = dict(name="x", title="x", terms={"step": L * eta}, metric="x", assumptions=(), reference="x")
    Bound(**good)
    for change, message in (
        (dict(terms={}), "no terms"),
        (dict(terms={"stp": L}), "unknown term 'stp'"),
        (dict(terms={"step": sp.Symbol("L")}), "'L' is not a quantity"),  # same name, other assumptions
        (dict(terms={"step": sp.Symbol("foo")}), "'foo' is not a quantity"),
        (dict(kind="guess"), "kind 'guess'"),
        (dict(origin="folklore"), "origin 'folklore'"),
        (dict(assumptions=("luck",)), "unknown assumption 'luck'"),
        (dict(conditions=(sp.Eq(L, eta),)), "not an open relation"),
        (dict(conditions=L * eta**2 <= 1), "conditions .* is not a tuple of relations"),
        (dict(conditions=[]), "is not a tuple of relations"),
        (dict(assumptions="lmo"), "assumptions 'lmo' is not a tuple"),
        (dict(assumptions=(1,)), "is not a tuple of names"),
        (dict(terms=L), "terms L is not a dict"),
        (dict(optional=None), "optional None is not a dict"),
        (dict(title=3), "title 3 is not text"),
        (dict(terms={"step": 0.5 * L * eta}), "term step: 0.5.* holds a float; exact numbers only"),
        (dict(terms={"step": 0.5}), "exact numbers only"),
        (dict(terms={"step": "L*eta"}), "'L\\*eta' is not a sympy expression"),
        (dict(conditions=(alpha <= 0.5,)), "exact numbers only"),
        (dict(terms={"step": L * eta * s}, optional={"s": 2.0}), "optional s: 2.0 holds a float"),
        (dict(terms={"step": sp.log(sp.S.Zero)}), "term step: zoo is not a finite real"),
        (dict(terms={"step": sp.S.Zero**-1}), "zoo is not a finite real"),
        (dict(terms={"step": sp.nan}), "nan is not a finite real"),
        (dict(terms={"step": sp.oo * L}), "is not a finite real"),
        (dict(terms={"step": L}), "term step = L has unit f/x\\^2, not f/x"),
        (dict(terms={"step": L * eta + eta}), "term step brings together"),
        (dict(terms={"step": L * eta * (1 - alpha) ** eta}), "term step brings together x and 1"),
        (dict(terms={"step": L * eta * sp.log(eta)}), "brings together x and 1"),
        (dict(terms={"step": sp.sqrt(L * eta)}), "has unit f\\^1/2 x\\^-1/2"),
        (dict(conditions=(L * eta <= 1,)), "condition L\\*eta <= 1 brings together f/x and 1"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            Bound(**{**good, **change})
        assert "\n" not in str(caught.value)
    Bound(**{**good, "terms": {"step": L * eta * 2**s, "start": 0}, "optional": {"s": 2}})


def test_units_see_powers_with_symbols():
    """(L gamma)^K falls apart into L^K gamma^K, each with a unit of its own: the product has none."""
    L, gamma, K, G = symbols("L gamma K G")
    good = dict(name="x", title="x", metric="x", assumptions=(), reference="x")
    Bound(**good, terms={"step": G * (L * gamma) ** K})
    with pytest.raises(InputError, match="term step"):
        Bound(**good, terms={"step": G * L**K})


def test_bounds_are_values():
    for bound in BOUNDS.values():
        for other in (copy.deepcopy(bound), pickle.loads(pickle.dumps(bound))):
            assert other == bound and hash(other) == hash(bound)
    assert len(set(BOUNDS.values())) == len(BOUNDS)


def test_latex():
    printed = [bound.latex() for bound in BOUNDS.values()]
    # metric and formula together tell bounds apart; the finite one shares Theorem 1's metric
    assert len(set(printed)) == len(BOUNDS)
    for bound in BOUNDS.values():
        for text in (bound.latex(), *bound.term_latex().values(), *bound.legend()):
            depth = 0
            for character in text:
                depth += {"{": 1, "}": -1}.get(character, 0)
                assert depth >= 0
            assert depth == 0 and text.count(r"\left(") == text.count(r"\right)")
        assert len(bound.legend()) == len(bound.symbols)
    assert r"2 L \eta \tau" in get_bound("delayed-lmo").latex()
    assert r"\frac{2 L \eta \left(1 - \alpha\right)}{\alpha}" in get_bound("delayed-lmo").latex()
