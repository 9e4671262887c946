"""Microbatches of a byte corpus with masks, for a masked-language model (Devlin et al. 2019).

Microbatch j is a pure function of (corpus, seed, j), like the windows that it masks. Every sequence has the same
number of targets, so the mean loss of a batch is the mean over its microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.data.batches import ByteBatches
from pipeline.errors import InputError
from pipeline.models.bert import IGNORED, MASK

#: Added to the second word of the key: no microbatch's windows are drawn with a key of the masks.
MASK_KEY = 2**62
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # of the chosen positions; the rest keeps its byte


@dataclass(frozen=True)
class MaskedBatches:
    """The windows of ``batches`` with a share ``rate`` of the positions of each sequence, at least one, to predict.

    Of the chosen positions about 80 % show the mask token, 10 % a random byte, 10 % their own.
    """

    batches: ByteBatches
    rate: float = 0.15

    def __post_init__(self) -> None:
        if isinstance(self.rate, bool) or not isinstance(self.rate, (int, float)) or not 0 < self.rate <= 1:
            raise InputError(f"rate = {self.rate!r}: allowed are numbers above 0 and at most 1")

    @property
    def masks(self) -> int:
        """Targets of each sequence."""
        return max(1, round(self.rate * self.batches.context))

    def _masked(self, tokens: Tensor, key: list[int]) -> tuple[Tensor, Tensor]:
        generator = np.random.Generator(np.random.Philox(key=key))
        original = tokens.numpy()
        order = generator.random(original.shape).argsort(axis=1)
        rows, columns = np.arange(len(original))[:, None], order[:, : self.masks]  # uniform, without replacement
        chosen = original[rows, columns]  # (N, masks)
        draw = generator.random(chosen.shape)
        noise = generator.integers(0, MASK, size=chosen.shape)
        shown = np.where(draw < MASK_SHARE, MASK, np.where(draw < MASK_SHARE + RANDOM_SHARE, noise, chosen))
        inputs, targets = original.copy(), np.full_like(original, IGNORED)
        inputs[rows, columns], targets[rows, columns] = shown, chosen
        return torch.from_numpy(inputs), torch.from_numpy(targets)

    def microbatch(self, j: int) -> tuple[Tensor, Tensor]:
        """Inputs (bytes and MASK) and targets (IGNORED elsewhere) of microbatch j, each (sequences, context) int64."""
        return self._masked(self.batches.microbatch(j)[0], [self.batches.seed, MASK_KEY + j])

    def held_out(self, sequences: int) -> tuple[Tensor, Tensor]:
        """``sequences`` evenly spaced windows of the held-out tenth, with masks that are the same for every seed."""
        return self._masked(self.batches.held_out(sequences)[0], [MASK_KEY, MASK_KEY])
