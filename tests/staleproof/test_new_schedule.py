"""A schedule is one file and one line: the template as it ships, registered, runs everywhere a schedule does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline import schedules
from pipeline.clock import simulate
from pipeline.compare import compare
from pipeline.delays import delays_per_microbatch
from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.schedules import make_schedule
from pipeline.schedules.TEMPLATE import Template
from pipeline.training import TrainConfig, train, train_oracle
from pipeline.validity import check
from staleproof.cli import main
from staleproof.commands.delays import _text, both_ways

MODEL = GPTConfig(layers=2, width=8, heads=2, context=8)


@pytest.fixture
def template(monkeypatch):
    monkeypatch.setitem(schedules.SCHEDULES, Template.name, Template)


def test_delays_come_from_the_enumeration(template):
    counted, differences = both_ways(make_schedule("template", 3, 3))
    assert counted["optimizer_step_delay"] == [2, 2, 1]
    assert differences == []
    assert "no closed form" in _text(counted)


def test_it_is_valid_and_states_its_versions(template):
    for S, m in ((1, 1), (3, 1), (4, 4), (5, 2)):
        result = check(make_schedule("template", S, m))
        assert result.problems == [] and result.valid


def test_commands_know_it(template, capsys):
    assert main(["schedule", "template", "--stages", "4"]) == 0
    assert "valid" in capsys.readouterr().out
    assert "template" in [row["name"] for row in compare(4, 4)]


@pytest.mark.processes
def test_it_trains_on_real_processes(template, two_workers):
    config = TrainConfig(schedule="template", steps=5, sequences=2, microbatches=2, model=MODEL)
    result = train(config, bytes(range(250)) * 20, two_workers)
    assert delays_per_microbatch(result.events) == delays_per_microbatch(simulate(config.plan, config.steps))
    assert result.peak_versions == [config.plan.versions_stored(s) for s in range(2)]


def test_the_oracle_says_that_it_does_not_know_it(template):
    config = TrainConfig(schedule="template", steps=2, model=MODEL)
    assert config.delays == [2, 1]
    with pytest.raises(InputError, match="schedule 'template': the oracle knows gpipe, 1f1b, pipedream"):
        train_oracle(config, bytes(1000))
    assert replace(config, schedule="1f1b").delays == [0, 0]
