"""`staleproof optimizers`: the table, one entry, and both as JSON."""

from __future__ import annotations

import json

import pytest

from pipeline.optim.registry import ABSENT, REGISTRY
from staleproof.cli import main


def test_the_table_has_every_optimizer_and_what_is_absent(capsys):
    assert main(["optimizers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(REGISTRY)]] == list(REGISTRY)
    assert all(f"absent: {name}, " in "\n".join(lines) for name in ABSENT)
    assert max(map(len, lines)) <= 120


def test_json_is_the_registry(capsys):
    assert main(["optimizers", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in result["optimizers"]] == list(REGISTRY)
    assert result["absent"] == ABSENT
    for entry in result["optimizers"]:
        assert entry["lr"] == REGISTRY[entry["name"]].lr
        assert set(entry) == {
            "name", "origin", "extra", "lr", "lr_from", "lr_scale", "groups", "settings", "reference", "buffers",
            "known",
        }  # fmt: skip


@pytest.mark.parametrize("name", REGISTRY)
def test_one_entry_in_full(name, capsys):
    assert main(["optimizers", name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 120
    joined = " ".join(text.split())
    recipe = REGISTRY[name]
    for said in (recipe.origin, recipe.groups, recipe.reference, recipe.lr_from, *recipe.known):
        assert " ".join(said.split()) in joined
    assert main(["optimizers", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] == list(recipe.known)


@pytest.mark.parametrize("name", ["adam", "mars-m"])
def test_unknown_names_list_the_known(name, capsys):
    assert main(["optimizers", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"optimizer: '{name}'" in captured.err
    assert "allowed are adamuon, adamw" in captured.err
