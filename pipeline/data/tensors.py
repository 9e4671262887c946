"""Microbatches of any pair of tensors, in epochs, by global index: the same for any number of stages and microbatches.

Batch k is a pure function of (tensors, seed, k): an epoch is a permutation of the rows, cut into batches, and its last
N mod ``batch`` rows are left out in that epoch. How a batch is cut into microbatches does not change its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import InputError


@dataclass(frozen=True, eq=False)
class TensorBatches:
    """Rows of ``inputs`` and ``targets``, tensors of N rows each, ``batch`` rows a step in equal microbatches.

    seed: of the permutations, one an epoch; shuffle: False for the rows in order in every epoch.
    Raises InputError, naming the field, for what cannot be cut.
    """

    inputs: Tensor
    targets: Tensor
    batch: int
    microbatches: int
    seed: int = 0
    shuffle: bool = True
    #: The permutation of the epoch that was asked for last, by epoch.
    _permutation: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("inputs", "targets"):
            tensor = getattr(self, name)
            if not isinstance(tensor, Tensor):
                raise InputError(f"{name} = {type(tensor).__name__}: allowed are tensors")
            if tensor.ndim == 0 or len(tensor) == 0:
                raise InputError(f"{name} of shape {tuple(tensor.shape)}: allowed are tensors of at least one row")
        N = len(self.inputs)
        if len(self.targets) != N:
            raise InputError(f"targets has {len(self.targets)} rows: allowed are as many as inputs has, {N}")
        if not _is_integer(self.microbatches) or self.microbatches < 1:
            raise InputError(f"microbatches = {self.microbatches!r}: allowed are integers of at least 1")
        if not _is_integer(self.batch) or not 1 <= self.batch <= N:
            raise InputError(f"batch = {self.batch!r}: allowed are integers from 1 to the number of rows, {N}")
        if self.batch % self.microbatches:
            raise InputError(f"batch = {self.batch}: must be a multiple of microbatches = {self.microbatches}")
        if not _is_integer(self.seed) or not 0 <= self.seed < 2**63:
            raise InputError(f"seed = {self.seed!r}: allowed are integers of at least 0 and below 2^63")
        if not isinstance(self.shuffle, bool):
            raise InputError(f"shuffle = {self.shuffle!r}: allowed are True and False")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_permutation": {}}  # a cache is not sent to another process

    @property
    def batches_per_epoch(self) -> int:
        return len(self.inputs) // self.batch

    def _order(self, epoch: int) -> Tensor:
        """Row numbers in the order of ``epoch``, shape (N,)."""
        order = self._permutation.get(epoch)
        if order is None:
            generator = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
            order = torch.from_numpy(generator.permutation(len(self.inputs)))
            self._permutation.clear()
            self._permutation[epoch] = order
        return order

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of microbatch j, each of ``batch`` / ``microbatches`` rows."""
        k, part = divmod(j, self.microbatches)
        epoch, position = divmod(k, self.batches_per_epoch)
        size = self.batch // self.microbatches
        start = position * self.batch + part * size
        if not self.shuffle:
            return self.inputs[start : start + size], self.targets[start : start + size]
        rows = self._order(epoch)[start : start + size]
        return self.inputs[rows], self.targets[rows]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
