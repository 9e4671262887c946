"""`staleproof budget`: a run of two real processes, taken apart; and what has no budget."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from staleproof.cli import main

TEXT = bytes((i * i + 3 * i) % 251 for i in range(900))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run: two processes, PipeDream-2BW, LMO."""
    home = tmp_path_factory.mktemp("budget")
    (home / "text").write_bytes(TEXT)
    words = "--optimizer lmo --steps 6 --layers 1 --width 8 --heads 2 --context 8 --sequences 2 --device cpu"
    code = main(
        ["train", *words.split(), "--corpus", str(home / "text"), "--out", str(home / "run"), "--json"]
    )
    assert code == 0
    return home / "run"


@pytest.fixture
def changed(trained, tmp_path):
    """A copy of the run with files edited: changed(edit, *files) -> folder."""

    def make(edit, *names):
        folder = tmp_path / "run"
        shutil.copytree(trained, folder)
        for name in names:
            value = json.loads((folder / name).read_text())
            edit(value)
            (folder / name).write_text(json.dumps(value))
        return str(folder)

    return make


def output(capsys, *words):
    code = main(["budget", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.processes
def test_the_budget_of_a_run_of_two_processes(trained, capsys):
    code, out, _ = output(capsys, str(trained), "--windows", "8", "--json", "--series")
    found = json.loads(out)
    assert code == 0 and found["status"] == "complete" and found["violations"] == 0
    assert found["largest_loss_difference"] == 0.0  # engine and oracle, bit for bit
    assert [c["value"] for c in found["constants"] if c["name"] in ("tau", "K")] == [1, 6]
    delay = next(i for i in found["inequalities"] if i["name"] == "delay")
    assert delay["at"] == [0, 1, 2, 3, 4, 5] and len(delay["utilisation"]) == 6
    levels = [w["level"] for w in found["waterfall"]]
    assert levels[0] == "measured average" and levels[-1] == "worst-case constants"
    again = json.loads(output(capsys, str(trained), "--windows", "8", "--json", "--series")[1])
    assert again == found


@pytest.mark.processes
def test_in_words(trained, capsys):
    code, out, _ = output(capsys, str(trained), "--windows", "4", "--theorem", "delayed-lmo-shifted")
    assert code == 0
    for words in ("Theorem 1s", "theorem delay", "waterfall", "measured terms", "momentum_lag", "equalities"):
        assert words in out
    assert "evidence: " in out and "trajectory: unbiased: f is a part of" in out and "by construction" in out


@pytest.mark.processes
@pytest.mark.mutation
def test_a_wrong_delay_ends_with_a_claim_that_failed(trained, capsys, monkeypatch):
    import empirics.run_budget as room

    honest = room.facts_of_run
    monkeypatch.setattr(room, "facts_of_run", lambda config: replace(honest(config), delays=frozenset([2])))
    code, _, err = output(capsys, str(trained), "--windows", "4")
    assert code == 1 and "claim failed: delay: fixed_delay does not hold" in err


@pytest.mark.processes
def test_figure_and_tables_for_a_paper(trained, tmp_path, capsys):
    file = tmp_path / "waterfall.pdf"
    code, out, _ = output(capsys, str(trained), "--windows", "4", "--latex", "--figure", str(file))
    assert code == 0 and file.read_bytes().startswith(b"%PDF")
    assert out.count(r"\begin{longtable}") == out.count(r"\begin{table}") == 1
    assert r"\label{tab:used-delayed-lmo}" in out and "measured terms" in file.with_suffix(".csv").read_text()
    code, out, err = output(capsys, str(trained), "--figure", str(tmp_path / "absent" / "a.pdf"))
    assert code == 2 and "figure: the folder" in err and not out


@pytest.mark.processes
def test_every_theorem_that_is_about_the_run(trained, capsys):
    code, out, _ = output(capsys, str(trained), "--windows", "4", "--theorem", "all", "--json")
    status = {b["theorem"]: b["status"] for b in json.loads(out)["theorems"]}
    assert code == 0 and status["delayed-lmo-inexact-shifted"] == "complete"
    others = {name for name, s in status.items() if s == "not applicable"}
    assert others == {name for name in status if "nesterov" in name or name.startswith("error-feedback")}
    words = output(capsys, str(trained), "--windows", "4", "--theorem", "all")[1]
    assert words.count("waterfall") == 10 and "not applicable" not in words


@pytest.mark.processes
def test_a_theorem_that_is_not_about_the_run(trained, changed, capsys):
    code, out, err = output(capsys, str(trained), "--theorem", "error-feedback", "--json")
    found = json.loads(out)
    assert code == 2 and found["status"] == "not applicable"
    assert "the correction is none" in found["reasons"][0] and "waterfall" not in found
    assert err.startswith("staleproof budget: theorem: error-feedback is not about this run")
    assert "the correction is none" in err  # stdout is JSON only

    def other(file):
        file["settings"]["optimizer"] = "adamw"
        file |= {"optimizer": "adamw"}

    code, out, err = output(capsys, changed(other, "status.json", "run.json"))
    assert code == 2 and (out + err).count("adamw has groups that are no LMO steps") == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "edit", "code", "words"),
    [
        ("status.json", lambda s: s.update(state="interrupted"), 2, "the state 'interrupted'; allowed"),
        ("status.json", lambda s: s.pop("settings"), 2, "status.json has no 'settings'"),
        ("run.json", lambda s: s.pop("losses"), 2, "run.json has no 'losses'"),
        ("run.json", lambda s: s["corpus"].update(sha256="0" * 64), 2, "sha256"),
        ("run.json", lambda s: s["losses"].__setitem__(3, 9.0), 1, "losses differ from the run's"),
        ("run.json", lambda s: s["losses"].__setitem__(3, "NaN"), 3, "the run diverged"),
    ],
)
def test_folders_without_a_budget(changed, capsys, file, edit, code, words):
    found, out, err = output(capsys, changed(edit, file), "--windows", "4")
    assert found == code and words in err
    if code == 3:
        assert "waterfall" not in out


def test_bad_input(tmp_path, capsys):
    assert output(capsys, str(tmp_path / "nothing"))[0] == 2
    assert output(capsys, str(tmp_path))[0] == 2
    assert output(capsys, str(tmp_path), "--windows", "0")[0] == 2
    assert output(capsys)[0] == 2
