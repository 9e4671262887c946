"""`staleproof prove` and the section `proofs`: ledger, JSON, exit codes, a proof that fails, no solver."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

from staleproof import sections
from staleproof.claims import verdict
from staleproof.cli import main
from staleproof.presets import PRESETS
from staleproof.sections import proofs as section
from staleproof.verify import verify
from theory import proofs
from theory.lmo import delay
from theory.lmo.proofs.delay import PROOF
from theory.proof import Proof
from theory.registry import BOUNDS
from theory.relation import statement


def broken() -> Proof:
    """Lemma B with a constant 5 % too small, and the same last step."""
    theorem = replace(delay.INEQUALITY.scaled("delay", sp.Rational(19, 20)), name="delay")
    return Proof(theorem, (*PROOF.steps[:-1], replace(PROOF.steps[-1], conclusion=statement(theorem))))


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    assert main(["prove", "momentum-error", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["all_proved"] is True
    assert list(result["proofs"]) == ["delay", "momentum-error"]  # what it rests on comes first
    found = result["proofs"]["momentum-error"]
    assert found["ledger"]["assumptions"]["fixed-delay"] == ["delay/lemma", "momentum-error/first error"]
    last = found["steps"][-1]
    assert last["proved"] and last["mutants"]["delay times 19/20"]["tau"] == "1"


def test_text_has_the_ledger_and_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    assert main(["prove", "delay", "--steps"]) == 0
    out = capsys.readouterr().out
    for words in ("proved, 7 steps", "smoothness", "constant-step", "without fixed_delay: false at", "all proved"):
        assert words in out


def test_conditions_that_a_proof_uses_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    assert main(["prove", "rpd-c"]) == 0
    assert "  requires\n    L**2*delta_max**2*gamma**2/S + L*gamma <= 1  rpd-c/theorem\n" in capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["proofs"]) == list(proofs.PROOFS)


def test_bounds_without_a_proof_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is registered has a proof or is named as having none, those as reported apart."""
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    assert main(["prove", "delay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rest, reported = found["not_machine_proved"], found["not_machine_proved_as_reported"]
    names = [row["name"] for row in (*rest, *reported)]
    assert sorted(names) == sorted(set(BOUNDS) - set(proofs.PROOFS)) and "delayed-lmo" not in names
    for row in (*rest, *reported):
        bound = BOUNDS[row["name"]]
        assert (row["kind"], row["origin"]) == (bound.kind, bound.origin)
        assert (bound.origin == "as reported") == (row in reported)
    assert "kovalev" in {row["name"] for row in rest}
    assert "local-sgd" in {row["name"] for row in reported}
    monkeypatch.setattr(proofs, "PROOFS", {"delay": PROOF})
    assert main(["prove"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith("all proved")
    assert lines[-1].startswith(f"not proved by machine, {len(BOUNDS)} bounds: delayed-lmo, ")
    assert all(name in lines[-1] for name in BOUNDS) and "; as reported: star-convex-reported, " in lines[-1]


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "delai"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert "'delai'; did you mean delay or" in captured.err and "--list" in captured.err
    for name, said in (
        ("kovalev", ["no proof", "as reported by Kovalev 2025", "its words: theory/lmo/kovalev.py"]),
        ("local-sgd", ["its words: theory/local_sgd/averaged.py"]),
        ("foo", ["'foo'; none is spelled alike"]),
    ):
        assert main(["prove", name]) == 2
        err = capsys.readouterr().err
        assert len(err) < 250 and all(word.replace("no proof", "without a machine proof") in err for word in said), err


@pytest.mark.mutation
def test_a_proof_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3", reason="the extra proofs is not installed")
    monkeypatch.setitem(proofs.PROOFS, "delay", broken())
    assert main(["prove", "delay", "--json"]) == 1
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["all_proved"] is False and result["proofs"]["delay"]["proved"] is False
    assert "claim failed: delay: step lemma: the conclusion does not follow; counterexample" in captured.err
    _, claims = section.run(replace(PRESETS["smoke"], proofs=("delay",)), lambda *_: None, Path())
    assert [claim.outcome for claim in claims] == ["fails"] and verdict(claims) == "fails"
    assert "step lemma" in claims[0].place


def test_without_the_solver(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    assert main(["prove", "delay"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and "pip install 'staleproof[proofs]'" in err
    from pipeline.folder import ResultFolder

    with ResultFolder.create(str(tmp_path / "out"), False) as folder:
        outcome = verify(PRESETS["smoke"], folder, ["proofs"], report=False)
    assert outcome.status["sections"]["proofs"] == "skipped"
    assert "staleproof[proofs]" in outcome.status["skipped"]["proofs"]
    assert outcome.verdict == "incomplete" and outcome.exit_code == 1  # nothing else was asked for
    assert [(c.outcome, c.gates) for c in outcome.claims] == [("missing", False)]
    assert "proofs" in sections.SECTIONS


def test_the_section_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match="unknown proof 'nope'"):
        section.check(replace(PRESETS["smoke"], proofs=("nope",)))
