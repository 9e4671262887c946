"""A pipeline stage that knows weight versions.

Delay lives here and nowhere else: a microbatch's forward and backward run on the leaves of the version that the
schedule's rule names. The stage is torch's own :class:`PipelineStage`; chunk ids are slots of a ring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from pipeline.engine.store import VersionStore
from pipeline.errors import RunError, VersionError
from pipeline.models.stack import LayerStack
from pipeline.schedules.base import Schedule


class VersionedStage(PipelineStage):
    """Stage s of a schedule.

    names, compute, confirm: see :class:`VersionStore`.

    Touches of torch's internals: ``__init__``, ``forward_one_chunk``, ``backward_one_chunk``, ``get_*_ops``,
    ``has_backward``, ``fwd_cache`` and, through the driver, ``_initialize_stage``.
    """

    def __init__(
        self,
        module: LayerStack,
        stage: int,
        schedule: Schedule,
        device: torch.device,
        names: Mapping[str, str] | None = None,
        compute: torch.dtype | None = None,
        confirm: bool = False,
    ) -> None:
        super().__init__(module, stage, schedule.stages, device)
        self.module = module
        self.schedule = schedule
        self.store = VersionStore(module, schedule.versions_stored(stage), names, compute, confirm)
        self.slots = schedule.in_flight(stage) + 1  # one more: the next receive is posted ahead
        # Gradients of the batch in the works, by parameter name. They belong to the batch, not to a version; while
        # microbatches of one version follow each other, autograd adds them up on its leaves.
        self._gradients: dict[str, Tensor] = {}
        self._holder: dict[str, nn.Parameter] = {}
        self._stashed: dict[int, int] = {}  # microbatch in flight -> the version its forward read
        self._used: set[int] = set()
        self._watched: list[dict[str, nn.Parameter]] = []
        # Without a weight to differentiate and an input that has a gradient there is nothing to do backwards.
        self._frozen = self.is_first and not any(h.requires_grad for h in self.store.handles.values())
        self._watch_layers()
        self._outputs: list[tuple[torch.Size, torch.dtype]] = []  # of the first forward: torch's search for shapes
        module.register_forward_hook(self._note_output)

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
        self.module.microbatch = j
        self._used.clear()
        output = self.forward_one_chunk(j % self.slots, args, save_forward_output=False)
        if not self.is_last:
            self._check_message(j, output)
        return output, self._one_tag("forward", j, version)

    def _note_output(self, module: nn.Module, args: Any, output: Tensor) -> None:
        if not self._outputs:
            self._outputs.append((output.shape, output.dtype))

    def _check_message(self, j: int, output: Tensor) -> None:
        """Refuse to send what the next stage has no buffer for: gloo would take a smaller message as it is."""
        shape, dtype = self._outputs[0]
        if (output.shape, output.dtype) != (shape, dtype):
            raise RunError(
                f"output of microbatch {j} is {output.dtype} {tuple(output.shape)}, that of the first is {dtype} "
                f"{tuple(shape)}: all outputs of a stage must be alike"
            )

    def backward_microbatch(self, j: int, loss: Tensor | None) -> int:
        """Backward of microbatch j; adds to the batch's gradients. Returns the version tag of the storages that
        autograd differentiated with respect to and that a recomputation ran on, read while it did so."""
        version = self._stashed.pop(j)
        self.store.bind(version)  # a recomputation must run on the same weights
        leaves = self.store.leaves(version)
        self._watch_leaves(leaves)
        self._used.clear()
        if self._frozen:
            self.fwd_cache.pop(j % self.slots)
            return self._one_tag("backward", j, version)
        if leaves is not self._holder:
            self._collect()
            if not self.store.masters:
                for name, gradient in self._gradients.items():
                    leaves[name].grad = gradient
            self._holder = leaves
        self.backward_one_chunk(j % self.slots, loss=loss)
        if self.store.masters:
            self._collect()
        return self._one_tag("backward", j, version)

    @property
    def holds_gradients(self) -> bool:
        """Whether the batch in the works has any yet."""
        return bool(self._gradients) or any(leaf.grad is not None for leaf in self._holder.values())

    def take_gradients(self) -> dict[str, Tensor]:
        """The gradients of the batch, by name: it is complete, and another begins."""
        self._collect()
        gradients, self._gradients = self._gradients, {}
        return gradients

    def _collect(self) -> None:
        """Take the gradients off the leaves; with masters, add them up in the masters' precision."""
        for name, leaf in self._holder.items():
            gradient, leaf.grad = leaf.grad, None
            if gradient is None:
                continue
            if not self.store.masters:
                self._gradients[name] = gradient
            elif name in self._gradients:
                self._gradients[name] += gradient.to(self._gradients[name].dtype)
            else:
                self._gradients[name] = gradient.to(self.store.handles[name].dtype)
        self._holder = {}

    def _watch_layers(self) -> None:
        """Note, whenever a layer runs, the tags of the weights that stand in it then: recomputations included."""
        tags, used = self.store.tags, self._used
        for layer in self.module.layers.values():
            places = [
                (owner._parameters, attribute)
                for owner in layer.modules()
                for attribute, parameter in owner._parameters.items()
                if parameter is not None and parameter.numel()
            ]

            def note(module: nn.Module, args: Any, places: list[Any] = places) -> None:
                for parameters, attribute in places:
                    used.add(tags[parameters[attribute].data_ptr()])

            if places:
                layer.register_forward_pre_hook(note)

    def _watch_leaves(self, leaves: dict[str, nn.Parameter]) -> None:
        """Note, whenever autograd accumulates into a leaf, the tag that its storage carries then."""
        if any(leaves is seen for seen in self._watched):
            return
        self._watched.append(leaves)
        tags, used = self.store.tags, self._used

        def note(leaf: Tensor) -> None:
            used.add(tags[leaf.data_ptr()])

        for leaf in leaves.values():
            if leaf.requires_grad and leaf.numel():
                leaf.register_post_accumulate_grad_hook(note)

    def _one_tag(self, kind: str, j: int, bound: int) -> int:
        """The one tag that was seen; a stage that used no weights has that of the version it was bound to."""
        if len(self._used) > 1:
            raise VersionError(
                f"{kind} of microbatch {j} at stage {self.stage_index} mixed versions {sorted(self._used)}"
            )
        tag = next(iter(self._used), bound)
        if self.store.confirm:
            self.store.confirm_bound(tag)
        return tag
