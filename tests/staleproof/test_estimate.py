"""`staleproof estimate`: problems by name, run folders, and one line for whatever cannot be."""

from __future__ import annotations

import json
import math

import pytest
import torch

from empirics.estimators import ESTIMATORS
from empirics.problem_constants import NAMES
from empirics.problems.matrix_least_squares import random_problem
from empirics.problems.registry import PROBLEMS
from empirics.run_constants import NAMES as RUN_NAMES
from staleproof.cli import main
from tests.staleproof.run_folders import edit

SMALL = {
    "least-squares": ["rows=3", "cols=4"],
    "quadratic": ["modes=4"],
    "logistic": ["samples=12", "features=3"],
    "mlp": ["samples=8", "features=2", "hidden=3", "outputs=1"],
    "gpt": ["sequences=3", "width=8", "context=8"],
}


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(bytes((7 * i * i + i) % 256 for i in range(4000)))
    return path


def estimate(capsys, *words):
    assert main(["estimate", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_constants_of_every_problem(name, corpus, capsys):
    options = SMALL[name] + ([f"corpus={corpus}"] if name == "gpt" else [])
    result = estimate(capsys, name, "--constants", "all", "--set", *options, "--draws", "12")
    assert [c["name"] for c in result["constants"]] == list(NAMES)
    for c in result["constants"]:
        assert c["how"] in ("exact", "bound", "estimated")
        assert (c["value"] is None) == bool(c["reason"])
        if c["value"] is not None and c["low"] is not None:
            assert c["low"] <= c["value"] <= float(c["high"])
        if c["how"] == "exact" and c["value"] is not None:
            assert c["low"] == c["high"] == c["value"]


def test_known_constants_come_out_exactly(capsys):
    words = ["least-squares", "--set", "rows=3", "cols=4", "seed=2", "sigma=0.5", "--batch", "4"]
    found = {c["name"]: c for c in estimate(capsys, *words, "--constants", "L,sigma,rho,f_star")["constants"]}
    problem = random_problem(3, 4, 2)
    assert found["L"]["value"] == problem.L() and found["f_star"]["value"] == problem.f_star
    assert found["sigma"]["value"] == 0.25 and found["rho"]["value"] == pytest.approx(math.sqrt(3))


def test_same_seed_same_numbers(capsys):
    words = ["mlp", "--set", *SMALL["mlp"], "--constants", "L,dual_noise,rho_effective"]
    first = estimate(capsys, *words)
    assert estimate(capsys, *words) == first
    assert estimate(capsys, *words, "--seed", "1") != first


def test_text_and_list(capsys):
    assert main(["estimate", "quadratic", "--constants", "L,sigma,E0,hessian_lipschitz", "--set", "noise_std=0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "quadratic, norm: frobenius"
    assert [line.split()[0] for line in lines[1:]] == ["L", "sigma", "E0", "hessian_lipschitz"]
    assert "exact; everywhere" in lines[1]
    assert lines[4] == "hessian_lipschitz 0  exact; everywhere; the Hessian is constant"
    assert main(["estimate", "quadratic", "--constants", "dual_noise", "--set", "noise_std=0"]) == 0
    assert "not applicable: all 64 samples are 0" in capsys.readouterr().out
    assert main(["estimate", "--list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in (*PROBLEMS, *ESTIMATORS))
    assert main(["estimate", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed["problems"]) == set(PROBLEMS) and set(listed["estimators"]) == set(ESTIMATORS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["target: not given", "--list"]),
        (["nowhere"], ["'nowhere' is neither a folder nor one of least-squares"]),
        (["mlp", "--constants", "L,Q"], ["constants: 'Q'", "allowed are L, hessian_norm, lambda_max"]),
        (["mlp", "--constants", "L,L"], ["'L' is given twice"]),
        (["mlp", "--norm", "nuclear"], ["norm: 'nuclear'", "spectral, sign"]),
        (["mlp", "--norm", "spectral"], ["norm: 'spectral'", "bias"]),
        (["quadratic", "--norm", "row-l2"], ["norm: 'row-l2'"]),
        (["mlp", "--set", "hidden"], ["'hidden'", "OPTION=VALUE"]),
        (["mlp", "--set", "hidden=2", "hidden=3"], ["twice"]),
        (["mlp", "--set", "depth=2"], ["'depth'", "samples, features"]),
        (["mlp", "--level", "1"], ["--level", "'1'"]),
        (["mlp", "--draws", "2"], ["--draws", "'2'"]),
        (["mlp", "--batch", "0"], ["--batch", "'0'"]),
        (["mlp", "--batch", "1000000000"], ["--batch", "'1000000000'", "to 100000"]),
        (["mlp", "--batch", "20000"], ["draws times batch: 64 x 20000", "at most 1000000"]),
        (["mlp", "--set", "hidden=0"], ["'0'", "from 1 to 4096"]),
        (["mlp", "--constants", "dbar"], ["'dbar' is of a run only; of a problem allowed are L, "]),
        (["mlp", "--constants", "noise_norm"], ["'noise_norm'", "is what empirics.lmo_recorder.LMORecorder, rows"]),
        (["."], ["no status.json", "staleproof train --out"]),
        ([".", "--batch", "2"], ["for problems only"]),
        (["mlp", "--windows", "2"], ["windows: for runs only"]),
        ([".", "--windows", "0"], ["--windows", "'0'"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["estimate", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1, captured.err
    assert all(word in captured.err for word in said), captured.err


TRAIN = [
    "--steps", "4", "--layers", "1", "--width", "8", "--heads", "2", "--context", "8", "--sequences", "2",
    "--optimizer", "lmo",
]  # fmt: skip


@pytest.fixture
def run_folder(train_in_process, corpus, tmp_path):
    def make(*words):
        folder = tmp_path / "run"
        done = train_in_process(*TRAIN, "--corpus", str(corpus), "--out", str(folder), *words)
        assert done.returncode == 0, done.stderr
        return folder

    return make


@pytest.mark.processes
def test_a_run_folder(run_folder, capsys):
    folder = run_folder()
    capsys.readouterr()
    words = (str(folder), "--constants", "all", "--draws", "8", "--windows", "8")
    result = estimate(capsys, *words)
    assert result["norm"].startswith("the optimizer's own") and result["diverged"] is None
    found = {}
    for c in result["constants"]:
        found.setdefault(c["name"], []).append(c)
    assert list(found) == list(RUN_NAMES)
    assert [c["value"] for c in (found["eta"] + found["alpha"] + found["tau"] + found["K"])] == [0.01, 0.05, 1.0, 4.0]
    assert all(found[name][0]["how"] == "exact" for name in ("eta", "alpha", "tau", "K", "rho"))
    for name in ("L", "sigma"):
        assert [c["where"].split(",")[0] for c in found[name]] == ["start", "last weights"]
        assert all(c["value"] > 0 for c in found[name])
        assert all(c["how"] == "estimated" and 0 <= c["low"] <= c["value"] <= float(c["high"]) for c in found[name])
    gap = found["Delta0"][0]
    assert gap["value"] == pytest.approx(math.log(256), abs=1.0) and 0 <= gap["low"] <= gap["value"] <= gap["high"]
    # Of the run made again; the text has more windows than are taken.
    assert found["dbar"][0]["value"] == pytest.approx(1.0, rel=1e-3) and found["r_hi"][0]["how"] == "exact"
    assert "f over 8 of 3591 training windows" in found["E0"][0]["where"] and found["E0"][0]["value"] > 0
    assert found["E0"][0]["how"] == found["mean_error_norm"][0]["how"] == "estimated"
    (whole,) = estimate(capsys, str(folder), "--constants", "E0", "--windows", "3591")["constants"]
    assert whole["how"] == "exact" and "all 3591 training windows" in whole["where"]
    assert 0 < whole["value"] < found["E0"][0]["value"] and "too large" in found["E0"][0]["note"]
    assert estimate(capsys, *words) == result
    # What is wrong with a folder is said, not guessed around.
    kept = (folder / "weights.pt").read_bytes()
    for broken in (kept[:100], b""):
        (folder / "weights.pt").write_bytes(broken)
        (lost,) = estimate(capsys, str(folder), "--constants", "sigma")["constants"]
        assert "weights.pt' cannot be read" in lost["reason"]
    torch.save({"layers.0.byte_embedding.weight": torch.zeros(2)}, folder / "weights.pt")
    (lost,) = estimate(capsys, str(folder), "--constants", "sigma")["constants"]
    assert "has no 'layers.0.byte_embedding.weight' of shape (256, 8)" in lost["reason"]
    (folder / "weights.pt").write_bytes(kept)
    assert main(["estimate", str(folder), "--norm", "sign"]) == 2
    assert "has its own norm" in capsys.readouterr().err
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps(status | {"state": "interrupted"}))
    assert main(["estimate", str(folder)]) == 2
    assert "the state 'interrupted'; allowed is a run that came to its end" in capsys.readouterr().err
    (folder / "status.json").write_text(json.dumps({"state": "complete"}))
    assert main(["estimate", str(folder)]) == 2
    assert "status.json has no 'settings'" in capsys.readouterr().err
    (folder / "status.json").write_text(json.dumps(status))
    summary = json.loads((folder / "run.json").read_text())
    summary["losses"][2] = "NaN"
    (folder / "run.json").write_text(json.dumps(summary))
    assert main(["estimate", str(folder), "--constants", "sigma,eta", "--json"]) == 3
    lost = json.loads(capsys.readouterr().out)["constants"]
    assert lost[0]["reason"] == "the run diverged: the loss is not finite at step 3" and lost[1]["value"] == 0.01
    (folder / "run.json").write_text(json.dumps(summary | {"corpus": {"sha256": "0" * 64}}))
    assert main(["estimate", str(folder)]) == 2
    assert "the run had 000000000000" in capsys.readouterr().err
    (folder / "run.json").write_text(json.dumps({"corpus": 1}))
    assert main(["estimate", str(folder)]) == 2
    assert "run.json has no 'settings'" in capsys.readouterr().err
    (folder / "run.json").write_text("{")
    assert main(["estimate", str(folder)]) == 2
    assert "run.json' is cut off or no JSON" in capsys.readouterr().err


@pytest.mark.processes
def test_runs_whose_gradients_are_not_those_of_one_function(run_folder, capsys):
    folder = run_folder("--dropout", "0.5", "--optimizer", "adamw")
    capsys.readouterr()
    found = estimate(capsys, str(folder), "--constants", "L,sigma,alpha,rho", "--norm", "layers")["constants"]
    assert all("dropout = 0.5 in training" in c["reason"] for c in found[:2])
    assert "'adamw' has no single alpha" in found[2]["reason"] and found[3]["value"] > 1
    for name in ("status.json", "run.json"):
        edit(folder, name, lambda file: file["settings"].update(model="bert"))
    (reason,) = (c["reason"] for c in estimate(capsys, str(folder), "--constants", "sigma")["constants"])
    assert "model = 'bert'" in reason


@pytest.mark.processes
def test_sigma_of_a_run_is_its_formula(run_folder, capsys):
    """At the start, from the same fresh batches, with torch alone."""
    from empirics.run_constants import RunConstants

    folder = run_folder()
    setting = RunConstants(folder, draws=6)
    found = setting.measure("sigma")[0]
    config, batch = setting.config, 2 * setting.config.plan.microbatches
    data, layers = config.batches(setting.corpus.text), config.make_layers()
    parameters = [p for layer in layers for p in layer.parameters()]
    first = config.steps * config.plan.microbatches
    rows = []
    for i in range(6):
        pair = [data.microbatch(first + 2 * i + j) for j in (0, 1)]
        inputs, targets = (torch.cat(t) for t in zip(*pair, strict=True))
        assert len(inputs) == batch
        h = inputs
        for layer in layers:
            h = layer(h)
        loss = torch.nn.functional.cross_entropy(h.flatten(0, 1), targets.flatten())
        gradient = torch.autograd.grad(loss, parameters)
        rows.append(torch.cat([g.flatten() for g in gradient]).double())
    variance = torch.stack(rows).var(dim=0).sum().item()
    assert found.value == pytest.approx(math.sqrt(variance), rel=1e-5)
