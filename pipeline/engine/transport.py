"""Which device and which transport a run uses, and the point-to-point messages between stages."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from pipeline.errors import InputError

DEVICES = ("auto", "cpu", "cuda")
TRANSPORTS = ("auto", "gloo", "nccl")


@dataclass(frozen=True)
class Placement:
    """backend: ``gloo`` or ``nccl``; device of this rank; staged: messages go through host memory."""

    backend: str
    device: str
    staged: bool


def choose_placement(
    gpus: int, ranks: int, rank: int = 0, device: str = "auto", transport: str = "auto"
) -> Placement:
    """Device and transport of ``rank`` for ``ranks`` stages on a machine with ``gpus`` GPUs.

    nccl needs a GPU of its own for each rank; otherwise stages share what there is over gloo, and messages from a GPU
    are staged through host memory. ``device`` and ``transport`` force a choice.

    Raises InputError where the forced choice is impossible.
    """
    if device not in DEVICES:
        raise InputError(f"device = {device!r}: allowed are {', '.join(DEVICES)}")
    if transport not in TRANSPORTS:
        raise InputError(f"transport = {transport!r}: allowed are {', '.join(TRANSPORTS)}")
    if device == "cuda" and gpus == 0:
        raise InputError("device = 'cuda': this machine has no GPU; allowed are auto, cpu")
    on_gpu = device == "cuda" or (device == "auto" and gpus > 0)
    if transport == "nccl" and not (on_gpu and gpus >= ranks):
        raise InputError(
            f"transport = 'nccl': needs one GPU for each of the {ranks} stages, this run has "
            f"{gpus if on_gpu else 0}; allowed are auto, gloo"
        )
    if on_gpu and gpus >= ranks and transport != "gloo":
        return Placement("nccl", f"cuda:{rank}", staged=False)
    if on_gpu:
        return Placement("gloo", f"cuda:{rank % gpus}", staged=True)
    return Placement("gloo", "cpu", staged=False)


@dataclass
class Message:
    """A posted send or receive; the host tensor stays alive until :meth:`wait`."""

    work: dist.Work
    host: Tensor
    target: Tensor | None = None

    def wait(self) -> None:
        self.work.wait()
        if self.target is not None and self.target is not self.host:
            with torch.no_grad():
                self.target.copy_(self.host)


class Direction:
    """Messages one way through the pipeline, in a process group of their own.

    With one group for activations and one for gradients, what waits for what is exactly the data dependency.

    keep: messages that may be under way at a time. No stage runs further ahead of its neighbour, so the one before
    these has been taken and waiting for it does not block; gloo lets go of a message only when it is waited for.
    """

    def __init__(self, group: dist.ProcessGroup, staged: bool, keep: int) -> None:
        self.group = group
        self.staged = staged
        self.keep = keep
        self._sent: deque[Message] = deque()

    def receive(self, ops: list[dist.P2POp]) -> list[Message]:
        """Post the receives that a stage asks for (its ``get_*_recv_ops``)."""
        posted = []
        for op in ops:
            target = op.tensor.detach()
            host = target
            if self.staged or not target.is_contiguous():  # a buffer has the strides of the output that it is for
                device = "cpu" if self.staged else target.device
                host = torch.empty_like(target, device=device, memory_format=torch.contiguous_format)
            work = dist.irecv(host, src=op.peer, group=self.group)
            assert work is not None
            posted.append(Message(work, host, target))
        return posted

    def send(self, ops: list[dist.P2POp]) -> None:
        """Post the sends of a stage (its ``get_*_send_ops``), and let go of those that have been taken."""
        while len(self._sent) > self.keep:
            self._sent.popleft().wait()
        for op in ops:
            host = op.tensor.detach().contiguous()
            if self.staged:
                host = host.cpu()
            work = dist.isend(host, dst=op.peer, group=self.group)
            assert work is not None
            self._sent.append(Message(work, host))

    def drain(self) -> None:
        """Wait until every send has been taken."""
        for message in self._sent:
            message.wait()
        self._sent.clear()
