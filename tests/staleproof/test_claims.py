"""Claims decide as their kind says, and the verdict is a fold over them."""

from __future__ import annotations

import math

import pytest

from staleproof.claims import Claim, verdict
from staleproof.errors import InputError

NAN = math.nan


@pytest.mark.parametrize(
    ("value", "expected", "tolerance", "outcome"),
    [
        (0.0, 0.0, 0.0, "holds"),
        (5e-324, 0.0, 0.0, "fails"),
        (1.0 + 1e-9, 1.0, 1e-8, "holds"),
        (1.0 - 1e-7, 1.0, 1e-8, "fails"),
        (NAN, 0.0, 1e9, "fails"),
        (math.inf, 0.0, 1e9, "fails"),
        (math.inf, math.inf, 0.0, "holds"),
    ],
)
def test_equality(value: float, expected: float, tolerance: float, outcome: str) -> None:
    claim = Claim.equality("delay", "the delay is 1", value, expected, tolerance)
    assert (claim.outcome, claim.gates, claim.limit, claim.tolerance) == (outcome, True, expected, tolerance)


@pytest.mark.parametrize(
    ("utilisation", "outcome"),
    [
        (0.0, "holds"),
        (1.0, "holds"),
        (1 + 9e-11, "holds"),
        (1 + 2e-10, "fails"),
        (NAN, "fails"),
        (math.inf, "fails"),
    ],
)
def test_certified(utilisation: float, outcome: str) -> None:
    claim = Claim.certified("descent", "Lemma A", utilisation)
    assert (claim.outcome, claim.gates, claim.limit) == (outcome, True, 1.0)


def test_statistical_gates_only_where_it_says_so() -> None:
    gating = Claim.statistical("joint", "p > 1e-6", 0.5, 1e-6, holds=False, gates=True)
    shown = Claim.statistical("gap", "gap > 0", 0.5, 0.0, holds=False, gates=False)
    assert gating.outcome == shown.outcome == "fails"
    assert verdict([gating]) == "fails"
    assert verdict([Claim.equality("a", "a", 0.0), shown]) == "holds"


def test_a_statistic_that_is_not_a_number_fails() -> None:
    assert Claim.statistical("joint", "p", NAN, 1e-6, holds=True, gates=True).outcome == "fails"


def test_verdict() -> None:
    good = Claim.equality("a", "a", 0.0)
    bad = Claim.certified("b", "b", 1.1)
    gone = Claim.missing("c", "certified", "c", "the run was interrupted")
    shown = Claim.report("d", "d", 3.0)
    assert verdict([]) == "incomplete"
    assert verdict([shown]) == "incomplete"
    assert verdict([good, shown]) == "holds"
    assert verdict([good, gone]) == "incomplete"
    assert verdict([good, gone, bad]) == "fails"
    assert verdict([good, Claim.missing("e", "statistical", "e", "none")]) == "holds"
    assert verdict([good, Claim.missing("e", "statistical", "e", "none", gates=True)]) == "incomplete"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"name": ""}, "name"),
        ({"kind": "lemma"}, "lemma"),
        ({"outcome": "maybe"}, "maybe"),
        ({"kind": "equality", "gates": False}, "gates"),
        ({"kind": "report", "outcome": "holds", "gates": False}, "report"),
        ({"outcome": "report"}, "report"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": NAN}, "tolerance"),
    ],
)
def test_nonsense_is_refused(fields: dict[str, object], word: str) -> None:
    good: dict[str, object] = {
        "name": "a",
        "kind": "certified",
        "statement": "s",
        "outcome": "holds",
        "gates": True,
    }
    Claim(**good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=word):
        Claim(**{**good, **fields})  # type: ignore[arg-type]


def test_dict_and_back() -> None:
    claim = Claim.equality("a", "s", 0.1, 0.1, 1e-3, "step 3", "delays.json")
    assert Claim.from_dict(claim.as_dict()) == claim
    assert Claim.from_dict({**claim.as_dict(), "value": "Infinity"}).value == math.inf


def test_a_nan_is_the_worst_of_several():
    from staleproof.claims import badness

    assert max([0.5, float("nan"), 0.7], key=badness) != max([0.5, 0.7], key=badness)
    assert badness(0.5) == 0.5
