"""Device and transport are chosen openly, by a pure function of (GPUs, ranks)."""

from __future__ import annotations

import pytest
import torch

from pipeline.engine.transport import Direction, Message, Placement, choose_placement
from pipeline.errors import InputError


@pytest.mark.parametrize(
    ("gpus", "ranks", "rank", "expected"),
    [
        (0, 4, 3, Placement("gloo", "cpu", False)),
        (4, 4, 3, Placement("nccl", "cuda:3", False)),
        (8, 4, 1, Placement("nccl", "cuda:1", False)),
        (1, 4, 3, Placement("gloo", "cuda:0", True)),
        (2, 4, 3, Placement("gloo", "cuda:1", True)),
        (1, 1, 0, Placement("nccl", "cuda:0", False)),
    ],
)
def test_choice(gpus, ranks, rank, expected):
    assert choose_placement(gpus, ranks, rank) == expected


def test_forced_choices():
    assert choose_placement(4, 2, 1, device="cpu") == Placement("gloo", "cpu", False)
    assert choose_placement(4, 2, 1, transport="gloo") == Placement("gloo", "cuda:1", True)
    assert choose_placement(2, 2, 1, device="cuda", transport="nccl") == Placement("nccl", "cuda:1", False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gpus": 0, "ranks": 2, "transport": "nccl"}, "transport = 'nccl': needs one GPU for each of the 2 stages"),
        ({"gpus": 1, "ranks": 2, "transport": "nccl"}, "this run has 1; allowed are auto, gloo"),
        ({"gpus": 4, "ranks": 2, "device": "cpu", "transport": "nccl"}, "this run has 0"),
        ({"gpus": 0, "ranks": 2, "device": "cuda"}, "device = 'cuda': this machine has no GPU"),
        ({"gpus": 0, "ranks": 2, "device": "tpu"}, "device = 'tpu': allowed are auto, cpu, cuda"),
        ({"gpus": 0, "ranks": 2, "transport": "mpi"}, "transport = 'mpi': allowed are auto, gloo, nccl"),
    ],
)
def test_impossible_choices_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        choose_placement(**arguments)
    assert "\n" not in str(caught.value)


def test_messages_that_have_been_taken_are_let_go():
    class Work:
        waited = 0

        def wait(self) -> None:
            Work.waited += 1

    direction = Direction(None, staged=False, keep=3)  # type: ignore[arg-type]
    for _ in range(10):
        direction._sent.append(Message(Work(), torch.zeros(1)))  # type: ignore[arg-type]
        direction.send([])
        assert len(direction._sent) <= 3
    assert Work.waited == 7
    direction.drain()
    assert Work.waited == 10 and not direction._sent
