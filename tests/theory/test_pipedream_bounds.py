"""PipeDream's bounds side by side: known values at 16 stages, which is sharper, tuned steps, growth with S, limits."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory import BOUNDS, InputError, get_bound
from theory.delays import block_update_delay
from theory.pipedream import hold
from theory.pipedream.rates import best_step, coefficients, growth, inverse_limit, rate, tuned_step
from theory.pipedream.stability import LIMIT
from theory.quadratic import QuadraticMethod
from theory.symbols import QUANTITIES, symbols

gamma, S, sigma, sigma_b, B, G, delta_max, theta, K, M, H = symbols("gamma S sigma sigma_b B G delta_max theta K M H")
FOLDER = [
    name for name, bound in BOUNDS.items() if bound.unit == "(f/x)^2" and not name.startswith("delayed-gd")
]

#: S = 16 stages, each block with a second moment of 1 of which all is noise: G = sigma_b = 1, so B^2 = sigma^2 = 16.
#: K = 160000 block updates are M = 10000 microbatches.
AT_16 = dict(S=16, L=1, gamma=0.04, G=1, B=4, sigma=4, Delta0=1, K=160_000, M=10_000, delta_max=248)


def at_16(name: str, **changes) -> dict[str, float]:
    values = AT_16 | changes
    return get_bound(name).evaluate_terms(**{key: values[key] for key in get_bound(name).symbols})


def test_side_by_side_at_16_stages():
    """The same start, the same step term; the delay's term falls from S^4 over S^3 to S^2."""
    assert block_update_delay(16)["max"] == AT_16["delta_max"]
    rows = {name: at_16(name) for name in ("rpd-paper", "rpd-a", "rpd-b", "rpd-d", "pipedream-exact")}
    assert [row["initial"] for row in rows.values()] == [pytest.approx(0.005)] * 5  # 2 S Delta0/(gamma K)
    assert [row.get("step", row.get("noise")) for row in rows.values()] == [pytest.approx(0.64)] * 5
    delay = {name: row["delay"] for name, row in rows.items()}
    assert delay["rpd-paper"] == pytest.approx(0.04**2 * 248**2)  # 98.4
    assert delay["rpd-a"] == pytest.approx(delay["rpd-paper"])  # B^2 = S G^2
    assert delay["rpd-b"] == pytest.approx(0.04**2 * (248**2 / 16 + 248 * 15 / 16))  # 6.52
    assert delay["rpd-d"] == pytest.approx(2 * 0.04**2 * 248)  # 0.794
    assert delay["pipedream-exact"] == pytest.approx(0.04**2 * 15 * 16)  # 0.384
    with pytest.raises(InputError, match=r"bound rpd-c: holds only for .* <= 1"):  # C would need a smaller step
        at_16("rpd-c")
    startup = block_update_delay(16)["startup_max"]
    assert startup == 304 and at_16("rpd-paper", delta_max=startup)["delay"] > delay["rpd-paper"] * 1.5


def test_growth_with_the_stages():
    """K block updates and everything else fixed; fixed per block or of the whole changes the leading part alone."""
    half = sp.Rational(1, 2)
    expected = {
        "rpd-paper": (1, 1, 4),
        "rpd-b": (1, -sp.oo, 3),
        "rpd-a": (half, -sp.oo, 4),
        "rpd-a-independent": (half, -sp.oo, 7 * half),
        "rpd-a-drift": (half, -sp.oo, 3),
        "rpd-c": (half, 5 * half, 4),
        "rpd-d": (half, 2, 2),
        "pipedream-exact": (half, 2, 2),
    }
    for name, powers in expected.items():
        parts = rate(get_bound(name))
        assert tuple(map(growth, parts.values())) == powers, name
        held = {part: growth(hold(expression, "block")) for part, expression in parts.items()}
        assert held == {"leading": 1, "limit": powers[1], "delay": powers[2]}, name
    # at an untuned, fixed step: gamma^2 S^4 and gamma^2 S^3 with G per block
    assert growth(get_bound("rpd-paper").terms["delay"]) == 4 and growth(get_bound("rpd-b").terms["delay"]) == 3
    assert growth(hold(get_bound("rpd-d").terms["delay"], "block")) == 2
    with pytest.raises(InputError, match="fixed='G' is not allowed: fixed must be one of whole, block"):
        hold(S, "G")


def test_relations_between_the_rows():
    term = {name: get_bound(name).terms for name in BOUNDS}
    same = lambda left, right: sp.simplify(left - right) == 0  # noqa: E731
    for part in ("initial", "step", "delay"):
        assert same(hold(term["rpd-a"][part], "block"), term["rpd-paper"][part])
        assert same(term["rpd-paper"][part].subs(S, 1), term["rpd-b"][part].subs(S, 1))
        assert same(term["rpd-a"][part].subs(S, 1), term["rpd-a-independent"][part].subs(S, 1))
        assert same(term["rpd-a"][part].subs(S, 1), term["rpd-a-drift"][part].subs(S, 1))
    for name, split in (("rpd-d", "rpd-d-split"), ("pipedream-exact-age", "pipedream-exact-split")):
        assert all(same(term[split][part].subs(theta, 1), term[name][part]) for part in term[name])
        assert sp.limit(term[split]["delay"] / term[name]["delay"], theta, sp.oo) == sp.Rational(1, 2)
    block_age = symbols("block_age")[0]
    for part in term["pipedream-exact"]:
        assert same(term["pipedream-exact-age"][part].subs(block_age, (S - 1) / 2), term["pipedream-exact"][part])
    assert all(same(term["local-sgd"][part], term["local-sgd-counted"][part]) for part in ("initial", "noise"))
    for name in ("local-sgd-counted", "local-sgd-variance"):
        assert term[name]["drift"].subs(H, 1) == 0
    assert same(term["local-sgd"]["initial"].subs(K, S**2 * M), term["pipedream-exact"]["initial"])


