"""The certificates in `staleproof prove` and in the verdict: counted, and one refused is one that fails."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import pytest

from staleproof import certificates
from staleproof.cli import main
from staleproof.presets import PRESETS
from staleproof.sections import proofs as section
from theory.certificates import check as check_module
from theory.certificates.check import Checked, check_all


@pytest.fixture
def one_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first certificate claims 1 % less than it proves."""
    first, *others = check_all()
    upper = dataclasses.replace(first.certificate.upper, value=first.certificate.upper.value * Fraction(99, 100))
    broken = check_module.check(dataclasses.replace(first.certificate, upper=upper))
    monkeypatch.setattr(check_module, "check_all", lambda: [broken, *others])


def test_all_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "certificates", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all_proved"] and found["certificates"]["all_proved"]
    rows = found["certificates"]["certificates"]
    assert found["certificates"]["proved"] == found["certificates"]["count"] == len(rows) > 100
    known = next(row for row in rows if (row["tau"], row["N"], row["h"]) == (1, 3, "1/2"))
    assert known["lower"] < 0.7582572 < known["upper"]
    assert Fraction(known["upper_exact"]) > Fraction(known["lower_exact"])


def test_one_refused_fails_and_is_named(one_refused: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "certificates", "--json"]) == 1
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert not found["all_proved"]
    assert [row["name"] for row in found["certificates"]["certificates"] if not row["proved"]] == [
        "delayed-gd tau=0 N=2 h=1"
    ]
    assert "claim failed: delayed-gd tau=0 N=2 h=1: upper: the coefficients of f_0 do not agree" in shown.err


def test_text_ends_with_the_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "certificates"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(check_all()) + 1
    assert lines[-1].startswith(f"{len(lines) - 1} of {len(lines) - 1} certificates proved with fractions alone")


def test_they_are_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["certificates", *certificates.TITLE.split()]


def test_the_section_has_their_claim_where_all_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    monkeypatch.setattr(section, "PROOFS", ("delay",))
    whole = dataclasses.replace(PRESETS["smoke"], proofs=None)
    found, claims = section.run(whole, lambda *_: None, Path())
    assert claims[-1].name == "proofs.delayed-gd-worst-cases" and claims[-1].outcome == "holds"
    assert found["certificates"]["count"] == found["certificates"]["proved"]
    found, claims = section.run(PRESETS["smoke"], lambda *_: None, Path())
    assert "certificates" not in found and claims[-1].name != "proofs.delayed-gd-worst-cases"


def test_the_claim_counts_what_is_refused(one_refused: None) -> None:
    good: list[Checked] = [result for result in check_module.check_all() if result.proved]
    assert certificates.claim(good, "proofs.json").outcome == "holds"
    bad = certificates.claim(check_module.check_all(), "proofs.json")
    assert bad.outcome == "fails" and bad.value == 1 and "delayed-gd tau=0 N=2 h=1" in bad.place
