"""Tuning: closed forms against the formulas and a naive grid, limits, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from theory import BOUNDS, Bound, InputError, get_bound
from theory.lmo.tuned import relative_price
from theory.symbols import symbols
from theory.tuning import split

FIXED = dict(L=1, alpha=0.05, tau=1, sigma=0, rho=1, Delta0=1, K=1000, E0=0)
NOISY = dict(L=1.3, tau=2, sigma=0.7, rho=1.4, Delta0=0.8, K=10**5, E0=0.4)


def test_step_in_closed_form():
    tuned = get_bound("delayed-lmo").tune(("eta",), **FIXED)
    C = 0.5 + 2 * (19 + 1)
    assert tuned.method == "closed form" and tuned.limited_by is None
    assert tuned.at["eta"] == pytest.approx(math.sqrt(1 / (1000 * C)), rel=1e-14)
    assert tuned.value == pytest.approx(2 * math.sqrt(C / 1000), rel=1e-14)
    assert tuned.relative_price == pytest.approx(0.0256, abs=5e-5)
    grid = tuned.at["eta"] * np.geomspace(0.1, 10, 1001)
    assert np.all(get_bound("delayed-lmo").evaluate(**FIXED, eta=grid) >= tuned.value * (1 - 1e-14))
    numbers = (1, sp.Rational(1, 20), 1, 1, 1000)
    eta = tuned.formula["eta"].subs(dict(zip(symbols("L alpha tau Delta0 K"), numbers, strict=True)))
    assert float(eta) == pytest.approx(tuned.at["eta"], rel=1e-14)


@pytest.mark.parametrize("alpha, classical, shifted", [(0.05, 0.026, 0.013), (0.5, 0.34, 0.18), (1.0, 1.24, 0.73)])
def test_relative_price_of_the_delay(alpha, classical, shifted):
    values = FIXED | dict(alpha=alpha, sigma=0.3)
    for name, expected, c in (("delayed-lmo", classical, 2), ("delayed-lmo-shifted", shifted, 1)):
        tuned = get_bound(name).tune(("eta",), **values)
        assert tuned.relative_price == pytest.approx(expected, abs=0.006)
        a, tau = symbols("alpha tau")
        assert tuned.relative_price == pytest.approx(float(relative_price(c).subs({a: alpha, tau: 1})), rel=1e-12)
        assert 0 < tuned.relative_price_total < tuned.relative_price  # noise is not the delay's fault


@pytest.mark.parametrize("name", ["delayed-lmo", "delayed-lmo-shifted"])
def test_the_corollary_is_the_bound_at_its_best_step(name):
    values = NOISY | dict(alpha=0.3)
    tuned = get_bound(name).tune(("eta",), **values)
    terms = get_bound(f"{name}-tuned").evaluate_terms(**values)
    assert terms == pytest.approx(tuned.terms, rel=1e-12)


def test_both():
    bound = get_bound("delayed-lmo")
    tuned = bound.tune(("eta", "alpha"), **NOISY)
    etas = tuned.at["eta"] * np.geomspace(0.3, 3, 201)[:, None]
    alphas = np.minimum(tuned.at["alpha"] * np.geomspace(0.3, 3, 201), 1)
    assert bound.evaluate(**NOISY, eta=etas, alpha=alphas).min() >= tuned.value * (1 - 1e-12)
    corollary = get_bound("delayed-lmo-tuned-both").evaluate(**NOISY)
    assert tuned.value <= corollary <= 1.001 * tuned.value  # its alpha is the best to leading order
    swapped = bound.tune(("alpha", "eta"), **NOISY)
    assert swapped.value == pytest.approx(tuned.value, rel=1e-12)


@pytest.mark.parametrize("K", [10**15, 10**30])
def test_the_grid_goes_on_until_the_bound_rises(K):
    """The best momentum of a very long run is 2 (L Delta0/K)^{1/2}/(rho sigma), far below the grid's start."""
    tuned = get_bound("delayed-lmo").tune(("eta", "alpha"), L=1, tau=2, sigma=1, rho=1, Delta0=1, E0=0, K=K)
    assert tuned.at["alpha"] == pytest.approx(2 / math.sqrt(K), rel=1e-4) and tuned.limited_by is None
    assert tuned.value == pytest.approx(4 * K**-0.25, rel=1e-6)


def test_what_falls_all_the_way_is_said_to_fall_to_the_end_of_the_grid():
    alpha, L, eta, sigma = symbols("alpha L eta sigma")
    step = dict(title="t", metric="m", assumptions=(), reference="r")
    toy = Bound(name="toy", terms={"noise": sigma * sp.sqrt(alpha) + L * eta * alpha**2}, **step)
    message = r"it still falls at alpha = [\d.]+e-\d+, the first point of the grid"
    with pytest.raises(InputError, match=message):
        toy.tune(("alpha",), L=1, eta=1, sigma=1)


