"""What a real run records by itself, on every rank, where no full gradient is needed.

A hook around the optimizer of each stage notes numbers of its own layers; product norms need a maximum (norms) or a sum
(duals, inner products) over all layers of all stages, so a stage writes one number a layer and `gather` puts them
together in the order of the model: no rank waits for another, and the result does not depend on the partition.

    run_job(recorded(job, "folder", every=10))
    rows = gather("folder")

Per recorded step k: step_norm (of U_k, before a correction), momentum_norm, inner_momentum (with d_k = -U_k/eta),
drift_norm (of U_k - U_{k-1}), update_drift (the same over U_k, Frobenius). k counts the optimizer's steps: those that
are left out have none. The optimizer has to be an LMO, in wrappers or not. Memory: three copies of the stage's weights
at a recorded step, less between.

The first line of a stage's file says which run it is of, every how many steps, from which one on, and which parameters
the stage and the model have: `gather` refuses files of different runs, and a run of which a stage is missing. A job
that is resumed goes on with the file, from the step of its checkpoint.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from empirics.batched_norms import stack_norms
from empirics.errors import InputError
from pipeline.engine.checkpoint import read_manifest
from pipeline.engine.job import Job
from pipeline.optim.lmo import LMO
from pipeline.optim.wrapper import Wrapper

Named = list[tuple[str, Any]]
NAME = "recorded-{}.jsonl"
#: What the files of one run have in common.
COMMON = ("run", "every", "first", "model")


def recorded(job: Job, folder: str, every: int = 1, run: str | None = None) -> Job:
    """The job with an optimizer that records into ``folder``; run: a name for it, the same on all ranks (drawn here, so
    ranks that each make the job by themselves have to be given one). Raises InputError for a bad ``every``."""
    with torch.random.fork_rng(devices=[]):
        layers = job.layers()
    names: dict[Tensor, str] = {}
    for index, layer in enumerate(layers):
        for name, p in layer.named_parameters():
            if p.requires_grad:
                names.setdefault(p, f"layers.{index}.{name}")
    first = read_manifest(job.resume)["step"] if job.resume is not None else 0
    own = Recorded(job.optimizer, folder, tuple(names.values()), run or uuid.uuid4().hex, every, first)
    return replace(job, optimizer=own)


@dataclass(frozen=True)
class Recorded:
    """An optimizer factory of a job that records into ``folder``, one file a stage; picklable if ``make`` is.

    model: names of all trainable parameters; run: of this run and no other; first: the step that it starts with.
    """

    make: Callable[[Named], Optimizer]
    folder: str
    model: tuple[str, ...]
    run: str
    every: int = 1
    first: int = 0

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
        self._begin(path, [name for name, p in named if p.requires_grad])
        hook = StageHook({p: name for name, p in named}, path, self.every, self.first)
        inner.register_step_pre_hook(hook.before)
        inner.register_step_post_hook(hook.after)
        return optimizer

    def _begin(self, path: Path, names: list[str]) -> None:
        """The file with its head, and, where a run goes on, with what it has from before."""
        head = {"run": self.run, "every": self.every, "first": self.first, "model": list(self.model), "names": names}
        rows: list[dict[str, Any]] = []
        if self.first > 0 and path.exists():
            before, old = _read(path)
            same = all(before[name] == head[name] for name in ("every", "model", "names"))
            if same and before["first"] <= self.first <= _next(before, old):
                head["first"], rows = before["first"], [row for row in old if row["k"] < self.first]
        path.write_text("".join(json.dumps(line) + "\n" for line in (head, *rows)), encoding="utf-8")


def _next(head: Mapping[str, Any], rows: list[dict[str, Any]]) -> int:
    """The latest step from which a file can go on without a gap: that of its next row."""
    return int(rows[-1]["k"]) + int(head["every"]) if rows else int(head["first"])


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Head and rows of a stage's file. Raises InputError for another file."""
    try:
        head, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if not {*COMMON, "names"} <= set(head) or any({"k", "layers"} - set(row) for row in rows):
            raise ValueError
    except (ValueError, TypeError):
        raise InputError(f"folder: {path.name} is cut off or no record; allowed are whole runs") from None
    return head, rows


class StageHook:
    """Looks at one stage's LMO before and after each step."""

    def __init__(self, names: dict[Tensor, str], path: Path, every: int, first: int) -> None:
        self.names, self.path, self.every = names, path, every
        self.k = first
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

    Raises InputError where no stage has recorded, for files that are not of one run, for a run of which a stage is
    missing, and where stages have recorded other steps than the first.
    """
    files = sorted(Path(folder).glob(NAME.format("*")))
    if not files:
        raise InputError(f"folder: {folder!r} has no {NAME.format('*')}; give the folder of recorded(job, folder)")
    heads, stages = zip(*map(_read, files), strict=True)
    for file, head in zip(files, heads, strict=True):
        if odd := next((name for name in COMMON if head[name] != heads[0][name]), None):
            raise InputError(f"folder: {file.name} has another {odd} than {files[0].name}; allowed is one run a folder")
    if lost := set(heads[0]["model"]) - {name for head in heads for name in head["names"]}:
        raise InputError(f"folder: no stage has recorded {min(lost)} ({len(lost)} missing); allowed are whole runs")
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
