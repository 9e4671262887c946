"""Delayed: any torch optimizer fed with gradients that are tau optimizer steps old, without a pipeline.

Step k uses g(x_{(k-tau)+}; xi_k), (a)+ = max(a, 0): the gradient of batch k at the weights of tau steps ago. So the
parameters are not the newest weights: between steps they are x_{(k-tau)+}, where the next gradient has to be taken, and
the newer ones are kept here. Every call of step() is a step; the first 1 + tau gradients are taken at x_0.

    optimizer = Delayed(torch.optim.AdamW(model.parameters()), tau=2)
    ...                                   # loss.backward(); optimizer.step(): as always
    with optimizer.solution_weights():    # for what is not a gradient
        evaluate(model)

A pipeline's stage with that delay makes the same numbers, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.wrapper import Wrapper, check_tau, parameters_of


class Delayed(Wrapper):
    """`base`, with gradients taken tau steps ago; tau weight-sized buffers.

    base: any torch optimizer, a corrected one included: Delayed(ErrorFeedback(base, tau), tau).
    tau: delay in optimizer steps, integer >= 0; tau = 0 is bit-identical to `base`.
    The weights are this wrapper's: what else changes them does so inside `solution_weights` or `newest_weights`, where
    no step is taken and nothing saved or loaded. A parameter that joins later counts its delay from then; one that is
    frozen later is up to date tau steps after that. A step left out for its gradient is a step with x_{k+1} = x_k; one
    that a grad scaler leaves out has never been.
    Raises InputError for a bad tau.
    """

    KEY = "delayed"
    OUTERMOST = True

    def __init__(self, base: Optimizer, tau: int, skip_nonfinite: bool = False) -> None:
        self.tau = check_tau(tau)
        super().__init__(base, skip_nonfinite, master_dtype=None)
        # parameter -> the weights that are newer than itself, oldest first; at most tau of them
        self.newer: dict[Tensor, list[Tensor]] = {}
        self._inside = False

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "newer", "_inside"]

    @property
    def acts(self) -> bool:
        return self.tau > 0

    @contextmanager
    def newest_weights(self) -> Iterator[None]:
        """Inside, the parameters are x_k; changes made there are kept."""
        if self._inside:
            yield
            return
        moved = [p for p in parameters_of(self) if self.newer.get(p)]
        with torch.no_grad():
            old = [p.detach().clone() for p in moved]
            _copy([self.newer[p][-1] for p in moved], moved)
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            with torch.no_grad():
                _copy(moved, [self.newer[p][-1] for p in moved])
                _copy(old, moved)

    def newest(self) -> list[Tensor]:
        """x_k in the order of the parameters: the tensors themselves, to be read only, until the next step."""
        return [self.newer[p][-1] if self.newer.get(p) and not self._inside else p for p in parameters_of(self)]

    def solution_weights(self) -> AbstractContextManager[None]:
        return self._both(self.base) if isinstance(self.base, Wrapper) else self.newest_weights()

    @contextmanager
    def _both(self, base: Wrapper) -> Iterator[None]:
        with self.newest_weights(), base.solution_weights():
            yield

    def virtual_parameters(self) -> list[Tensor]:
        """The corrected optimizer's y_k, see `ErrorFeedback`. Raises InputError where there is no such optimizer."""
        inside: Any = self.base
        while isinstance(inside, Wrapper) and not hasattr(inside, "virtual_parameters"):
            inside = inside.base
        if not hasattr(inside, "virtual_parameters"):
            raise InputError(f"virtual_parameters: {type(self.base).__name__}; allowed with an ErrorFeedback inside")
        with self.newest_weights():
            found: list[Tensor] = inside.virtual_parameters()
            return found

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step, see the class. Returns the closure's value."""
        self._refuse_inside("step")
        return super().step(closure)

    def state_dict(self) -> dict[str, Any]:
        self._refuse_inside("state_dict")
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._refuse_inside("load_state_dict")
        super().load_state_dict(state_dict)

    def _refuse_inside(self, what: str) -> None:
        if self._inside:
            raise InputError(f"{what}: called inside newest_weights or solution_weights; allowed is outside of them")

    def _advance(self) -> None:
        self._move(self.base.step)

    def _pass_by(self) -> None:
        self._move(super()._pass_by)

    def _move(self, step: Any) -> None:
        """x_{k+1} from x_k; the parameters go on to x_{(k+1-tau)+}."""
        trained = [p for p in parameters_of(self) if p.requires_grad or self.newer.get(p)]
        full = [p for p in trained if len(self.newer.get(p, ())) == self.tau]
        waiting = [p for p in trained if len(self.newer.get(p, ())) < self.tau]
        first = [p.detach().clone() for p in waiting]  # x_0, which the next gradient is taken at, too
        behind = [p for p in trained if self.newer.get(p)]
        _copy([self.newer[p][-1] for p in behind], behind)
        self._inside = True
        try:
            step()
        finally:
            self._inside = False
            for p in trained:
                self.newer.setdefault(p, []).append(p.detach().clone())
            _copy(first, waiting)
            _copy([self.newer[p].pop(0) for p in full], full)

    def _settings(self) -> dict[str, Any]:
        return {"tau": self.tau}

    def _own_state(self) -> dict[str, Any]:
        return {"newer": self._by_number(self.newer)}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self.newer = self._by_parameter(own["newer"])


def _copy(source: list[Tensor], target: list[Tensor]) -> None:
    """In place, so that autograd notices a graph whose weights are gone."""
    if target:
        torch._foreach_copy_(target, source)
