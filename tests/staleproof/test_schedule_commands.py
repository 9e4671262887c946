"""`staleproof delays`, `schedule` and `compare`: the figures they promise, their formats, their exit codes."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
import sympy as sp

from pipeline.schedules import SCHEDULES
from pipeline.schedules.pipedream import PipeDream
from staleproof.cli import main
from theory import delays


def run_json(capsys, *words: str) -> dict:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_delays_of_sixteen_stages(capsys):
    block = run_json(capsys, "delays", "pipedream", "--stages", "16")["block_update_delay"]
    expected = {"max": 248, "mean": 127.5, "min": 7, "startup_max": 304, "minimal_max": 240}
    assert {key: block[key] for key in expected} == expected
    assert (len(block["matrix"]), block["matrix"][0][0], block["matrix"][15][15]) == (16, 248, 7)
    # Row = active stage: reading at stage 16 for an update of stage 1 is not the reverse.
    assert block["matrix"][0][15] != block["matrix"][15][0]


def test_conventions_and_microbatches_one_by_one(capsys):
    found = run_json(capsys, "delays", "pipedream", "--stages", "4", "--convention", "physical")
    assert found["block_update_delay"]["mean"] == 8.5
    assert found["by_microbatch"][0][:6] == [0, 1, 2, 3, 3, 3]  # start-up included
    paci = run_json(capsys, "delays", "paci", "--stages", "4", "--microbatches", "6")
    assert (paci["version_gap"], paci["gap_microbatches"]) == ([1, 1, 1, 0], [3, 2, 1, 0])
    assert paci["backward_delay"] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "S", "m", "bubble"), [("amdp", 8, 8, 0.04), ("1f1b", 4, 8, 3 / 11), ("amdp", 4, 4, 1 / 13)]
)
def test_schedule_bubbles(name, S, m, bubble, capsys):
    words = ["schedule", name, "--stages", str(S), "--microbatches", str(m), "--forward", "1", "--backward", "2"]
    found = run_json(capsys, *words)
    assert found["bubble"] == bubble
    assert found["max_version_gap"] == (1 if name == "amdp" else 0)
    assert found["validity"]["valid"] and found["validity"]["problems"] == []
    assert found["validity"]["deadlocks"]["rendezvous"]
    assert {"kind", "stage", "microbatch", "version", "start", "end", "device", "pipeline"} <= set(found["events"][0])


def test_durations_are_exact(capsys):
    words = ["schedule", "pipedream-2bw", "--stages", "3", "--forward", "0.1", "--backward", "1/3"]
    found = run_json(capsys, *words, "--tokens", "100")
    assert found["period"] == float(3 * (Fraction(1, 10) + Fraction(1, 3)))
    # With hops the 3 microbatches in flight take a round trip of 3 (F + B) and 4 hops.
    hopping = run_json(capsys, *words, "--hop", "1e-2")
    assert hopping["period"] == float(3 * (Fraction(1, 10) + Fraction(1, 3)) + 4 * Fraction(1, 100))
    assert found["period_is_exact"]
    assert found["tokens_per_time"] == pytest.approx(100 * 3 / found["period"], rel=1e-15)


def test_a_figure_with_its_csv(capsys, tmp_path: Path):
    for ending in ("png", "pdf", "svg"):
        path = tmp_path / f"chart é {ending}.{ending}"
        found = run_json(capsys, "schedule", "zb-h1", "--stages", "8", "--steps", "1", "--figure", str(path))
        assert found["files"] == [str(path), str(path.with_suffix(".csv"))]
        assert path.stat().st_size > 1000
        rows = list(csv.DictReader(io.StringIO(path.with_suffix(".csv").read_text(encoding="utf-8"))))
        assert len(rows) == len(found["events"]) == 8 * (3 * 8 + 1)
        assert {row["kind"] for row in rows} == {"forward", "backward", "weight", "step"}


def test_compare_prints_every_system(capsys):
    assert main(["compare", "--stages", "4", "--microbatches", "8"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{name} " in text for name in SCHEDULES)
    found = run_json(capsys, "compare", "--stages", "4", "--microbatches", "8")
    assert [row["name"] for row in found["systems"]] == list(SCHEDULES)


def test_compare_as_csv(capsys):
    assert main(["compare", "--stages", "4", "--microbatches", "6", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    allowed = {row["system"]: row for row in rows}
    refused = {name for name, row in allowed.items() if row["note"]}
    assert set(allowed) == set(SCHEDULES) and refused == {"interleaved-1f1b", "amdp", "localsgd"}  # no multiple of 4
    assert (allowed["amdp"]["bubble"], allowed["1f1b"]["durations"], allowed["1f1b"]["S"]) == ("", "F = 1, B = 2", "4")
    assert float(allowed["1f1b"]["bubble"]) == pytest.approx(3 / 9, rel=1e-15)


def test_what_a_correction_keeps(capsys):
    words = ["schedule", "uniform", "--stages", "4", "--tau", "3"]
    plain, one, all_three = (
        run_json(capsys, *words, *more)["memory"]
        for more in ([], ["--correction", "error-feedback"], ["--correction", "error-feedback", "--form", "telescoped"])
    )
    for device in range(4):
        assert [found[device]["correction_bytes"] for found in (plain, one, all_three)] == [0, 1e9, 3e9]
        assert all_three[device]["bytes"] == plain[device]["bytes"] + 3e9
    assert main([*words, "--correction", "error-feedback"]) == 0
    assert "activations, correction\n" in capsys.readouterr().out
    systems = {
        row["name"]: row
        for row in run_json(
            capsys, "compare", "--stages", "4", "--microbatches", "4", "--correction", "error-feedback", "--form",
            "telescoped"
        )["systems"]
    }  # fmt: skip
    # Of the device that needs most.
    assert [systems[name]["correction_bytes"] for name in ("1f1b", "pipedream", "pipedream-2bw")] == [0, 3e9, 1e9]


def test_what_waiting_steps_keep(capsys):
    words = ["schedule", "pipedream-2bw", "--stages", "4"]
    plain, late = (run_json(capsys, *words, *more)["memory"] for more in ([], ["--put-off"]))
    assert [(a["gradient_bytes"], b["gradient_bytes"]) for a, b in zip(plain, late, strict=True)] == [(1e9, 2e9)] * 4
    assert late[0]["gradient_sets"] == {"0": 2}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--correction adam", "correction: 'adam'; allowed are none, error-feedback, weight-prediction"),
        ("--form telescoped", "form: 'telescoped' is not allowed without a --correction that has it"),
        ("--correction error-feedback --form both", "form: 'both'; allowed are extrapolate, telescoped"),
    ],
)
def test_a_bad_correction_is_one_line(capsys, words, line):
    for command in ("schedule 1f1b --stages 2", "compare --stages 2 --microbatches 2"):
        assert main([*command.split(), *words.split()]) == 2
        assert line in capsys.readouterr().err


def test_pipedream_cannot_put_steps_off(capsys):
    assert main("schedule pipedream --stages 2 --put-off".split()) == 2
    assert "put_off = True: allowed where a microbatch reads one weight version" in capsys.readouterr().err


@pytest.mark.tex
def test_compare_as_latex_compiles(capsys, tmp_path: Path):
    assert main(["compare", "--stages", "8", "--microbatches", "4", "--latex"]) == 0
    table = capsys.readouterr().out
    packages = r"\usepackage[margin=2cm]{geometry}\usepackage{array,booktabs,longtable,amsmath,amssymb}"
    (tmp_path / "t.tex").write_text(rf"\documentclass{{article}}{packages}\begin{{document}}{table}\end{{document}}")
    command = [shutil.which("pdflatex") or "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_the_derivation(capsys):
    assert main(["delays", "--derivation"]) == 0
    text = capsys.readouterr().out
    assert "holds  stage order, odd S: largest less 2S - 1 slots at S/2 updates: -1/2 = -1/2" in text
    assert "FAILS" not in text


@pytest.mark.mutation
def test_a_wrong_closed_form_is_exit_1_and_the_enumeration_is_printed(capsys, monkeypatch):
    from dataclasses import replace

    form = delays.CLOSED_FORMS["pipedream"]
    monkeypatch.setitem(delays.CLOSED_FORMS, "pipedream", replace(form, delay=form.delay + sp.S.One))
    assert main(["delays", "pipedream", "--stages", "3"]) == 1
    captured = capsys.readouterr()
    assert "optimizer-step delay by stage: 2 1 0" in captured.out and "DIFFER" in captured.out
    assert "claim failed: delay of pipedream with 3 stages and 1 microbatches, stage 0: closed form 3" in captured.err


BREAKS = {
    "a version from the future": {"version": lambda self, stage, j: j + 1},
    "delays that never settle": {"version": lambda self, stage, j: 0, "versions_stored": lambda self, stage: 2},
    "too few versions": {"versions_stored": lambda self, stage: 1},
    "too many versions": {"versions_stored": lambda self, stage: 9},
    "a backward is missing": {
        "actions": lambda self, d, steps: (
            a for a in super(PipeDream, self).actions(d, steps) if (a.kind, d, a.microbatch) != ("backward", 1, 2)
        )
    },
    "no step": {
        "actions": lambda self, d, steps: (a for a in super(PipeDream, self).actions(d, steps) if a.kind != "step")
    },
    "backward first": {"actions": lambda self, d, steps: reversed(list(super(PipeDream, self).actions(d, steps)))},
}


@pytest.mark.mutation
@pytest.mark.parametrize("words", [["delays", "pipedream"], ["schedule", "pipedream"], ["compare"]])
@pytest.mark.parametrize("name", BREAKS)
def test_every_command_refuses_a_broken_schedule(name, words, capsys, monkeypatch):
    for method, broken in BREAKS[name].items():
        monkeypatch.setattr(PipeDream, method, broken)
    extra = ["--microbatches", "4"] if words == ["compare"] else []
    assert main([*words, "--stages", "4", *extra]) == 1
    captured = capsys.readouterr()
    assert 1 <= captured.err.count("claim failed: ") <= 7
    assert "Traceback" not in captured.err
    assert ("pipedream: not valid: " in captured.out) == (words == ["compare"])


@pytest.mark.mutation
def test_an_invalid_schedule_is_exit_1(capsys, monkeypatch):
    monkeypatch.setattr(PipeDream, "versions_stored", lambda self, stage: 1)
    assert main(["schedule", "pipedream", "--stages", "3"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "NOT VALID\n"
    assert "claim failed: device 0 holds up to 3 versions of stage 0; the schedule states 1" in captured.err
