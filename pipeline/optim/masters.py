"""Masters: full-precision copies of low-precision weights, which an optimizer works on in their place.

A difference of two bfloat16 weights keeps two or three bits of an update; so whatever wants an update measures it on
these copies. For the time of a step a parameter's data is its copy, and its gradient is widened; afterwards the
parameter has its own storage again, with the rounded result in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from pipeline.errors import InputError

LOW = (torch.bfloat16, torch.float16)
WIDE = (torch.float32, torch.float64)


class Masters:
    """Copies in ``dtype`` of the parameters that have a low-precision dtype; None keeps none.

    A parameter that somebody else has changed since its last step is copied anew. Raises InputError for another dtype.
    """

    def __init__(self, dtype: torch.dtype | None = torch.float32) -> None:
        if dtype is not None and dtype not in WIDE:
            raise InputError(f"master_dtype: {dtype}; allowed are None, {', '.join(map(str, WIDE))}")
        self.dtype = dtype
        self.copies: dict[Tensor, Tensor] = {}

    def current(self, p: Tensor) -> Tensor | None:
        """The copy of p, if it has one that nobody has passed by."""
        copy = self.copies.get(p)
        return copy if copy is not None and torch.equal(copy.to(p.dtype), p) else None

    @contextmanager
    def in_place_of(self, parameters: Iterable[Tensor]) -> Iterator[None]:
        """Inside, the parameters with a gradient or a copy are their copies."""
        low = [] if self.dtype is None else [p for p in parameters if p.dtype in LOW]
        low = [p for p in low if p.grad is not None or p in self.copies]
        own = [(p, p.data, p.grad) for p in low]
        try:
            for p, storage, gradient in own:
                copy = self.current(p)
                if copy is None:
                    copy = storage.to(self.dtype)
                p.grad = None  # a gradient has its parameter's dtype
                p.data = copy
                p.grad = None if gradient is None else gradient.to(self.dtype)
            yield
        finally:
            for p, storage, gradient in own:
                if p.data is storage or p.dtype == storage.dtype:
                    continue
                p.grad = None
                self.copies[p] = p.data
                storage.copy_(p.data)
                p.data = storage
                p.grad = gradient
