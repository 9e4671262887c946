"""Budgets of training runs by the oracle: what is exact there, and what a theorem does not speak of."""

from __future__ import annotations

from dataclasses import replace
from functools import partialmethod

import pytest

from empirics.errors import InputError
from empirics.run_budget import Objective, budget_of_run, facts_of_run
from pipeline.models.bert import BERTConfig
from pipeline.models.gpt import GPTConfig
from pipeline.optim.corrections import CorrectionOptions
from pipeline.optim.lmo import LMO
from pipeline.training import TrainConfig

TEXT = bytes((i * i + 3 * i) % 251 for i in range(900))
SMALL = GPTConfig(layers=1, width=8, heads=2, context=8)
CONFIG = TrainConfig(steps=7, sequences=2, microbatches=2, optimizer="lmo", dtype="float64", model=SMALL)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("theorem", "change"),
    [
        ("delayed-lmo", {}),
        ("delayed-lmo-shifted", {"schedule": "uniform", "tau": 2}),
        ("delayed-lmo-median", {}),
        ("error-feedback", {"correction": "error-feedback"}),
        ("error-feedback-any-delay", {"correction": "error-feedback", "schedule": "uniform", "tau": 2}),
    ],
)
def test_every_pathwise_step_holds_on_a_gpt(theorem, change, dtype):
    config = replace(CONFIG, dtype=dtype, **change)
    found, result = budget_of_run(config, TEXT, theorem, windows=12)
    assert found["status"] == "complete" and len(result.losses) == 7
    assert [i["place"] for i in found["inequalities"] if i["violations"]] == []
    assert len(found["inequalities"]) > 25
    values = [level["value"] for level in found["waterfall"]]
    assert values[0] <= values[1] <= values[2] and values[-1] is None
    assert found["editions"]["trajectory"]["value"] is None  # 12 windows are not what the batches are drawn from
    assert "unbiased" in found["editions"]["trajectory"]["reason"]
    assert {i["kind"] for i in found["inequalities"]} == {"certified", "by construction", "equality", "definition"}
    assert found["objective"] == {
        "windows": 12, "of": 801, "what": "evenly spaced training windows, not all of them"
    }  # fmt: skip


def test_more_windows_than_there_are_is_all_of_them():
    objective = Objective.make(CONFIG, TEXT, 10_000)
    assert objective.whole and objective.windows == objective.of == 801
    pooled = Objective.make(replace(CONFIG, pool=5), TEXT, 10_000)
    assert pooled.whole and pooled.windows == 5


def test_the_whole_objective_has_an_edition_with_constants():
    found, _ = budget_of_run(replace(CONFIG, pool=5), TEXT, windows=5)
    assert found["editions"]["trajectory"]["value"] > found["waterfall"][2]["value"]
    assert found["objective"]["what"] == "all training windows"
    assert found["counts"]["evidence"] < found["counts"]["rows"] and found["counts"]["by construction"] > 5


def test_a_step_that_was_left_out_is_heard_of(monkeypatch):
    import empirics.run_budget as room

    honest = room.train_oracle

    def one_short(*arguments):
        result = honest(*arguments)
        result.skipped.append(3)
        return result

    monkeypatch.setattr(room, "train_oracle", one_short)
    found, _ = budget_of_run(CONFIG, TEXT, windows=4)
    assert found["status"] == "not applicable" and "1 steps were left out" in found["reasons"][0]


def test_a_momentum_that_starts_at_the_first_gradient(monkeypatch):
    """E0 is then that gradient's error, and the first error of the momentum (1-alpha) times it."""
    def make(config, named, start):
        return LMO(named, lr=0.01, alpha=0.1, norm="sign", momentum_start=start)

    found = {}
    for start in ("zero", "gradient"):
        monkeypatch.setattr(TrainConfig, "make_optimizer", partialmethod(make, start=start))
        found[start], _ = budget_of_run(CONFIG, TEXT, windows=4)
        assert found[start]["violations"] == 0
        assert any(i["name"] == "first error in norms" for i in found[start]["inequalities"])
    E0 = {start: next(c["value"] for c in b["constants"] if c["name"] == "E0") for start, b in found.items()}
    assert E0["gradient"] != pytest.approx(E0["zero"], rel=0.01)


def test_same_settings_same_numbers():
    first, second = (budget_of_run(CONFIG, TEXT, windows=4)[0] for _ in range(2))
    assert first == second


@pytest.mark.mutation
def test_gradients_of_one_step_older_are_seen(monkeypatch):
    """The delay that the budget is told, one step short of what the run has."""
    import empirics.run_budget as room

    honest = room.facts_of_run
    monkeypatch.setattr(room, "facts_of_run", lambda config: replace(honest(config), delays=frozenset([1])))
    found, _ = budget_of_run(replace(CONFIG, schedule="uniform", tau=2), TEXT, windows=4)
    broken = {i["name"] for i in found["inequalities"] if i["violations"]}
    assert "fixed_delay" in broken


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"optimizer": "adamw"}, "adamw has groups that are no LMO steps"),
        ({"optimizer": "muon"}, "muon has groups that are no LMO steps"),
        ({"schedule": "pipedream", "microbatches": 1}, "several delays: 0, 1"),
        ({"synchronous_steps": 3}, "first 3 steps have delay 0"),
        ({"clip": 1.0}, "clipped at 1"),
        ({"correction": "lr-discount"}, "lr-discount"),
        ({"correction": "error-feedback"}, "which the theorem does not know"),
        ({"dtype": "bfloat16"}, "rounded"),
        ({"model": replace(SMALL, dropout=0.1)}, "dropout"),
    ],
)
def test_what_the_theorem_is_not_about(change, words):
    found, result = budget_of_run(replace(CONFIG, **change), TEXT)
    assert found["status"] == "not applicable" and result is None
    assert any(words in reason for reason in found["reasons"])
    assert set(found) == {"theorem", "title", "status", "reasons"}


def test_facts():
    assert facts_of_run(CONFIG).delays == {1}
    assert facts_of_run(replace(CONFIG, schedule="1f1b")).delays == {0}
    corrected = replace(
        CONFIG, correction="error-feedback", correction_options=CorrectionOptions(coefficient=0.5)
    )
    found, _ = budget_of_run(corrected, TEXT, "error-feedback")
    assert "coefficient is 0.5" in found["reasons"][0]


def test_bad_input():
    with pytest.raises(InputError, match="windows"):
        budget_of_run(CONFIG, TEXT, windows=0)
    with pytest.raises(InputError, match="theorem"):
        budget_of_run(CONFIG, TEXT, "rpd-paper")
    with pytest.raises(InputError, match="bert"):
        budget_of_run(replace(CONFIG, model=BERTConfig(1, 8, 2, 8)), TEXT)
