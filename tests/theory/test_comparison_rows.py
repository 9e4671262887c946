"""Bounds side by side: exact ratios, the rows of other papers, layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from theory import BOUNDS, InputError, get_bound
from theory.comparison import DIFFER, at_values, comparison_json, verdict, verdicts
from theory.lmo.layers import rho_of_layers


def compared(first, second):
    comparison = get_bound(first).compare(get_bound(second))
    return comparison, {term.name: term for term in comparison.terms}


def test_the_delay_halves():
    comparison, terms = compared("delayed-lmo", "delayed-lmo-shifted")
    assert terms["delay"].ratio == sp.Rational(1, 2) and terms["delay"].text == "delay: halves"
    assert {term.smaller for name, term in terms.items() if name != "delay"} == {"equal"}
    assert comparison.total.smaller == DIFFER and not comparison.same_metric
    back, terms = compared("delayed-lmo-shifted", "delayed-lmo")
    assert terms["delay"].text == "delay: doubles" and back.total.smaller == DIFFER
    finite, _ = compared("delayed-lmo", "kovalev")
    assert finite.same_metric and finite.total.smaller != DIFFER
    _, terms = compared("delayed-lmo", "error-feedback")
    assert terms["delay"].smaller == "second where dbar/tau < 1" and terms["start"].smaller == "second"
    _, terms = compared("delayed-lmo", "delayed-lmo-nesterov")
    assert terms["noise"].smaller == "first" and terms["momentum_lag"].smaller == "second"
    _, terms = compared("delayed-lmo", "delayed-lmo-inexact")
    assert terms["start"].smaller == "first"  # by its condition r_lo <= r_hi
    _, terms = compared("star-convex", "star-convex-reported")
    assert terms["delay"].text == "delay: in the first only"


def test_mistakes_in_python_are_one_line():
    bound = get_bound("delayed-lmo")
    for call, said in (
        (lambda: bound.tune("eta"), "tune 'eta' is not allowed; give a tuple of names"),
        (lambda: bound.tune(None), "tune None is not allowed"),
        (lambda: bound.expand("eta"), "tuned 'eta' is not allowed"),
        (lambda: bound.compare("kovalev"), "compare: 'kovalev' is not a bound"),
        (lambda: at_values(bound, None, {}), "compare: None is not a bound"),
        (lambda: get_bound(None), "None is not a name"),
        (lambda: get_bound(["delayed-lmo"]), "is not a name"),
    ):
        with pytest.raises(InputError) as found:
            call()
        assert said in str(found.value) and "\n" not in str(found.value)


def test_every_judgement_holds_at_random_values():
    """Where a comparison says smaller, equal or a ratio for all values, numbers agree."""
    rng, judged = np.random.default_rng(0), 0
    groups = [[b for b in BOUNDS.values() if b.name.startswith(start)] for start in ("delayed-lmo", "star", "rpd")]
    for group in groups:
        for first in group[:2]:
            for second in group[1:9]:
                if first.unit != second.unit:
                    with pytest.raises(InputError, match="only bounds of one unit compare"):
                        first.compare(second)
                    continue
                comparison = first.compare(second)
                for _ in range(3):
                    values = dict(eta=rng.uniform(0.01, 1), alpha=rng.uniform(0.01, 1), L=rng.uniform(0, 2))
                    values |= dict(tau=int(rng.integers(0, 5)), sigma=30.0, rho=1.5, Delta0=0.7, E0=0.6, K=50, dbar=1)
                    values |= dict(b=0.3, r=0.4, s=3, r_lo=0.8, r_hi=1.1)
                    values |= dict(gamma=0.02, S=4, delta_max=9, G=1.1, B=1.4, mu=0.3, theta=1.2)
                    values |= dict(sigma_b=0.3, block_age=1)
                    try:
                        one, two = (
                            b.evaluate_terms(**{n: values[n] for n in b.symbols}) for b in (first, second)
                        )
                    except InputError:  # a condition
                        continue
                    for term in comparison.terms:
                        if term.name not in one or term.name not in two:
                            continue
                        a, b = one[term.name], two[term.name]
                        judged += term.smaller in ("equal", "first", "second")
                        slack = 1e-12 * (abs(a) + abs(b))
                        assert term.smaller != "equal" or abs(a - b) <= slack, (first.name, second.name, term)
                        assert term.smaller != "second" or b <= a + slack, (first.name, second.name, term)
                        assert term.smaller != "first" or a <= b + slack, (first.name, second.name, term)
    assert judged > 200


def test_kovalev_against_theorem_1():
    values = dict(eta=0.02, alpha=0.3, K=50, L=1.3, sigma=0.4, rho=1.5, Delta0=0.7)
    kovalev = get_bound("kovalev").evaluate_terms(**values)
    a, eta, K, L, sigma, rho, Delta0 = 0.3, 0.02, 50, 1.3, 0.4, 1.5, 0.7
    noise = 2 * rho * sigma / (a * K) + 2 * math.sqrt(a) * rho * sigma
    expected = Delta0 / (eta * K) + noise + 1.5 * L * eta + 2 * L * eta / a
    assert sum(kovalev.values()) == pytest.approx(expected, rel=1e-14)
    ours = get_bound("delayed-lmo").evaluate_terms(**values, tau=0, E0=rho * sigma)
    for term in kovalev:
        assert ours[term] <= kovalev[term]
    both = kovalev["step"] + kovalev["momentum_lag"] - ours["step"] - ours["momentum_lag"]
    assert both == pytest.approx(3 * L * eta, rel=1e-12)


def test_json_of_a_comparison():
    data = comparison_json(get_bound("delayed-lmo").compare(get_bound("delayed-lmo-shifted")))
    delay = next(term for term in data["terms"] if term["name"] == "delay")
    assert delay["ratio"] == "1/2" and delay["latex"]["first"] == r"2 L \eta \tau"


def test_rho_of_layers():
    """Attained by w_l times isometries, never passed by random matrices."""
    shapes, weights = [(3, 5), (4, 2), (1, 7), (1, 1)], [1.0, 0.5, 2.0, 0.1]
    rho = rho_of_layers(shapes, weights)

    def ratio(matrices):
        dual = sum(w * np.linalg.norm(v, "nuc") for w, v in zip(weights, matrices, strict=True))
        return dual / math.sqrt(sum(np.linalg.norm(v) ** 2 for v in matrices))

    attained = [w * np.eye(*shape) for shape, w in zip(shapes, weights, strict=True)]
    assert ratio(attained) == pytest.approx(rho, rel=1e-14)
    rng = np.random.default_rng(0)
    assert max(ratio([rng.standard_normal(shape) for shape in shapes]) for _ in range(200)) <= rho
    assert rho_of_layers([(3, 5)]) == pytest.approx(math.sqrt(3))
    for bad, message in (
        (([], None), "0 layers"),
        (([(2, 2)], [1.0, 2.0]), "2 of them for 1"),
        (([(2, 0)], None), r"\(2, 0\)"),
        (([(2, 2)], [0.0]), "0.0 is not"),
    ):
        with pytest.raises(InputError, match=message):
            rho_of_layers(*bad)


def test_what_only_one_of_the_two_assumes():
    comparison, _ = compared("delayed-lmo", "kovalev")
    assert comparison.only_first == ("fixed-delay",) and comparison.only_second == ("no-delay", "sample-start")
    comparison, _ = compared("rpd-b", "rpd-d")
    assert comparison.only_first == ("block-second-moment",) and "L*gamma <= 1" in comparison.only_second[1]
    assert comparison.exclusive is None
    comparison, _ = compared("kovalev", "error-feedback")
    assert comparison.exclusive == "no-delay (tau = 0) and delay-one (tau = 1)"
    comparison, _ = compared("delayed-lmo", "delayed-lmo")
    assert comparison.only_first == comparison.only_second == ()


def test_verdicts_at_numbers():
    values = dict(L=1, eta=0.01, alpha=1, tau=0, sigma=0.1, rho=1, Delta0=1, K=1000, E0=0)
    one, two = get_bound("delayed-lmo"), get_bound("kovalev")
    terms = at_values(one, two, values)
    assert terms[0]["start"] == terms[0]["momentum_lag"] == 0  # their ratios are no numbers
    found = verdicts(*terms)
    expected = dict.fromkeys(("step", "momentum_lag", "start", "total"), "larger")
    assert found == expected | dict.fromkeys(("initial", "delay", "noise"), "equal") and list(found)[-1] == "total"
    assert verdicts(terms[1], terms[0])["total"] == "smaller"
    assert verdict(0.1 + 0.2, 0.3) == "equal" and verdict(0, 0) == "equal" and verdict(0, 1e-300) == "larger"
    for other, tau, said in (("kovalev", 5, r"tau = 5 contradicts no-delay \(tau = 0\), which kovalev"),
                             ("error-feedback", 5, "tau = 5 contradicts delay-one"),
                             ("error-feedback-any-delay", 0, "tau >= 1")):
        with pytest.raises(InputError, match=said):
            at_values(one, get_bound(other), {**values, "tau": tau, **({"dbar": 0, "Delta1": 1} if tau == 0 else {})})
    assert at_values(one, get_bound("error-feedback"), {**values, "tau": 1, "dbar": 1})
