"""A small GPT and a small list of dense layers, in float64 and with every step kept; for worker processes to find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.data.tensors import TensorBatches
from pipeline.engine.job import Job
from pipeline.models.gpt import GPTConfig
from pipeline.schedules import make_schedule
from pipeline.training import TrainConfig

TEXT = bytes((i * i + 3 * i) % 251 for i in range(6000))
MODEL = GPTConfig(layers=2, width=16, heads=2, context=16)
SMALL = TrainConfig(steps=5, sequences=2, dtype="float64", model=MODEL, snapshot_every=1)
EQUAL = (0.0, "")


def tensors(rows: int = 48, inputs: int = 6, targets: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(rows, n, generator=generator, dtype=torch.float64) for n in (inputs, targets))
    return x, y


def sgd(named: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for _, p in named if p.requires_grad], lr=0.1, momentum=0.9)


def mlp() -> list[nn.Module]:
    sizes = [(6, 8), (8, 8), (8, 5), (5, 3)]
    return [nn.Sequential(nn.Linear(a, b), nn.Tanh()).double() for a, b in sizes]


def job_of(layers: Any = mlp, S: int = 2, schedule: str = "pipedream-2bw", m: int = 4, **changes: Any) -> Job:
    x, y = tensors()
    job = Job(
        schedule=make_schedule(schedule, S, m),
        layers=layers,
        optimizer=sgd,
        data=TensorBatches(x, y, batch=12, microbatches=m),
        loss=nn.functional.mse_loss,
        steps=5,
        snapshot_every=1,
    )
    return replace(job, **changes)