def test_sharper_is_never_larger():
    rng = np.random.default_rng(2)
    n = 3000
    values = dict(
        S=rng.integers(1, 40, n), delta_max=rng.integers(0, 900, n), gamma=10 ** rng.uniform(-4, -3, n), L=1.0, G=1.0,
        B=1.0, sigma=1.0, mu=0.5, Delta0=1.0, K=rng.integers(1, 10**6, n), H=rng.integers(1, 40, n), tau=0,
    )  # fmt: skip
    for small, large in (
        ("rpd-b", "rpd-paper"),
        ("rpd-a-independent", "rpd-a"),
        ("rpd-pl-b", "rpd-pl"),
        ("local-sgd-counted", "local-sgd"),
        ("delayed-gd-finite", "delayed-gd"),
    ):
        sides = [get_bound(name).evaluate(**{k: values[k] for k in get_bound(name).symbols}) for name in (small, large)]
        assert np.all(sides[0] <= sides[1] * (1 + 1e-12)), small
        assert np.any(sides[0] < sides[1] * 0.999), small


@pytest.mark.parametrize("name", [name for name in FOLDER if name != "local-sgd-variance"])
def test_tuned_steps(name):
    """The closed form is admissible and at most the rate; the exact minimiser is at most the closed form, and a grid
    finds nothing lower.
    """
    bound = get_bound(name)
    a, b, c = coefficients(bound)
    assert sp.simplify(bound.expression - (a / gamma + b * gamma + c * gamma**2)) == 0
    for horizon in (10, 10**4, 10**8):
        given = dict(S=4, L=1.3, G=0.9, B=2.0, sigma=1.8, Delta0=2.0, K=horizon, M=horizon, delta_max=14, H=5,
                     theta=2.5, block_age=1.5)  # fmt: skip
        values = {key: given[key] for key in bound.symbols if key != "gamma"}
        numbers = {QUANTITIES[key].symbol: value for key, value in values.items()}
        step, promised = float(tuned_step(bound).subs(numbers)), float(sum(rate(bound).values()).subs(numbers))
        reached = bound.evaluate(gamma=step, **values)
        assert reached <= promised * (1 + 1e-12)
        best = best_step(bound, **values)
        lowest = bound.evaluate(gamma=best, **values)
        assert lowest <= reached * (1 + 1e-12)
        inverse = float(inverse_limit(bound).subs(numbers))
        grid = best * np.linspace(0.5, 1.5, 101)
        grid = grid[grid * inverse <= 1]
        assert lowest <= bound.evaluate(gamma=grid, **values).min() * (1 + 1e-12)
        if inverse:
            with pytest.raises(InputError, match="holds only for"):
                bound.evaluate(gamma=1.001 / inverse, **values)


def test_tuning_refuses():
    with pytest.raises(InputError, match=r"bound delayed-gd: not of the form a/gamma \+ b gamma \+ c gamma\^2"):
        coefficients(get_bound("delayed-gd"))
    with pytest.raises(InputError, match="missing S"):
        best_step(get_bound("rpd-a"), L=1, B=1, Delta0=1, K=10, delta_max=1)
    with pytest.raises(InputError, match="bound rpd-a: no best gamma: a larger one is always better"):
        best_step(get_bound("rpd-a"), S=2, L=1, B=0, Delta0=1, K=10, delta_max=1)


def test_what_the_paper_reports_of_tuned_rates():
    """O(S/sqrt K + delta^2/K) with its constants, and S^4/K turned into S^2/K."""
    Delta0, L = symbols("Delta0 L")
    parts = rate(get_bound("rpd-paper"))
    assert sp.simplify(parts["leading"] - 2 * S * G * sp.sqrt(2 * L * Delta0 / K)) == 0
    assert sp.simplify(parts["delay"] - 2 * L * Delta0 * delta_max**2 / K) == 0
    assert sp.simplify(rate(get_bound("rpd-d"))["delay"] - 4 * L * Delta0 * delta_max / K) == 0
    exact = rate(get_bound("pipedream-exact"))["delay"].subs(M, K / S)
    assert sp.simplify(exact - 2 * L * Delta0 * S * (S - 1) / K) == 0
    local = rate(get_bound("local-sgd"))
    assert growth(local["leading"]) == sp.Rational(1, 2) and growth(local["delay"]) == 3
    assert sp.degree(local["delay"].subs(sigma, 1), H) == 2


@pytest.mark.parametrize("stages", [1, 2, 3, 8])
def test_a_cost_linear_in_the_stages_is_necessary(stages):
    """f depends on stage 0 alone: stable just below the limit, not above; the step of E is below it, within a factor
    that does not grow with S.
    """
    limit = float(LIMIT.subs(S, stages))
    method = QuadraticMethod(tau=stages - 1, beta=0.0)
    assert method.spectral_radius(limit * (1 - 1e-6)) < 1 < method.spectral_radius(limit * (1 + 1e-6))
    for factor, grows in ((0.97, False), (1.03, True)):
        y = [1.0]
        for m in range(4000 * stages):
            y.append(y[m] - factor * limit * y[max(m - (stages - 1), 0)])
        assert (max(map(abs, y[-10 * stages :])) > 1) is grows
    ours = 1 / float(inverse_limit(get_bound("pipedream-exact")).subs({S: stages, symbols("L")[0]: 1}))
    assert 1 <= limit / ours <= 2.3  # pi/sqrt 2 = 2.22 for many stages
    assert float((LIMIT * S).subs(S, 10**6)) == pytest.approx(np.pi / 2, rel=1e-5)
