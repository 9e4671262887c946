"""Chained: several torch optimizers over disjoint parameters, seen as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.parts import refuse_duplicates
from pipeline.optim.wrapper import Wrapper, loss_of


class Chained(Optimizer):
    """One optimizer made of several: step() runs them in order; groups and state are shared, not copied.

    Each parameter may belong to one of them only: InputError names a duplicate and both groups.
    The state_dict has the usual layout: all groups in order, all state.
    """

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        if not optimizers:
            raise InputError("optimizers: empty; allowed is at least one torch.optim.Optimizer")
        for part in optimizers:
            if isinstance(part, Wrapper):
                name = type(part).__name__
                raise InputError(f"optimizers: a {name}; allowed is {name}(Chained([...]))")
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        refuse_duplicates(groups)
        super().__init__(groups, {})
        self.optimizers = list(optimizers)
        self._sizes = [len(optimizer.param_groups) for optimizer in optimizers]
        for optimizer in optimizers:
            self.state.update(optimizer.state)
        self._share()

    def _share(self) -> None:
        """Give each part its slice of the groups, and the one state."""
        start = 0
        for optimizer, size in zip(self.optimizers, self._sizes, strict=True):
            optimizer.param_groups = self.param_groups[start : start + size]
            optimizer.state = self.state
            start += size

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if "optimizers" in self.__dict__:
            raise InputError("param_group: cannot be added to a chain; allowed is a new chain with that group in it")
        super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"optimizers": self.optimizers, "_sizes": self._sizes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        loss = loss_of(closure)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss
