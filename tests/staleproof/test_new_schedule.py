"""A schedule that exists only as data: delays by enumeration, a clear word on what is not known about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from pipeline import schedules
from pipeline.errors import InputError
from pipeline.models.gpt import GPTConfig
from pipeline.schedules.pipedream_2bw import PipeDream2BW
from pipeline.training import TrainConfig, train_oracle
from staleproof.commands.delays import _text, both_ways


@dataclass(frozen=True)
class Slower(PipeDream2BW):
    """2BW that reads one version further back."""

    name = "slower"

    def version(self, stage: int, microbatch: int) -> int:
        return max(microbatch // self.microbatches - 2, 0)

    def versions_stored(self, stage: int) -> int:
        return 3


@pytest.fixture
def slower(monkeypatch):
    monkeypatch.setitem(schedules.SCHEDULES, "slower", Slower)


def test_delays_come_from_the_enumeration(slower):
    counted, differences = both_ways("slower", 3, 3)
    assert counted["optimizer_step_delay"] == [2, 2, 2]
    assert differences == []
    assert "no closed form" in _text(counted)


def test_the_oracle_says_that_it_does_not_know_it(slower):
    config = TrainConfig(schedule="slower", steps=2, model=GPTConfig(layers=1, width=8, heads=2, context=8))
    assert config.delays == [2, 2]
    with pytest.raises(InputError, match="schedule 'slower': the oracle knows 1f1b, pipedream, pipedream-2bw"):
        train_oracle(config, bytes(1000))
    assert replace(config, schedule="1f1b").delays == [0, 0]
