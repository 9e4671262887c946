"""What the wrappers share: param_groups of the optimizer inside, and a checkpoint that loses nothing.

A wrapper is a torch optimizer around another one. It owns no hyper-parameters: its param_groups are the dicts
of the optimizer inside, so a learning-rate scheduler on the wrapper acts on the optimizer inside.

A checkpoint is the wrapped optimizer's state_dict ("state", "param_groups") with one more key a wrapper.
Tensors come back with the dtype they were saved with: torch's own loader casts floating-point state to the
dtype of the parameter, which changes the next step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError


def parameters_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """The parameters of an optimizer, in the order of its groups."""
    for group in optimizer.param_groups:
        yield from group["params"]


def check_same_parameters(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Refuse a checkpoint whose parameters have other names than the optimizer's.

    State is stored by position; two layers of one shape in another order would swap their momenta in silence.
    """
    groups = saved.get("param_groups")
    if groups is None:
        raise InputError("state_dict: the key 'param_groups' is missing; allowed is a state_dict()")
    for number, (mine, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=False)):
        names, others = mine.get("param_names"), theirs.get("param_names")
        if names is None or others is None or list(names) == list(others):
            continue
        different = [f"{a} is saved as {b}" for a, b in zip(names, others, strict=False) if a != b]
        what = different[0] if different else f"{len(names)} parameters, saved {len(others)}"
        raise InputError(f"state_dict: parameters of group {number} differ: {what}")


def load_exactly(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """optimizer.load_state_dict(saved), then every state tensor put back to the dtype it was saved with."""
    check_same_parameters(optimizer, saved)
    optimizer.load_state_dict(saved)
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    for number, p in zip(numbers, parameters_of(optimizer), strict=True):
        for key, value in saved["state"].get(number, {}).items():
            now = optimizer.state[p].get(key)
            if isinstance(value, Tensor) and isinstance(now, Tensor) and now.dtype != value.dtype:
                optimizer.state[p][key] = value.detach().to(device=now.device, copy=True)


class Wrapper(Optimizer):
    """A torch optimizer around another torch optimizer, sharing its param_groups.

    skip_nonfinite: True leaves out the whole step when a gradient holds Inf or NaN: nothing reaches weights,
    history, queue or moments, `skipped_steps` counts it and a warning says so. Off by default: the check
    costs a pass over the gradients, and in a pipeline all stages have to decide together.
    """

    KEY = "wrapper"  # the wrapper's key in a checkpoint
    tau: int

    def __init__(self, base: Optimizer, skip_nonfinite: bool = False) -> None:
        if not isinstance(base, Optimizer):
            raise InputError(f"base_optimizer: {type(base).__name__}; allowed is a torch.optim.Optimizer")
        super().__init__(base.param_groups, base.defaults)
        self.base = base
        self.param_groups = base.param_groups  # one list, the same dicts
        self.skip_nonfinite = skip_nonfinite
        self.skipped_steps = 0

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if "base" in self.__dict__:
            self.base.add_param_group(param_group)
            self.param_groups = self.base.param_groups
        else:  # called by Optimizer.__init__
            super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {key: self.__dict__[key] for key in self._attributes()}

    def _attributes(self) -> list[str]:
        return ["base", "skip_nonfinite", "skipped_steps"]

    def _gradients_usable(self) -> bool:
        """False if this step has to be left out; then it is counted and reported."""
        if not self.skip_nonfinite:
            return True
        for p in parameters_of(self):
            if p.grad is not None and not bool(torch.isfinite(p.grad).all()):
                self.skipped_steps += 1
                warnings.warn(
                    f"{type(self).__name__}: gradient not finite, step left out (no. {self.skipped_steps})",
                    RuntimeWarning,
                    stacklevel=3,
                )
                return False
        return True

    # -- checkpoint

    def _own_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _load_own_state(self, own: dict[str, Any]) -> None:
        raise NotImplementedError

    def _check_own_state(self, own: dict[str, Any]) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state_dict plus this wrapper's part under its own key."""
        saved = dict(self.base.state_dict())
        saved[self.KEY] = self._own_state() | {"skipped_steps": self.skipped_steps}
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what state_dict() returned; refused before anything changes if another wrapper saved it.

        Raises InputError if the wrapper's part is missing or belongs to another delay, form or order.
        """
        if self.KEY not in state_dict:
            raise InputError(f"state_dict: the key {self.KEY!r} is missing; it was saved without this wrapper")
        own = state_dict[self.KEY]
        self._check_own_state(own)
        rest = {key: value for key, value in state_dict.items() if key != self.KEY}
        load_exactly(self.base, rest)
        self.param_groups = self.base.param_groups
        self.skipped_steps = int(own["skipped_steps"])
        self._load_own_state(own)

    # -- step

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One call of the wrapper, see its class; tau = 0 is the base's own step. Returns the closure's value."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._gradients_usable():
            if self.tau == 0:
                self.base.step()
            else:
                self._advance()
        return loss

    def _advance(self) -> None:
        """What the wrapper does with usable gradients where tau > 0."""
        raise NotImplementedError


def check_tau(tau: int) -> int:
    """tau as an int; InputError unless it is an integer >= 0."""
    if isinstance(tau, bool) or not isinstance(tau, int) or tau < 0:
        raise InputError(f"tau: {tau!r}; allowed is an integer >= 0 (optimizer steps)")
    return tau
