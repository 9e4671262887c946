"""The oracle: delayed training in one process, written from the recursion alone.

It shares no code with the schedules, the engine or the optimizer wrappers, so that equality with a pipeline run is
evidence. Weights of layer l seen by microbatch j are those after floor(max(0, j - age_l) / m) optimizer steps:

* age 0: synchronous;
* age m at every layer: PipeDream-2BW, x_{k+1} = x_k + U(grad f(x_{(k-1)+}));
* age tau m: uniform delay of tau steps;
* age S - 1 - s for the layers of stage s: PipeDream with weight stashing.

With ``synchronous_steps`` = K0 the age is 0 in the first K0 steps, and no weights are older than x_{K0} afterwards.

A tied weight is one Parameter in two layers, which must have the same age. What a layer draws at random depends on
(seed, layer, microbatch); clipping is torch's own; with a ``compute`` dtype the layers hold rounded copies of the
weights that the optimizer works on, and gradients are added up in the weights' precision.

With ``skip_nonfinite`` a batch whose gradient is not finite in every entry changes nothing: x_{k+1} = x_k, and neither
moments nor counts of the optimizer nor what a correction remembers of updates and gradients move.

What is done about a delay is stated again in oracle_corrections.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.oracle_corrections import Corrector, OracleCorrection

Weights = dict[str, Tensor]


@dataclass
class OracleState:
    """What an observer sees at step k, after the optimizer: read-only.

    x: weights after k steps; x_next: after k + 1; read: weights at which the gradient was taken (of each layer, for
    the last microbatch); gradient: the batch gradient; update: U_k; parameters: the optimizer's, by name.
    """

    k: int
    x: Weights
    x_next: Weights
    read: Weights
    gradient: Weights
    update: Weights
    loss: float
    optimizer: Any
    parameters: dict[str, nn.Parameter]


@dataclass
class OracleResult:
    """losses[k]: training loss of step k at the weights used; norms[k]: of its gradient, if clipped; skipped: steps
    whose gradient was not finite, if skipped; snapshots: steps done -> weights as forwards see them; solution:
    what has been trained, another point under weight prediction."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    snapshots: dict[int, Weights] = field(default_factory=dict)
    solution: Weights = field(default_factory=dict)
    input_digest: str = ""
    target_digest: str = ""

    @property
    def weights(self) -> Weights:
        return self.snapshots[max(self.snapshots)]


