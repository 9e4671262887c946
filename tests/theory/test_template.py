"""The template is a theorem like any other: copied and registered, everything works with it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from staleproof.cli import main
from theory import BOUNDS, Bound
from theory.TEMPLATE import BOUND

VALUES = dict(eta=0.1, L=2, K=50, Delta0=3)


def test_the_statement():
    assert BOUND.evaluate(**VALUES) == pytest.approx(3 / (0.1 * 50) + 2 * 0.1 / 2, rel=1e-15)
    tuned = BOUND.tune(("eta",), L=2, K=50, Delta0=3)
    assert tuned.value == pytest.approx(2 * np.sqrt(3 / 50), rel=1e-14) and tuned.relative_price is None
    assert Bound.from_json(json.loads(json.dumps(BOUND.to_json()))) == BOUND


def test_on_runs(lmo_run):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 3))
        run = lmo_run(A @ A.T, np.zeros(3), rng.standard_normal(3), np.zeros(3), np.zeros((50, 3)), 0.1, 1.0, 0)
        mean = np.mean([np.abs(run.gradient(x)).sum() for x in run.x[:-1]])
        assert mean <= BOUND.evaluate(L=run.L, eta=0.1, K=50, Delta0=run.f(run.x[0]))


def test_registered_it_is_known_to_the_command_line(monkeypatch, capsys):
    assert main(["bound", "template"]) == 2  # no stray registration
    monkeypatch.setitem(BOUNDS, BOUND.name, BOUND)
    capsys.readouterr()
    words = [f"{name}={value}" for name, value in VALUES.items()]
    assert main(["bound", "template", "--set", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == BOUND.evaluate(**VALUES)
    assert main(["bound", "template", "--tune", "--set", *words[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "closed form"
    assert main(["bound", "--compare", "template", "delayed-lmo"]) == 0
    assert "delay: in the second only" in capsys.readouterr().out
    assert main(["bound", "--list"]) == 0 and "template" in capsys.readouterr().out
