"""Weight versions of one stage: real storages, each carrying the tag of the version that was written into it.

Version v is the weights after v optimizer steps. Autograd only ever sees a version's own leaves; the optimizer's
parameters are handles that point at the newest storage. A storage is recycled in place when its version is dead, which
bumps autograd's version counter: a backward that still needs the old values raises instead of being wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.errors import VersionError


@dataclass
class Slot:
    """One set of buffers: leaves for autograd by parameter name, and the version whose weights they hold."""

    leaves: dict[str, nn.Parameter]
    version: int


class VersionStore:
    """Holds at most ``capacity`` versions of a module's parameters.

    module: the stage's layers; its own parameters become version 0's leaves, and :meth:`bind` puts the leaves of a
    version into the module.
    """

    def __init__(self, module: nn.Module, capacity: int) -> None:
        self.capacity = capacity
        self._places = {name: _place(module, name) for name, _ in module.named_parameters()}
        first = Slot({name: parameter for name, parameter in module.named_parameters()}, 0)
        self._slots: dict[int, Slot] = {0: first}
        self._free: list[Slot] = []
        #: Peak number of versions held, to be compared with the schedule's count.
        self.peak = 1
        # Tag of a storage, by its address: written where weights are written, read where autograd uses them.
        self._tags: dict[int, int] = {}
        self._tag(first)
        #: The optimizer's view of the newest weights, by name; gradients are put on them by the driver. Made from
        #: ``.data`` so that they do not share autograd's version counter with a leaf.
        self.handles: dict[str, nn.Parameter] = {
            name: nn.Parameter(leaf.data) for name, leaf in first.leaves.items()
        }

    @property
    def newest(self) -> int:
        return max(self._slots)

    @property
    def versions(self) -> list[int]:
        """The versions held, oldest first."""
        return sorted(self._slots)

    def _tag(self, slot: Slot) -> None:
        for leaf in slot.leaves.values():
            self._tags[leaf.untyped_storage().data_ptr()] = slot.version

    def tag_of(self, tensor: Tensor) -> int:
        """Version whose weights were last written into the storage of ``tensor``."""
        return self._tags[tensor.untyped_storage().data_ptr()]

    def holds(self, version: int) -> bool:
        return version in self._slots

    def leaves(self, version: int) -> dict[str, nn.Parameter]:
        """Leaves of ``version`` by parameter name; KeyError if it is not held."""
        return self._slots[version].leaves

    def bind(self, version: int) -> None:
        """Put the leaves of ``version`` into the module, for a forward or a recomputation."""
        for name, leaf in self._slots[version].leaves.items():
            owner, attribute = self._places[name]
            owner._parameters[attribute] = leaf

    def bound(self) -> Iterator[nn.Parameter]:
        """The parameters that the module would use now."""
        for owner, attribute in self._places.values():
            parameter = owner._parameters[attribute]
            if parameter is not None:
                yield parameter

    def drop_below(self, version: int) -> None:
        """Free every held version older than ``version`` except the newest."""
        newest = self.newest
        for old in [v for v in self._slots if v < version and v != newest]:
            self._free.append(self._slots.pop(old))

    def begin_step(self) -> None:
        """Copy the newest weights into a free slot and point the optimizer's handles at it.

        With a single slot of capacity the newest is updated in place. The caller steps the optimizer, then calls
        :meth:`end_step`.
        """
        newest = self._slots[self.newest]
        if self._free:
            slot = self._free.pop()
            with torch.no_grad():
                for name, leaf in slot.leaves.items():
                    leaf.copy_(newest.leaves[name])
        elif len(self._slots) < self.capacity:
            slot = Slot(
                {name: nn.Parameter(leaf.detach().clone()) for name, leaf in newest.leaves.items()}, newest.version
            )
        elif self.capacity == 1:
            slot = self._slots.pop(newest.version)
            # The optimizer will write through a handle: tell autograd, so that a forgotten reader raises.
            torch.autograd.graph.increment_version(tuple(slot.leaves.values()))
        else:
            raise VersionError(
                f"versions {self.versions} are all still needed: the schedule promised at most {self.capacity}"
            )
        self._stepping = slot
        for name, handle in self.handles.items():
            handle.data = slot.leaves[name].data

    def end_step(self, version: int) -> None:
        """The optimizer has written ``version`` through the handles: tag its storage and hold it."""
        slot = self._stepping
        slot.version = version
        self._slots[version] = slot
        self._tag(slot)
        self.peak = max(self.peak, len(self._slots))


def _place(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    owner, _, attribute = name.rpartition(".")
    return module.get_submodule(owner), attribute
