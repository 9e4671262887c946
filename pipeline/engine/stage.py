"""A pipeline stage that knows weight versions.

Delay lives here and nowhere else: a microbatch's forward and backward run on the leaves of the version that the
schedule's rule names. The stage is torch's own :class:`PipelineStage`; chunk ids are slots of a ring.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage

from pipeline.engine.store import VersionStore
from pipeline.errors import VersionError
from pipeline.models.stack import LayerStack
from pipeline.schedules.base import Schedule


class VersionedStage(PipelineStage):
    """Stage s of a schedule.

    Touches of torch's internals: ``__init__``, ``forward_one_chunk``, ``backward_one_chunk``, ``get_*_ops``,
    ``has_backward`` and, through the driver, ``_initialize_stage``.
    """

    def __init__(self, module: LayerStack, stage: int, schedule: Schedule, device: torch.device) -> None:
        super().__init__(module, stage, schedule.stages, device)
        self.schedule = schedule
        self.store = VersionStore(module, schedule.versions_stored(stage))
        self.slots = schedule.in_flight(stage) + 1  # one more: the next receive is posted ahead
        #: Gradients of the batch in the works, by parameter name. They belong to the batch, not to a version.
        self.gradients: dict[str, Tensor] = {}
        self._stashed: dict[int, int] = {}  # microbatch in flight -> the version its forward read
        self._used: set[int] = set()
        self._watched: set[int] = set()

    def forward_microbatch(self, j: int, args: tuple[Any, ...]) -> tuple[Tensor, int]:
        """Forward of microbatch j on its version: (output, version tag of the storages that were used)."""
        version = self.schedule.version(self.stage_index, j)
        if not self.store.holds(version):
            raise VersionError(
                f"microbatch {j} reads version {version} at stage {self.stage_index}, which holds only "
                f"{self.store.versions}"
            )
        self._stashed[j] = version
        self.store.bind(version)
        output = self.forward_one_chunk(j % self.slots, args, save_forward_output=False)
        return output, self._one_tag({self.store.tag_of(leaf) for leaf in self.store.bound()}, "forward", j)

    def backward_microbatch(self, j: int, loss: Tensor | None) -> int:
        """Backward of microbatch j; adds to :attr:`gradients`. Returns the version tag of the storages that
        autograd differentiated with respect to, read while it did so."""
        version = self._stashed.pop(j)
        self.store.bind(version)  # a recomputation must run on the same weights
        leaves = self.store.leaves(version)
        self._watch(leaves)
        self._used.clear()
        for name, leaf in leaves.items():
            leaf.grad = self.gradients.get(name)
        self.backward_one_chunk(j % self.slots, loss=loss)
        for name, leaf in leaves.items():
            if leaf.grad is not None:
                self.gradients[name] = leaf.grad
                leaf.grad = None
        return self._one_tag(self._used, "backward", j)

    def _watch(self, leaves: dict[str, torch.nn.Parameter]) -> None:
        """Note, whenever autograd accumulates into a leaf, the tag that its storage carries then."""
        for leaf in leaves.values():
            if id(leaf) not in self._watched:
                self._watched.add(id(leaf))
                leaf.register_post_accumulate_grad_hook(lambda used: self._used.add(self.store.tag_of(used)))

    def _one_tag(self, tags: set[int], kind: str, j: int) -> int:
        if len(tags) != 1:
            raise VersionError(f"{kind} of microbatch {j} at stage {self.stage_index} mixed versions {sorted(tags)}")
        return next(iter(tags))
