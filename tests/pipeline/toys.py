"""Small jobs for tests of the engine; top-level names only, so that worker processes find them."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pipeline.engine.job import Job
from pipeline.optim.recipes import make_optimizer
from pipeline.schedules import make_schedule


@dataclass(frozen=True)
class Rows:
    """Microbatch j: ``rows`` rows of ``width`` numbers drawn from j; the targets are their sines."""

    rows: int = 2
    width: int = 4

    def microbatch(self, j: int) -> Any:
        x = torch.randn(self.rows, self.width, generator=torch.Generator().manual_seed(j), dtype=torch.float64)
        return x, x.sin()


def squared(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().mean()


def dense_layers(count: int = 4, width: int = 4) -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(width, width), nn.Tanh()).double() for _ in range(count)]


def hurt(how: str) -> None:
    """Fail in one of the ways in which a process can."""
    if how == "raise":
        raise ValueError("bad record 17")
    if how == "exit":
        sys.exit(5)
    if how == "quit":
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


class HurtBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, how: str) -> torch.Tensor:
        ctx.how = how
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        hurt(ctx.how)


class Fragile(nn.Module):
    """A linear layer that fails in its ``at``-th call (from 1; torch's search for shapes is one), or behind it."""

    def __init__(self, where: str, how: str, at: int, width: int = 4) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width).double()
        self.where, self.how, self.at, self.calls = where, how, at, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.inner(x)
        if self.calls == self.at and self.where == "forward":
            hurt(self.how)
        if self.calls == self.at and self.where == "backward":
            x = HurtBackward.apply(x, self.how)
        return x


def fragile_layers(index: int, where: str, how: str, at: int = 6) -> list[nn.Module]:
    layers = dense_layers()
    layers[index] = Fragile(where, how, at)
    return layers


class FragileSGD(torch.optim.SGD):
    """Fails in its third step where the layer with index ``layer`` is at this stage."""

    def __init__(self, named: Any, layer: int, how: str) -> None:
        super().__init__([p for _, p in named], lr=0.1)
        self.here = any(name.startswith(f"layers.{layer}.") for name, _ in named)
        self.how, self.steps = how, 0

    def step(self, closure: Any = None) -> None:
        self.steps += 1
        if self.here and self.steps == 3:
            hurt(self.how)
        super().step()


def fragile_sgd(named: Any, layer: int, how: str) -> torch.optim.Optimizer:
    return FragileSGD(named, layer, how)


class Langevin(torch.optim.Optimizer):
    """SGD plus noise from torch's global generator."""

    def __init__(self, named: Any) -> None:
        super().__init__([p for _, p in named], {"lr": 0.05})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(-group["lr"] * p.grad + 0.01 * torch.randn_like(p))


class Sleepy(nn.Module):
    """A dense layer that rests 0 to 5 ms, by the system's randomness, in forwards and backwards."""

    def __init__(self, rest: bool, width: int = 4) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width).double()
        self.rest = rest

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.rest:
            return self.inner(x).tanh()
        time.sleep(os.urandom(1)[0] / 51_000)
        y = self.inner(x).tanh()
        if y.requires_grad:
            y.register_hook(_rest)
        return y


def _rest(gradient: torch.Tensor) -> None:
    time.sleep(os.urandom(1)[0] / 51_000)


def sleepy_layers(rest: bool, count: int = 4) -> list[nn.Module]:
    return [Sleepy(rest) for _ in range(count)]


def optimizer(name: str = "sgd", correction: str = "none", tau: int = 1, lr: float = 0.05) -> Any:
    return functools.partial(_make, name, correction, tau, lr)


def _make(name: str, correction: str, tau: int, lr: float, named: Any) -> torch.optim.Optimizer:
    return make_optimizer(name, named, lr, correction, tau)


def toy_job(schedule: str = "pipedream-2bw", stages: int = 2, m: int | None = 2, **changes: Any) -> Job:
    """A job over four small dense layers; ``changes`` are fields of the job, ``options`` those of the schedule."""
    options = changes.pop("options", {})
    fields: dict[str, Any] = {
        "layers": dense_layers,
        "optimizer": optimizer(),
        "data": Rows(),
        "loss": squared,
        "steps": 12,
        "seed": 3,
    }
    return Job(schedule=make_schedule(schedule, stages, m, **options), **(fields | changes))


def normed_layers() -> list[nn.Module]:
    layers = dense_layers()
    layers[1] = nn.BatchNorm1d(4).double()
    return layers


class Shrinking(nn.Module):
    """Passes on one row less from its ``at``-th call on."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4).double()
        self.at, self.calls = at, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.inner(x)
        return x[1:] if self.calls >= self.at else x


class Turned(nn.Module):
    """Returns a view that is not contiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).transpose(0, 1)


def shrinking_layers(index: int) -> list[nn.Module]:
    layers = dense_layers()
    layers[index] = Shrinking(6)
    return layers


def turned_layers() -> list[nn.Module]:
    return [Turned() for _ in range(4)]


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(0.9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def scale_layers() -> list[nn.Module]:
    return [Scale() for _ in range(4)]


@dataclass(frozen=True)
class Constant:
    """Microbatch j: a row of ``width`` times the number j + 1, as float32."""

    width: int

    def microbatch(self, j: int) -> Any:
        x = torch.full((1, self.width), float(j + 1))
        return x, x / 2
