"""Microbatches of a byte corpus, drawn by global index: the same for any number of stages and any schedule.

Microbatch j of seed r is a pure function of (corpus, r, j): sequences are drawn independently and with replacement
from the training part, so the batch of a step is independent of the weights it is evaluated at and of the delay, as
the theorems assume.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import InputError


@dataclass(frozen=True)
class ByteBatches:
    """Random windows of a byte string.

    text: the corpus; its last tenth is held out.
    context: bytes per sequence; sequences: sequences per microbatch; seed: of the data order.
    pool: if positive, training draws from this many fixed windows only, so that the full gradient is a finite sum.
    """

    text: bytes
    context: int
    sequences: int
    seed: int
    pool: int = 0

    def __post_init__(self) -> None:
        needed = 20 * (self.context + 1)
        if len(self.text) < needed:
            raise InputError(
                f"corpus has {len(self.text)} bytes: at least {needed} are needed for a context of {self.context}"
            )

    @property
    def _tokens(self) -> np.ndarray:
        return np.frombuffer(self.text, dtype=np.uint8)

    @property
    def _split(self) -> int:
        return len(self.text) * 9 // 10

    def _windows(self, starts: np.ndarray) -> tuple[Tensor, Tensor]:
        rows = self._tokens[starts[:, None] + np.arange(self.context + 1)].astype(np.int64)
        window = torch.from_numpy(rows)
        return window[:, :-1].contiguous(), window[:, 1:].contiguous()

    def pool_starts(self) -> np.ndarray:
        """Start offsets of the fixed training windows, shape (pool,); the same for every seed."""
        generator = np.random.Generator(np.random.Philox(key=[2**32, 0]))
        return generator.integers(0, self._split - self.context - 1, size=self.pool)

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of microbatch j, each (sequences, context) int64."""
        generator = np.random.Generator(np.random.Philox(key=[self.seed, j]))
        if self.pool:
            starts = self.pool_starts()[generator.integers(0, self.pool, size=self.sequences)]
        else:
            starts = generator.integers(0, self._split - self.context - 1, size=self.sequences)
        return self._windows(starts)

    def full_pool(self) -> tuple[Tensor, Tensor]:
        """All fixed training windows: inputs and targets, each (pool, context)."""
        return self._windows(self.pool_starts())

    def training_windows(self, most: int) -> tuple[Tensor, Tensor, int]:
        """Windows that training draws from, all or ``most`` evenly spaced: inputs, targets, and how many there are."""
        starts = self.pool_starts() if self.pool else np.arange(self._split - self.context - 1)
        if len(starts) > most:
            chosen = starts[np.linspace(0, len(starts) - 1, most).astype(np.int64)]
            return *self._windows(chosen), len(starts)
        return *self._windows(starts), len(starts)

    def held_out(self, sequences: int) -> tuple[Tensor, Tensor]:
        """``sequences`` evenly spaced windows of the held-out tenth: inputs and targets."""
        starts = np.linspace(self._split, len(self.text) - self.context - 1, sequences).astype(np.int64)
        return self._windows(starts)
