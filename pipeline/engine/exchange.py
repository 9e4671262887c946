"""What the stages tell each other about a batch before its optimizer step: tied gradients, the norm, and Inf or NaN.

Everything of a batch is sent when a stage has done the batch's last backward; only waiting is put off, until the
version that the step writes is read. A stage finishes a batch after every stage behind it, so stage 0 is last: it adds
up what the others have sent and tells them the result.

* A tied weight has a copy at each stage that uses it. The holders send their gradients to the first of them, which adds
  them in the order of the stages and sends the sum back: all copies take the same step and stay equal bit for bit.
* The norm is that of the whole model's gradient, a tied weight counted once, by its first holder.
* Whether a step is left out is decided once for all stages: where any gradient of any stage holds Inf or NaN. That is
  looked up in the gradients, since a norm can overflow where they are finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Pending:
    """A batch whose step has not been taken: its gradients, and what is still under way.

    verdict: the norm, if clipped, and then how many stages found Inf or NaN, if asked; skip: known once it is settled.
    """

    k: int
    gradients: dict[str, Tensor]
    sums: dict[str, tuple[Tensor, dist.Work]] = field(default_factory=dict)
    verdict: Tensor | None = None
    verdict_work: dist.Work | None = None
    skip: bool = False
    sent: list[tuple[dist.Work, Tensor]] = field(default_factory=list)


class BatchExchange:
    """The exchange of one stage; messages go through host memory on a gloo group of their own.

    tied: name of a weight -> the stages that hold it, for those held by several; handles: this stage's weights by name;
    clip, clip_norm, skip_nonfinite: see :class:`~pipeline.engine.job.Job`.
    """

    def __init__(
        self,
        group: dist.ProcessGroup,
        stage: int,
        stages: int,
        tied: Mapping[str, list[int]],
        handles: Mapping[str, Tensor],
        clip: float | None = None,
        clip_norm: float = 2.0,
        skip_nonfinite: bool = False,
    ) -> None:
        self.group = group
        self.handles = handles
        self.stage = stage
        self.stages = stages
        self.tied = {
            name: sorted(holders)
            for name, holders in sorted(tied.items())
            if stage in holders and handles[name].requires_grad  # a frozen weight has no gradient, not one of zeros
        }
        self.clip = clip
        self.clip_norm = clip_norm
        self.skip_nonfinite = skip_nonfinite
        #: Whether steps have to wait for anything at all; the same on every stage.
        self.needed = bool(tied) or clip is not None or skip_nonfinite

    def post(self, k: int, gradients: dict[str, Tensor]) -> Pending:
        """Send what batch k's step needs; waits for nothing but what other stages have sent before."""
        pending = Pending(k, gradients)
        for name, (first, *others) in self.tied.items():
            gradients.setdefault(name, torch.zeros_like(self.handles[name]))
            if self.stage != first:
                self._send(pending, gradients[name], first)
                pending.sums[name] = self._receive(gradients[name], first)
                continue
            total = gradients[name].cpu()
            for other in others:
                theirs, work = self._receive(gradients[name], other)
                work.wait()
                total = total + theirs
            for other in others:
                self._send(pending, total, other)
            gradients[name] = total.to(gradients[name].device)
        if self.clip is not None or self.skip_nonfinite:
            mine = self._share(gradients)
            if self.stage > 0:
                self._send(pending, mine, 0)
                pending.verdict, pending.verdict_work = self._receive(mine, 0)
            else:
                shares = [mine, *(self._wait(self._receive(mine, other)) for other in range(1, self.stages))]
                pending.verdict = self._combine(shares)
                for other in range(1, self.stages):
                    self._send(pending, pending.verdict, other)
        return pending

    def settle(self, pending: Pending) -> float | None:
        """Wait, put the sums and the clipping into the gradients; returns the norm before clipping.

        Where the step is to be left out, ``pending.skip`` says so.
        """
        for name, received in pending.sums.items():
            target = pending.gradients[name]
            pending.gradients[name] = self._wait(received).to(target.device)
        norm = None
        if pending.verdict is not None:
            if pending.verdict_work is not None:
                pending.verdict_work.wait()
            pending.skip = self.skip_nonfinite and bool(pending.verdict[-1])
        if pending.verdict is not None and self.clip is not None:
            norm = float(pending.verdict[0])
            scale = self.clip / (norm + 1e-6)  # as torch.nn.utils.clip_grad_norm_
            if scale < 1 or math.isnan(scale):
                for gradient in pending.gradients.values():
                    gradient.mul_(scale)
        for work, _ in pending.sent:
            work.wait()
        return norm

    def _share(self, gradients: Mapping[str, Tensor]) -> Tensor:
        """What this stage knows of the verdict: its share of the norm, and whether it has seen Inf or NaN."""
        share = [] if self.clip is None else [self._size(gradients)]
        if self.skip_nonfinite:
            # The first holder of a tied weight sees the sum, the others their own part of it.
            finite = all(bool(torch.isfinite(g).all()) for g in gradients.values())
            share.append(torch.tensor(0.0 if finite else 1.0, dtype=torch.float64))
        return torch.stack(share)

    def _size(self, gradients: Mapping[str, Tensor]) -> Tensor:
        """This stage's share of the norm: the sum of squares in float64, or the largest entry."""
        counted = [g for name, g in sorted(gradients.items()) if self.tied.get(name, [self.stage])[0] == self.stage]
        zero = torch.zeros((), dtype=torch.float64)
        if self.clip_norm == math.inf:
            return torch.stack([zero, *(g.abs().max().double().cpu() for g in counted if g.numel())]).max()
        return torch.stack([zero, *(g.double().square().sum().cpu() for g in counted)]).sum()

    def _combine(self, shares: list[Tensor]) -> Tensor:
        """The verdict, from the shares of all stages."""
        verdict = []
        if self.clip is not None:
            sizes = torch.stack([share[0] for share in shares])
            verdict.append(sizes.max() if self.clip_norm == math.inf else sizes.sum().sqrt())
        if self.skip_nonfinite:
            verdict.append(torch.stack([share[-1] for share in shares]).sum())
        return torch.stack(verdict)

    def _send(self, pending: Pending, tensor: Tensor, stage: int) -> None:
        host = tensor.detach().cpu().clone()  # gradients are scaled in place later
        work = dist.isend(host, dst=stage, group=self.group)
        assert work is not None
        pending.sent.append((work, host))

    def _receive(self, like: Tensor, stage: int) -> tuple[Tensor, dist.Work]:
        host = torch.empty_like(like, device="cpu", memory_format=torch.contiguous_format)
        work = dist.irecv(host, src=stage, group=self.group)
        assert work is not None
        return host, work

    @staticmethod
    def _wait(received: tuple[Tensor, dist.Work]) -> Tensor:
        received[1].wait()
        return received[0]
