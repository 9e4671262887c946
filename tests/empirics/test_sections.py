"""The two sections of the verification: shape, verdict, and the named claims that go red when the product breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Rational

from pipeline.json_io import plain
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from staleproof.claims import verdict
from staleproof.presets import PRESETS
from staleproof.sections import certified, quadratic
from theory.lmo import PATHWISE
from theory.registry import BOUNDS

SMOKE = replace(PRESETS["smoke"], quadratic_replicas=2000, quadratic_steps=20, certified_steps=12)


def run(section):
    shares = []
    results, claims = section.run(SMOKE, lambda share, what: shares.append(share), Path("unused"))
    assert shares == sorted(shares) and shares[-1] == 1.0
    plain(results)
    return results, claims


# What an optimizer that is not the theory's turns red.
QUADRATIC = {"quadratic.joint-test", "quadratic.noise-free", "quadratic.impulse", "quadratic.growth"}


def red(claims):
    return {claim.name for claim in claims if claim.outcome == "fails"}


def test_quadratic_section():
    results, claims = section = run(quadratic)
    assert len(section) == 2
    assert not red(claims) - {"quadratic.off-by-one"}  # 2000 replicas have less than the full power
    row = results["settings"][1]
    assert len(row["steps"]) == len(row["predicted"]) == len(row["measured"]) == SMOKE.quadratic_steps + 1
    assert len(row["off_by_one"]["predicted"]) == len(row["steps"])
    assert results["joint"]["pairs"] == 9 * 20 * 3 * 2
    for part in ("stability", "impulse"):
        assert [entry["name"] for entry in results[part]] == [s.name for s in quadratic.SETTINGS]
    for entry in results["impulse"]:
        assert entry["error"] < 1e-11 and min(entry["off_by_one"].values()) > 0.1


def test_certified_section():
    results, claims = run(certified)
    assert verdict(claims) == "holds"
    names = {claim.name for claim in claims}
    assert {f"certified.{name}" for name in PATHWISE} | {f"tight.{name}" for name in PATHWISE} <= names
    assert len(names) == len(claims)
    assert {row["tau"] for row in results["runs"]} == {0, 1, 2, 4}
    assert all(row["refuted"] for row in results["tight"])
    for row in results["runs"]:
        assert len(row["inequalities"][0]["utilisation"]) == row["steps"]
        assert row["theorem"]["kind"] == ("certified" if row["sigma"] == 0 else "report")


@pytest.mark.mutation
def test_the_sign_of_the_correction_turns_both_sections_red(monkeypatch):
    monkeypatch.setattr(ErrorFeedback, "coefficient", property(lambda self: -self.lag if self.tau == 1 else -1))
    assert QUADRATIC <= red(run(quadratic)[1])
    assert "certified.identity-y" in red(run(certified)[1])


@pytest.mark.mutation
def test_a_delay_off_by_one_turns_both_sections_red(monkeypatch):
    init = Delayed.__init__
    monkeypatch.setattr(Delayed, "__init__", lambda self, base, tau, *a: init(self, base, tau + 1, *a))
    assert QUADRATIC <= red(run(quadratic)[1])
    assert {"certified.recursion", "tight.momentum-error"} <= red(run(certified)[1])


@pytest.mark.mutation
def test_mutated_constants_turn_named_claims_red(monkeypatch):
    """All at once: each shows under its own name."""
    for name, term, factor in (
        ("descent", "momentum_error", Rational(19, 20)),
        ("ef-descent", "step", Rational(9, 10)),
        ("momentum-error", "momentum_lag", Rational(9, 10)),
        ("ef-delay", "delay", Rational(9, 10)),
        ("average", "momentum_error", Rational(19, 20)),
    ):
        monkeypatch.setitem(PATHWISE, name, PATHWISE[name].scaled(term, factor))
    bound = BOUNDS["delayed-lmo-shifted"]
    terms = {**bound.terms, "delay": Rational(19, 20) * bound.terms["delay"]}
    monkeypatch.setitem(BOUNDS, bound.name, replace(bound, terms=terms))
    expected = {
        "tight.descent",
        "tight.ef-descent",
        "tight.momentum-error",
        "tight.ef-delay",
        "tight.average",
        "tight.delayed-lmo-shifted",
        "certified.assembly",
    }
    assert expected <= red(run(certified)[1])


@pytest.mark.mutation
def test_a_wrong_stability_limit_turns_its_claims_red(monkeypatch):
    method = type(quadratic.method_of(quadratic.SETTINGS[0]))
    limit = method.stability_limit
    monkeypatch.setattr(method, "stability_limit", lambda self: 1.05 * limit(self))
    assert {"quadratic.stability", "quadratic.stability-closed-form"} <= red(run(quadratic)[1])
