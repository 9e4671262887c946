"""A tensor as bytes, for a hash: of data as it is read, of a checkpoint's first microbatch, of weights."""

from __future__ import annotations

import torch
from torch import Tensor


def bytes_of(tensor: Tensor) -> bytes:
    """The numbers of a tensor of any shape, dtype, layout and device, in order of its indices; no shape, no dtype."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