def run_oracle(
    layers: Sequence[nn.Module],
    make_optimizer: Callable[[list[tuple[str, nn.Parameter]]], torch.optim.Optimizer],
    data: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    microbatches: int,
    steps: int,
    ages: Sequence[int] | None = None,
    synchronous_steps: int = 0,
    correction: OracleCorrection | None = None,
    snapshot_every: int = 0,
    observer: Callable[[OracleState], None] | None = None,
    scale: float | None = None,
    seed: int | None = None,
    clip: float | None = None,
    clip_norm: float = 2.0,
    skip_nonfinite: bool = False,
    compute: torch.dtype | None = None,
) -> OracleResult:
    """Train ``layers`` in place for ``steps`` optimizer steps of ``microbatches`` microbatches each.

    ages: age of each layer's weights in microbatches (default 0); synchronous_steps: K0; correction: what is done about
    the delay; scale: what the loss of a microbatch is divided by (default: their number); seed: of what layers draw
    (None: torch's global state); clip, clip_norm: largest norm of the batch gradient; skip_nonfinite: take no step
    where it has Inf or NaN; compute: dtype of forwards and backwards.
    make_optimizer gets the named parameters, names ``layers.<index>.<name>``; data has ``microbatch(j)``.
    """
    m = microbatches
    scale = m if scale is None else scale
    ages = [0] * len(layers) if ages is None else list(ages)
    used: dict[str, nn.Parameter] = {}  # by the layers
    age: dict[str, int] = {}
    tau: dict[str, int] = {}
    name_of: dict[int, str] = {}
    for index, layer in enumerate(layers):
        for local, p in layer.named_parameters():
            name = name_of.setdefault(id(p), f"layers.{index}.{local}")
            used[name] = p
            if age.setdefault(name, ages[index]) != ages[index]:
                raise ValueError(f"{name} is tied between layers of ages {age[name]} and {ages[index]}")
            tau[name] = 0 if correction is None else correction.tau[index]
    parameters = used  # of the optimizer
    if compute is not None:
        parameters = {name: nn.Parameter(p.detach().clone(), p.requires_grad) for name, p in used.items()}
        for layer in layers:
            layer.to(compute)
    trained = [(name, p) for name, p in parameters.items()]
    optimizers = {}  # one, or one for each delay that is corrected
    for t in sorted(set(tau.values())):
        with_it = [(name, p) for name, p in trained if tau[name] == t]
        if any(p.requires_grad for _, p in with_it):
            optimizers[t] = make_optimizer(with_it)
    corrector = None if correction is None else Corrector(correction, tau)
    x: Weights = {name: p.detach().clone() for name, p in parameters.items()}
    past: dict[int, Weights] = {0: x}
    result = OracleResult()
    inputs_hash, targets_hash = hashlib.sha256(), hashlib.sha256()

    for k in range(steps):
        for p in (*parameters.values(), *used.values()):
            p.grad = None
        batch_loss, read = 0.0, x
        for j in range(k * m, (k + 1) * m):
            oldest = min(k, synchronous_steps)  # that a batch may read
            read = {name: past[max(oldest, (j - age[name]) // m)][name] for name in parameters}
            _load(used, read)
            inputs, targets = data.microbatch(j)
            for sha, data_of in ((inputs_hash, inputs), (targets_hash, targets)):
                sha.update(data_of.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
            h = inputs if compute is None or not inputs.is_floating_point() else inputs.to(compute)
            before = torch.get_rng_state()
            for index, layer in enumerate(layers):
                if seed is not None:
                    torch.default_generator.manual_seed(_seed(seed, index, j))
                h = layer(h)
            if seed is not None:
                torch.set_rng_state(before)
            share = loss(h if compute is None else h.to(torch.promote_types(h.dtype, torch.float32)), targets) / scale
            share.backward()
            batch_loss += share.item()
            if compute is not None:
                for name, p in used.items():
                    if p.grad is not None:
                        wide, p.grad = p.grad.to(parameters[name].dtype), None
                        old = parameters[name].grad
                        parameters[name].grad = wide if old is None else old + wide
        skip = skip_nonfinite and not all(
            float((p.grad - p.grad).abs().sum()) == 0 for p in parameters.values() if p.grad is not None
        )  # Inf - Inf and NaN - NaN are NaN
        if clip is not None:
            result.norms.append(
                float(nn.utils.clip_grad_norm_(parameters.values(), clip, norm_type=clip_norm, foreach=False))
            )
        gradient = {name: p.grad.detach().clone() for name, p in parameters.items() if p.grad is not None}

        y = x
        if corrector is not None and not skip:
            y = corrector.stepped(x)
            for name, g in corrector.gradient(gradient, x).items():
                parameters[name].grad = g.clone()
        _load(parameters, y)
        if skip:
            result.skipped.append(k)
        else:
            for t, optimizer in optimizers.items():
                _step(optimizer, 1.0 if corrector is None else corrector.rate(t))
        x_next = {name: p.detach().clone() for name, p in parameters.items()}
        update: Weights = {}
        if corrector is not None or observer is not None:
            update = {name: x_next[name] - y[name] for name in parameters}
        if corrector is not None:
            if not skip:
                x_next = corrector.after(x_next, update, gradient)
            corrector.passed(x)

        result.losses.append(batch_loss)
        if observer is not None:
            one = next(iter(optimizers.values()), None)
            observer(OracleState(k, x, x_next, read, gradient, update, batch_loss, one, parameters))
        x = past[k + 1] = x_next
        oldest = min(max(0, (k + 1) * m - a) // m for a in ages)
        for v in [v for v in past if v < oldest]:
            del past[v]
        if k + 1 == steps or (snapshot_every and (k + 1) % snapshot_every == 0):
            result.snapshots[k + 1] = x
    result.solution = x if corrector is None else corrector.stepped(x)
    _load(parameters, x)
    _load(used, x)
    result.input_digest, result.target_digest = inputs_hash.hexdigest(), targets_hash.hexdigest()
    return result


def _seed(seed: int, layer: int, j: int) -> int:
    """The convention for random numbers: the upper 63 of the 64 bits of blake2b of the three numbers in words."""
    return int(hashlib.blake2b(f"{seed} {layer} {j}".encode(), digest_size=8).hexdigest(), 16) // 2


def _step(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """A step with ``factor`` times the learning rate."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] *= factor
    optimizer.step()
    for group, lr in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = lr


def _load(parameters: dict[str, nn.Parameter], weights: Weights) -> None:
    with torch.no_grad():
        for name, p in parameters.items():
            p.copy_(weights[name])


def largest_difference(
    a: dict[int, Weights], b: dict[int, Weights], relative: bool = False
) -> tuple[float, str]:
    """max |a - b| over steps and parameters, and where it is; relative: divided by the parameter's max |b|.

    A NaN counts as infinite, and so do steps or parameters that only one of the two has.
    """
    if sorted(a) != sorted(b) or not a:
        return math.inf, f"steps {sorted(a)} against {sorted(b)}"
    if any(set(a[step]) != set(b[step]) or not a[step] for step in a):
        return math.inf, "different parameters"
    worst, place = 0.0, ""
    for step in a:
        for name in a[step]:
            if not a[step][name].numel() and not b[step][name].numel():
                continue
            gap = float((a[step][name] - b[step][name]).abs().max())
            if relative and gap:
                size = float(b[step][name].abs().max())
                gap = gap / size if size else math.inf
            if not gap <= worst:
                worst, place = (gap if gap == gap else math.inf), f"step {step}, {name}"
    return worst, place
