"""The verdict table: what decides against a verification comes first; numbers have limits beside them."""

from __future__ import annotations

from staleproof.claims import Claim
from staleproof.verdict_table import held_against, verdict_table


def test_order_and_counts() -> None:
    claims = [
        Claim.report("bound", "a number", 3.0),
        Claim.statistical("gap", "gap > 0", -1.0, 0.0, holds=False, gates=False),
        Claim.equality("fine", "0", 0.0),
        Claim.missing("gone", "certified", "s", "interrupted"),
        Claim.certified("broken", "s", 1.5, place="step 3"),
    ]
    lines = verdict_table(claims).splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["fails", "missing", "holds", "fails", "report"]
    assert "broken" in lines[2] and "step 3" in lines[2] and "gap" in lines[5] and "(no gate)" in lines[5]
    assert lines[-4:] == [
        "equality: 1 holds", "certified: 1 fails, 1 missing", "statistical: 1 fails", "report: 1 report"
    ]  # fmt: skip


def test_limits_in_words() -> None:
    assert held_against(Claim.equality("a", "s", 1.0, 1.0)) == "1 exactly"
    assert held_against(Claim.equality("a", "s", 1.0, 1.0, 1e-12)) == "1 +- 1e-12"
    assert held_against(Claim.certified("a", "s", 0.5)) == "<= 1 + 1e-10"
    assert held_against(Claim.certified("a", "s", 0.5, 0.0)) == "<= 1"
    assert held_against(Claim.statistical("a", "s", 0.5, 20.0, True, True)) == "20"
    assert held_against(Claim.report("a", "s", 0.5)) == "-"


def test_no_claims() -> None:
    assert verdict_table([]).startswith("outcome")
