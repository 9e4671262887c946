"""`staleproof estimate` and `staleproof budget` on folders of runs that end badly, or that a constant is not one of."""

from __future__ import annotations

import json

import pytest

from staleproof.cli import main
from tests.staleproof.run_folders import edit, run_by_oracle


@pytest.fixture
def say(capsys):
    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("words", "eta", "tau"),
    [
        (["--correction", "lr-discount"], "changes during the run: the step size is not constant: lr-discount", None),
        (["--sync-start", "4"], None, "changes during the run: the first 4 steps have delay 0, the others 1"),
        (["--schedule", "pipedream"], None, "not one number: by stage 1, 0"),
        (["--optimizer", "muon"], "not one number: by group of parameters 0.003, 0.02", None),
    ],
)
def test_a_constant_that_is_not_one_number_has_none(words, eta, tau, say, tmp_path):
    code, out, _ = say("estimate", run_by_oracle(tmp_path / "run", *words), "--constants", "eta,tau", "--json")
    found = json.loads(out)["constants"]
    assert code == 0
    for constant, reason in zip(found, (eta, tau), strict=True):
        assert constant["reason"] == (reason or "") and (constant["value"] is None) == bool(reason)


def test_a_run_that_blew_up_but_is_finite(say, tmp_path):
    folder = run_by_oracle(tmp_path / "run", "--lr", "1000")
    why = "more than 2 times the"
    code, out, err = say("estimate", folder, "--constants", "eta,sigma,f_star")
    assert code == 3 and err.splitlines()[-1].startswith("staleproof estimate: the run diverged: the loss is ")
    assert why in err and out.count("not applicable: the run diverged: the loss is ") == 2
    code, out, err = say("budget", folder)
    assert code == 3 and why in err and "waterfall" not in out and "diverged" in out
    found = json.loads(say("estimate", folder, "--constants", "eta", "--json")[1])
    assert found["diverged"]["step"] == 6 and why in found["diverged"]["reason"]
    # As written before the state said so.
    edit(folder, "status.json", lambda s: s.update(state="complete"))
    assert say("budget", folder)[0] == say("estimate", folder)[0] == 3


def test_estimates_of_a_run_name_their_norm_and_f_star(say, tmp_path):
    folder = run_by_oracle(tmp_path / "run")
    code, out, err = say("estimate", folder, "--constants", "f_star,Delta0", "--draws", "5")
    lines = out.splitlines()
    assert code == 0 and "the optimizer's own" in lines[0] and "spectral" in lines[0]
    assert lines[1].startswith("f_star        0 [0, ") and "Delta0 uses" in lines[1]
    assert "estimate: 0%" in err and err.splitlines()[-1].startswith("estimate   2 constants")
    f_star, gap = json.loads(say("estimate", folder, "--constants", "f_star,Delta0", "--json")[1])["constants"]
    assert f_star["how"] == "bound" and f_star["value"] == f_star["low"] == 0 < f_star["high"] < 8
    assert gap["value"] <= gap["high"]
    found = json.loads(say("estimate", folder, "--constants", "sigma", "--draws", "90000", "--json")[1])
    assert found["constants"][0]["reason"].startswith("draws: 90000; allowed are at most ")
    edit(folder, "run.json", lambda s: s["settings"].update(sequences=64))
    edit(folder, "status.json", lambda s: s["settings"].update(sequences=64))
    code, _, err = say("estimate", folder, "--draws", "90000")
    assert code == 2 and "draws times sequences a step: 90000 x 128; allowed is at most 1000000" in err
    (folder / "weights.pt").unlink()
    code, out, _ = say("estimate", folder, "--constants", "f_star")
    assert code == 0 and "not applicable: run: no weights.pt in" in out and "Errno" not in out


@pytest.mark.parametrize("command", ["estimate", "budget"])
def test_files_of_a_folder_have_to_agree(command, say, tmp_path):
    folder = run_by_oracle(tmp_path / "run")
    whole = (folder / "run.json").read_text()
    for words, change in (
        ("seed is 0 in status.json and 7 in run.json", lambda s: (s.update(seed=7), s["settings"].update(seed=7))),
        ("seed is 0 in status.json and 7 in run.json", lambda s: s.update(seed=7)),
        ("steps is 6 in status.json and 5 in run.json", lambda s: s["settings"].update(steps=5)),
        ("5 losses in run.json for 6 steps", lambda s: s["losses"].pop()),
        ("run.json has no 'losses'", lambda s: s.pop("losses")),
        ("no run.json of staleproof train", lambda s: s.update(losses=["a", *s["losses"][1:]])),
    ):
        edit(folder, "run.json", change)
        code, out, err = say(command, folder)
        assert code == 2 and words in err and len(err.splitlines()) == 1 and not out
        (folder / "run.json").write_text(whole)
    (folder / "run.json").write_text(whole[: len(whole) // 2])
    code, _, err = say(command, folder)
    assert code == 2 and f"{str(folder / 'run.json')!r} is cut off or no JSON" in err


def test_no_folder_at_all(say):
    assert say("budget", "")[2] == (
        "staleproof budget: error: run: '' is no folder; allowed is one of staleproof train --out DIR\n"
    )
    assert "target: not given" in say("estimate", "")[2]


def test_theorems_that_have_no_budget(say, tmp_path):
    from empirics.budget import OWN
    from staleproof.commands.budget import THEOREMS

    assert list(OWN) == list(THEOREMS)
    folder = run_by_oracle(tmp_path / "run")
    for name in ("kovalev", "star-convex", "delayed-lmo-tuned", "rpd-a", "delayed-gd"):
        code, _, err = say("budget", folder, "--theorem", name)
        assert code == 2 and f"theorem: {name!r} is a bound, but it has no budget" in err
    code, _, err = say("budget", folder, "--theorem", "nosuch")
    assert code == 2 and "'nosuch' is no bound; allowed are delayed-lmo, " in err
    words = say("budget", "--help")[1].replace(",", " ").replace(";", " ").split()
    assert set(OWN) <= set(words)
    code, out, err = say("budget", folder, "--theorem", "error-feedback")
    assert code == 2 and (out + err).count("the correction is none") == 1


def test_budget_in_words_explains_itself(say, tmp_path):
    folder = run_by_oracle(tmp_path / "run")
    code, out, _ = say("budget", folder, "--windows", "4", "--theorem", "all", "--statements")
    assert code == 0
    assert "not about this run: error-feedback, error-feedback-any-delay" in out
    stars = [line for line in out.splitlines() if line.startswith("  f_star")][:2]
    assert [line.rpartition("; ")[2] for line in stars] == [
        "Delta0 of the worst-case edition", "Delta0 of the trajectory edition"
    ]  # fmt: skip
    assert "descent: duality_on_segment: segment_inner <= segment_dual*step_norm" in out
    assert "below 0: what can have either sign" in out
    plain = say("budget", folder, "--windows", "4")[1]
    assert "what they say" not in plain
    constants = json.loads(say("budget", folder, "--windows", "4", "--json")[1])["constants"]
    assert [c["edition"] for c in constants if c["name"] == "f_star"] == ["worst-case", "trajectory"]