def test_the_price_is_there_or_said_to_be_undefined():
    """Against the same bound tuned at delay 0 by hand; where there is no such bound, the note says why."""
    blocks = dict(S=16, K=1000, L=1, G=1, delta_max=248, Delta0=1)
    tuned, at_0 = (get_bound("rpd-b").tune(("gamma",), **blocks | dict(delta_max=d)) for d in (248, 0))
    assert tuned.relative_price_total == pytest.approx(tuned.value / at_0.value - 1) and tuned.relative_price_total > 1
    assert tuned.relative_price_note is None and at_0.relative_price_total == 0
    gd = get_bound("delayed-gd").tune(("gamma",), tau=2, K=100, L=1, Delta0=1)
    assert gd.relative_price is None and gd.relative_price_total > 0  # no closed form: only the whole
    ages = FIXED | dict(dbar=1, Delta1=1)
    for name, values, said in (
        ("kovalev", {n: v for n, v in FIXED.items() if n not in ("tau", "E0")}, "no symbol of a delay"),
        ("delayed-lmo-median", FIXED | dict(s=3), "s is given"),
        ("error-feedback-any-delay", {n: v for n, v in ages.items() if n != "Delta0"}, "no tuned value at tau = 0"),
    ):
        tuned = get_bound(name).tune(("eta",), **values)
        assert tuned.relative_price_total is None and said in tuned.relative_price_note


def test_only_choices_are_tuned():
    with pytest.raises(InputError, match="tune L; allowed are eta, alpha, each once"):
        get_bound("delayed-lmo").tune(("L",), **{n: v for n, v in FIXED.items() if n != "L"}, eta=0.1)
    with pytest.raises(InputError, match="nothing to tune"):
        get_bound("delayed-lmo-tuned-both").tune(("eta",), **NOISY)
    split = dict(gamma=1e-3, M=100, S=4, L=1, sigma=1, block_age=1, Delta0=1)
    assert get_bound("pipedream-exact-split").tune(("theta",), **split).at["theta"] > 0


def test_limits_are_named():
    no_noise = get_bound("delayed-lmo").tune(("eta", "alpha"), **NOISY | dict(sigma=0, E0=0))
    assert no_noise.at["alpha"] == 1 and no_noise.limited_by == "alpha <= 1"
    # theta = 1: gamma L + 2 gamma^2 L^2 (S-1)^2 <= 1 stops the step of a short run
    short = get_bound("pipedream-exact").tune(("gamma",), S=16, M=100, L=1, sigma=0.1, Delta0=1)
    assert "<= 1" in short.limited_by
    assert short.at["gamma"] == pytest.approx((-1 + math.sqrt(1 + 8 * 225)) / (4 * 225), rel=1e-9)
    rest = dict(title="t", metric="m", assumptions=(), reference="r", unit="(f/x)^2")
    L, gamma, Delta0, K, G = symbols("L gamma Delta0 K G")
    terms = {"initial": Delta0 / (gamma * K), "step": L * gamma * G**2}
    toy = Bound(name="toy", terms=terms, conditions=(L * gamma <= 1,), **rest)
    tuned = toy.tune(("gamma",), L=2, Delta0=8, K=1, G=1)
    assert (tuned.at["gamma"], tuned.limited_by, tuned.formula) == (0.5, "L*gamma <= 1", {})
    assert tuned.value == 17


@pytest.mark.parametrize(
    "names, change, message",
    [
        (("eta",), dict(L=0), "keeps falling as eta grows"),
        (("eta",), dict(Delta0=0), "keeps falling as eta shrinks"),
        (("eta", "alpha"), dict(L=0), "keeps falling as eta grows"),
        (("K",), {}, "tune K; allowed are eta, alpha"),
        ((), {}, "tune nothing"),
        (("eta", "eta"), {}, "each once"),
        (("eta", "L"), {}, "tune eta, L; allowed are eta, alpha, each once"),
        (("eta",), dict(K=[1, 2]), "K is an array"),
        (("eta",), dict(mu=1), "unknown symbol 'mu'"),
        (("eta",), dict(alpha=2), "alpha must be"),
    ],
)
def test_refusals(names, change, message):
    values = NOISY | dict(alpha=0.3) | change
    if "alpha" in names:
        values.pop("alpha")
    with pytest.raises(InputError, match=message) as caught:
        get_bound("delayed-lmo").tune(names, **values)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="missing K"):
        get_bound("delayed-lmo").tune(("eta",), **{n: v for n, v in NOISY.items() if n != "K"}, alpha=0.1)


def test_split():
    eta, L, K = symbols("eta L K")
    assert split(K / eta + L + 2 * L * eta, eta) == (K, L, 2 * L)
    assert split((K + L * eta) * (1 + eta) / eta, eta) == (K, K + L, L)
    assert split(eta**2, eta) is None and split(sp.sqrt(eta), eta) is None
    for bound in BOUNDS.values():
        x = symbols("eta")[0]
        parts = split(bound.expression, x)
        if parts is not None:
            A, B, C = parts
            assert sp.expand(A / x + B + C * x - bound.expression) == 0
            assert not any(part.has(x) for part in parts)
