"""Runs of real optimizer code on many replicas of a model at once, and the samples that they see.

An optimizer that acts on each entry by itself gets one parameter [R, n]; one that looks at matrices gets R parameters
of each of the model's shapes, and does with each what it would do in a run of its own.
Checked by tests/empirics/test_replica_runs.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from empirics.errors import InputError
from empirics.problems.replicas import ReplicaLoss
from pipeline.optim.delayed import Delayed
from pipeline.optim.parts import Named
from pipeline.optim.wrapper import parameters_of

#: A loss beyond this multiple of the first one: the run is labelled, and nothing is averaged.
DIVERGED = 100.0
#: A matrix [R, n] -> the place in it that a parameter has, as a view of the parameter's shape.
Place = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class ReplicaRuns:
    """f at x_0 .. x_K of every replica, [K+1, R], and the drift |U_k - U_{k-1}|/|U_k| of its updates, [K-1, R].

    Once some replica has diverged nothing more is run: losses from there on are infinite, and their drift is missing.
    """

    losses: np.ndarray
    drift: np.ndarray

    @property
    def diverged(self) -> bool:
        """Whether some replica left float64, or DIVERGED times the value that it started from."""
        return not bool((self.losses <= DIVERGED * np.abs(self.losses[0])).all())


def run_replicas(
    problem: ReplicaLoss, w0: Tensor, make: Callable[[Parameter], Delayed], rows: Tensor
) -> ReplicaRuns:
    """From w0 [n] with an elementwise optimizer; rows [K, R, b]: what each replica samples at each step."""
    start = _start(w0, rows)
    p = Parameter(start.clone())
    return _run(problem, start, {p: lambda whole: whole}, make(p), rows)


def run_by_shape(problem: ReplicaLoss, w0: Tensor, make: Callable[[Named], Delayed], rows: Tensor) -> ReplicaRuns:
    """The same with an optimizer of named parameters, which may go by name and shape (`split_parameters`)."""
    start = _start(w0, rows)
    named, places = [], dict[Tensor, Place]()
    for r in range(len(start)):
        for name, place in _places(problem, r):
            p = Parameter(place(start).clone())
            named.append((f"replica{r}.{name}", p))
            places[p] = place
    return _run(problem, start, places, make(named), rows)


def _start(w0: Tensor, rows: Tensor) -> Tensor:
    if rows.ndim != 3:
        raise InputError(f"rows: shape {tuple(rows.shape)}; allowed is (steps, replicas, batch)")
    return w0.detach().repeat(rows.shape[1], 1)


def _places(problem: ReplicaLoss, r: int) -> Iterator[tuple[str, Place]]:
    """Name and place of each of replica r's parameters."""
    at = 0
    for name, shape in problem.layout.items():
        end = at + math.prod(shape)
        yield name, partial(_piece, r, at, end, shape)
        at = end


def _piece(r: int, first: int, end: int, shape: tuple[int, ...], whole: Tensor) -> Tensor:
    return whole[r, first:end].view(shape)


def _run(
    problem: ReplicaLoss, start: Tensor, places: Mapping[Tensor, Place], optimizer: Delayed, rows: Tensor
) -> ReplicaRuns:
    def gathered(values: Iterable[Tensor]) -> Tensor:
        """[R, n], from one tensor for each of the optimizer's parameters."""
        whole = torch.empty_like(start)
        for p, value in zip(parameters_of(optimizer), values, strict=True):
            places[p](whole).copy_(value.detach())
        return whole

    x, before, losses, drift = start, None, [problem.value(start)], []
    for sampled in rows:
        gradient = problem.gradient(gathered(parameters_of(optimizer)), sampled)  # at weights of tau steps ago
        for p, place in places.items():
            p.grad = place(gradient)
        optimizer.step()
        new = gathered(optimizer.newest())
        losses.append(problem.value(new))
        if not bool((losses[-1] <= DIVERGED * losses[0].abs()).all()):
            break
        update = new - x
        if before is not None:
            drift.append((update - before).norm(dim=1) / update.norm(dim=1))
        x, before = new, update
    found = np.full((len(rows) + 1, len(start)), np.inf)
    found[: len(losses)] = torch.stack(losses).numpy()
    return ReplicaRuns(found, torch.stack(drift).numpy() if drift else np.empty((0, len(start))))


def draw_rows(problem: ReplicaLoss, steps: int, seeds: int, batch: int, seed: int) -> Tensor:
    """Samples of every step, replica and place in the batch, with replacement."""
    if min(steps, batch) < 1 or seeds < 2:
        raise InputError(f"steps, seeds, batch: {steps!r}, {seeds!r}, {batch!r}; allowed are >= 1, >= 2, >= 1")
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(problem.samples, (steps, seeds, batch), generator=generator)


def settle(problem: ReplicaLoss, steps: int, eta: float) -> Tensor:
    """A point on the way: full-gradient descent from the problem's start, [n]."""
    w = problem.start[None]
    for _ in range(steps):
        w = w - eta * problem.gradient(w)
    if not bool(torch.isfinite(w).all()):
        raise InputError(f"eta: {eta!r}; the run diverges and leaves float64")
    return w[0]
