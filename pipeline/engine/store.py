"""Weight versions of one stage: real storages, each carrying the tag of the version that was written into it.

Version v is the weights after v optimizer steps. Autograd only ever sees a version's own leaves; the optimizer's
parameters are handles. Without master weights a handle points at the newest storage; with them (low-precision compute)
it holds the weights in full precision, and a version is a rounded copy. A storage is recycled in place when its version
is dead, which bumps autograd's version counter: a backward that still needs the old values raises instead of being
wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.engine.digest import bytes_of
from pipeline.errors import VersionError


@dataclass
class Slot:
    """One set of buffers: leaves for autograd by parameter name, and the version whose weights they hold."""

    leaves: dict[str, nn.Parameter]
    version: int

    def __post_init__(self) -> None:
        #: The same storages without autograd's version counters.
        self.data = {name: leaf.data for name, leaf in self.leaves.items()}


class VersionStore:
    """Holds at most ``capacity`` versions of a module's parameters.

    module: the stage's layers; its own parameters become version 0's leaves, and :meth:`bind` puts the leaves of a
    version into the module. A parameter that stands at several places of the module (tied weights) is one leaf.
    names: name of a parameter in the module -> its name in the whole model, where the two differ (weights tied to a
    layer of another stage go by that layer's name).
    compute: dtype of the versions; None: that of the module's weights. The optimizer's handles always have the latter.
    confirm: keep a checksum of each version as it is written, and compare it wherever a tag is read.
    """

    def __init__(
        self,
        module: nn.Module,
        capacity: int,
        names: Mapping[str, str] | None = None,
        compute: torch.dtype | None = None,
        confirm: bool = False,
    ) -> None:
        self.capacity = capacity
        self.confirm = confirm
        names = names or {}
        self._places: dict[str, list[tuple[nn.Module, str]]] = {}
        name_of: dict[int, str] = {}
        leaves: dict[str, nn.Parameter] = {}
        for local, parameter in module.named_parameters(remove_duplicate=False):
            name = name_of.setdefault(id(parameter), names.get(local, local))
            leaves[name] = parameter
            self._places.setdefault(name, []).append(_place(module, local))
        #: Whether the optimizer works on full-precision copies.
        self.masters = compute is not None and any(leaf.dtype != compute for leaf in leaves.values())
        #: The optimizer's view of the newest weights, by name; gradients are put on them by the driver. Made from
        #: ``.data`` so that they do not share autograd's version counter with a leaf.
        self.handles: dict[str, nn.Parameter] = {
            name: nn.Parameter(leaf.data, leaf.requires_grad) for name, leaf in leaves.items()
        }
        if self.masters:
            module.to(compute)
            leaves = {name: nn.Parameter(h.detach().to(compute), h.requires_grad) for name, h in self.handles.items()}
        self._slots: dict[int, Slot] = {}
        self._free: list[Slot] = []
        #: Peak number of versions held, to be compared with the schedule's count.
        self.peak = 0
        #: Tag of weights, by their address: written where weights are written, read where autograd uses them.
        self.tags: dict[int, int] = {}
        self._checksums: dict[int, str] = {}
        self._bound: dict[str, nn.Parameter] | None = None  # leaves that stand in the module
        first = Slot(leaves, 0)
        self._pointed: Slot | None = None if self.masters else first  # where the handles point
        self._hold(first)
        self.bind(0)

    @property
    def newest(self) -> int:
        return max(self._slots)

    @property
    def versions(self) -> list[int]:
        """The versions held, oldest first."""
        return sorted(self._slots)

    def _hold(self, slot: Slot) -> None:
        self._slots[slot.version] = slot
        self.peak = max(self.peak, len(self._slots))
        for leaf in slot.leaves.values():
            if leaf.numel():  # nothing has no address
                self.tags[leaf.data_ptr()] = slot.version
        if self.confirm:
            self._checksums[slot.version] = _checksum(slot.leaves)

    def confirm_bound(self, version: int) -> None:
        """Raises VersionError where the bound weights are not, bit for bit, those that were written as ``version``."""
        found = _checksum(self.bound())
        if found != self._checksums.get(version):
            named = [v for v, checksum in self._checksums.items() if checksum == found]
            raise VersionError(
                f"weights tagged as version {version} are "
                f"{f'those of version {named[0]}' if named else 'not what was written as that version'}"
            )

    def holds(self, version: int) -> bool:
        return version in self._slots

    def leaves(self, version: int) -> dict[str, nn.Parameter]:
        """Leaves of ``version`` by parameter name; KeyError if it is not held."""
        return self._slots[version].leaves

    def bind(self, version: int) -> None:
        """Put the leaves of ``version`` into the module, for a forward or a recomputation."""
        leaves = self._slots[version].leaves
        if leaves is self._bound:
            return
        self._bound = leaves
        for name, leaf in leaves.items():
            for owner, attribute in self._places[name]:
                owner._parameters[attribute] = leaf

    def bound(self) -> dict[str, nn.Parameter]:
        """The parameters that the module would use now, by name."""
        found = {}
        for name, places in self._places.items():
            owner, attribute = places[0]
            parameter = owner._parameters[attribute]
            assert parameter is not None
            found[name] = parameter
        return found

    def drop_below(self, version: int) -> None:
        """Free every held version older than ``version`` except the newest."""
        newest = self.newest
        for old in [v for v in self._slots if v < version and v != newest]:
            self._free.append(self._slots.pop(old))
            self._checksums.pop(old, None)

    def begin_step(self) -> None:
        """Get a storage for the next version ready; the caller steps the optimizer, then calls :meth:`end_step`.

        Without master weights the newest weights are copied into it and the handles point at it. With a single slot of
        capacity the newest is updated in place.
        """
        newest = self._slots[self.newest]
        if self._free:
            slot = self._free.pop()
            if not self.masters:
                _copy(newest.leaves, slot.leaves)
        elif len(self._slots) < self.capacity:
            slot = Slot(_copies(newest.leaves), newest.version)
        elif self.capacity == 1:
            slot = self._slots.pop(newest.version)
            # The optimizer will write through a handle: tell autograd, so that a forgotten reader raises.
            torch.autograd.graph.increment_version(tuple(slot.leaves.values()))
        else:
            raise VersionError(
                f"versions {self.versions} are all still needed: the schedule promised at most {self.capacity}"
            )
        self._stepping = slot
        if not self.masters:
            self._point_handles(slot)

    def end_step(self, version: int) -> None:
        """The optimizer has written ``version`` through the handles: tag its storage and hold it."""
        slot = self._stepping
        if self.masters:
            _copy(self.handles, slot.leaves)
        slot.version = version
        self._hold(slot)

    def load(self, versions: Mapping[int, Mapping[str, Tensor]], masters: Mapping[str, Tensor]) -> None:
        """Take over the weights of a checkpoint: version -> weights by name, and the full-precision ones if any.

        Raises VersionError for more versions than fit.
        """
        if len(versions) > self.capacity:
            raise VersionError(f"{len(versions)} weight versions to load: the schedule promised {self.capacity}")
        template = self._slots[self.newest].leaves
        self._slots.clear()
        self._checksums.clear()
        for version, weights in sorted(versions.items()):
            slot = Slot(_copies(template), version)
            _copy(weights, slot.leaves)
            self._hold(slot)
        newest = self._slots[self.newest]
        self.bind(newest.version)
        if self.masters:
            _copy(masters, self.handles)
        else:
            self._point_handles(newest)

    def _point_handles(self, slot: Slot) -> None:
        if slot is not self._pointed:
            self._pointed = slot
            for name, handle in self.handles.items():
                handle.data = slot.data[name]


def _place(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    owner, _, attribute = name.rpartition(".")
    return module.get_submodule(owner), attribute


def _copies(leaves: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    return {name: nn.Parameter(leaf.detach().clone(), leaf.requires_grad) for name, leaf in leaves.items()}


def _copy(source: Mapping[str, Tensor], target: Mapping[str, nn.Parameter]) -> None:
    """In place, which bumps autograd's version counters; rounds where the target has a lower precision."""
    if not target:
        return
    with torch.no_grad():
        torch._foreach_copy_(list(target.values()), [source[name] for name in target])


def _checksum(leaves: Mapping[str, Tensor]) -> str:
    sha = hashlib.sha256()
    for name in sorted(leaves):
        sha.update(bytes_of(leaves[name]))
    return sha.hexdigest()
