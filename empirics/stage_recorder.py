"""What a real run records by itself, on every rank, where no full gradient is needed.

A hook around the optimizer of each stage notes numbers of its own layers; product norms need a maximum (norms) or a sum
(duals, inner products) over all layers of all stages, so a stage writes one number a layer and `gather` puts them
together in the order of the model: no rank waits for another, and the result does not depend on the partition.

    job = replace(job, optimizer=Recorded(job.optimizer, "folder", every=10))
    run_job(job)
    rows = gather("folder")

Per recorded step k: step_norm (of U_k, before a correction), momentum_norm, inner_momentum (with d_k = -U_k/eta),
drift_norm (of U_k - U_{k-1}), update_drift (the same over U_k, Frobenius). The optimizer has to be an LMO, in wrappers
or not. Memory: three copies of the stage's weights at a recorded step, less between.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from empirics.batched_norms import stack_norms
from empirics.errors import InputError
from pipeline.optim.lmo import LMO
from pipeline.optim.wrapper import Wrapper

Named = list[tuple[str, Any]]
NAME = "recorded-{}.jsonl"


@dataclass(frozen=True)
class Recorded:
    """An optimizer factory of a job that records into ``folder``, one file a stage; picklable if ``make`` is."""

    make: Callable[[Named], Optimizer]
    folder: str
    every: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise InputError(f"every: {self.every!r}; allowed is an integer >= 1")

    def __call__(self, named: Named) -> Optimizer:
        optimizer = self.make(named)
        inner: Optimizer = optimizer
        while isinstance(inner, Wrapper):
            inner = inner.base
        if not isinstance(inner, LMO):
            raise InputError(f"optimizer: {type(inner).__name__}; allowed is LMO, whose norm the record is in")
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        path = Path(self.folder) / NAME.format(named[0][0])
        path.unlink(missing_ok=True)
        hook = StageHook(inner, {p: name for name, p in named}, path, self.every)
        inner.register_step_pre_hook(hook.before)
        inner.register_step_post_hook(hook.after)
        return optimizer


class StageHook:
    """Looks at one stage's LMO before and after each step."""

    def __init__(self, optimizer: LMO, names: dict[Tensor, str], path: Path, every: int) -> None:
        self.names, self.path, self.every = names, path, every
        self.k = 0
        self._before: dict[Tensor, Tensor] = {}
        self._last: dict[Tensor, Tensor] = {}  # U_{k-1}

    @property
    def _looks(self) -> bool:
        """Whether step k is recorded, or is the one before such a step."""
        return self.k % self.every == 0 or (self.k + 1) % self.every == 0

    def before(self, optimizer: Optimizer, *_: Any) -> None:
        if self._looks:
            parameters = (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
            self._before = {p: p.detach().clone() for p in parameters}

    @torch.no_grad()
    def after(self, optimizer: Optimizer, *_: Any) -> None:
        if self._looks:
            updates = {p: p.detach() - old for p, old in self._before.items()}
            if self.k % self.every == 0:
                layers = [self._layer(optimizer, group, p, updates) for group in optimizer.param_groups
                          for p in group["params"] if p in updates]  # fmt: skip
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"k": self.k, "layers": layers}) + "\n")
            self._before, self._last = {}, updates
        self.k += 1

    def _layer(
        self, optimizer: Optimizer, group: dict[str, Any], p: Tensor, updates: dict[Tensor, Tensor]
    ) -> list[Any]:
        U, m = updates[p].double(), optimizer.state[p]["momentum"].double()
        last = self._last.get(p)
        drift = None if last is None else (updates[p] - last).double()
        norm, weight = group["norm"], group["weight"]
        stack = U[None] if drift is None else torch.stack([U, drift])
        norms = (stack_norms(stack, norm, False) / weight).tolist()
        squares = (stack**2).flatten(1).sum(1).tolist()
        dual = float(stack_norms(m[None], norm, True)[0]) * weight
        along = float(-(m * U).sum()) / group["lr"]
        return [self.names[p], norms[0], dual, along, squares[0], *([norms[1], squares[1]] if len(norms) > 1 else [])]


def gather(folder: str) -> list[dict[str, float]]:
    """One row a recorded step, over all layers of all stages.

    Raises InputError where no stage has recorded, or where stages have recorded other steps than the first.
    """
    files = sorted(Path(folder).glob(NAME.format("*")))
    if not files:
        raise InputError(f"folder: {folder!r} has no {NAME.format('*')}; give the folder of Recorded")
    stages = [[json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files]
    for file, stage in zip(files, stages, strict=True):
        if [row["k"] for row in stage] != [row["k"] for row in stages[0]]:
            raise InputError(f"folder: {file.name} has other steps than {files[0].name}; allowed are whole runs")
    return [_over_model(rows) for rows in zip(*stages, strict=True)]


def _over_model(stages: tuple[dict[str, Any], ...]) -> dict[str, float]:
    by_name = {layer[0]: layer for stage in stages for layer in stage["layers"]}  # a tied weight counts once
    layers = [by_name[name] for name in sorted(by_name)]
    row = {
        "k": float(stages[0]["k"]),
        "step_norm": max(layer[1] for layer in layers),
        "momentum_norm": math.fsum(layer[2] for layer in layers),
        "inner_momentum": math.fsum(layer[3] for layer in layers),
    }
    if all(len(layer) > 5 for layer in layers):
        row["drift_norm"] = max(layer[5] for layer in layers)
        square = math.fsum(layer[4] for layer in layers)
        row["update_drift"] = math.sqrt(math.fsum(layer[6] for layer in layers) / square) if square else math.nan
    return row
