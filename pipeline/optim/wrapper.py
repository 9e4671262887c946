"""What the wrappers share: param_groups and state of the optimizer inside, and a checkpoint that loses nothing.

A wrapper is a torch optimizer around another one. It owns no hyper-parameters: its param_groups are the dicts of the
optimizer inside, so a learning-rate scheduler on the wrapper acts on the optimizer inside.

A checkpoint is the wrapped optimizer's state_dict ("state", "param_groups") with one more key a wrapper. Tensors come
back with the dtype they were saved with: torch's own loader casts floating-point state to the dtype of the parameter,
which changes the next step.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.masters import Masters
from pipeline.optim.parts import refuse_duplicates

#: Entries of an optimizer's state that are as large as their parameter, in torch and in most libraries.
PARAMETER_SHAPED = ("momentum", "momentum_buffer", "exp_avg", "exp_avg_sq")


def parameters_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """The parameters of an optimizer, in the order of its groups."""
    for group in optimizer.param_groups:
        yield from group["params"]


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """What ``step(closure)`` returns: the closure's value, taken with gradients on; None without one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def check_same_parameters(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Refuse a checkpoint whose parameters have other names than the optimizer's.

    State is stored by position; two layers of one shape in another order would swap their momenta in silence.
    """
    groups = saved.get("param_groups")
    if groups is None:
        raise InputError("state_dict: the key 'param_groups' is missing; allowed is a state_dict()")
    sizes, theirs_sizes = ([len(g["params"]) for g in gs] for gs in (optimizer.param_groups, groups))
    if sizes != theirs_sizes:
        raise InputError(f"state_dict: groups of {theirs_sizes} parameters, this optimizer has {sizes}")
    for p, number in zip(parameters_of(optimizer), (n for g in groups for n in g["params"]), strict=True):
        for key, value in saved["state"].get(number, {}).items():
            if key in PARAMETER_SHAPED and isinstance(value, Tensor) and value.shape != p.shape:
                raise InputError(
                    f"state_dict: {key} of parameter {number} was saved with shape {tuple(value.shape)}, this one has "
                    f"{tuple(p.shape)}"
                )
    for number, (mine, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=False)):
        names, others = mine.get("param_names"), theirs.get("param_names")
        if names is None or others is None or list(names) == list(others):
            continue
        different = [f"{a} is saved as {b}" for a, b in zip(names, others, strict=False) if a != b]
        what = different[0] if different else f"{len(names)} parameters, saved {len(others)}"
        raise InputError(f"state_dict: parameters of group {number} differ: {what}")


def load_exactly(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """optimizer.load_state_dict(saved), then every tensor of the state, in lists too, put back to its saved dtype."""
    check_same_parameters(optimizer, saved)
    optimizer.load_state_dict(saved)
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    for number, p in zip(numbers, parameters_of(optimizer), strict=True):
        for key, value in saved["state"].get(number, {}).items():
            if key in optimizer.state[p]:
                optimizer.state[p][key] = _as_saved(optimizer.state[p][key], value)


def _as_saved(now: Any, saved: Any) -> Any:
    """What was loaded, with the dtype that each tensor was saved with, in lists, tuples and dicts too."""
    if isinstance(now, Tensor) and isinstance(saved, Tensor):
        return now if now.dtype == saved.dtype else saved.detach().to(device=now.device, copy=True)
    if type(now) is type(saved) is dict:
        return {key: _as_saved(now[key], saved[key]) for key in now}
    if type(now) is type(saved) and type(now) in (list, tuple):
        return type(now)(_as_saved(a, b) for a, b in zip(now, saved, strict=True))
    return saved if isinstance(saved, str) else now  # torch's loader rebuilds a string from an iterator's name


class Wrapper(Optimizer):
    """A torch optimizer around another torch optimizer, sharing its param_groups and its state.

    master_dtype: low-precision weights are stepped in copies of this dtype, and updates are measured there; None: in
    the weights' own. skip_nonfinite: True leaves out the whole step when a gradient holds Inf or NaN: nothing reaches
    weights, history or moments, `skipped_steps` counts it and a warning says so. Off by default: the check costs a pass
    over the gradients, and in a pipeline all stages have to decide together (`Job.skip_nonfinite`).
    Raises InputError for what is no optimizer or cannot be wrapped.
    """

    KEY = "wrapper"  # the wrapper's key in a checkpoint
    OUTERMOST = False  # whether nothing may be wrapped around it
    KINDS: ClassVar[list[str]] = []  # keys of all wrappers
    #: Pairs that cannot be in one stack: a prediction is not where the other believes the weights to be.
    EXCLUSIVE = ({"weight_prediction", "error_feedback"}, {"weight_prediction", "delay_compensation"})

    def __init__(
        self, base: Optimizer, skip_nonfinite: bool = False, master_dtype: torch.dtype | None = torch.float32
    ) -> None:
        if not isinstance(base, Optimizer):
            raise InputError(f"base_optimizer: {type(base).__name__}; allowed is a torch.optim.Optimizer")
        if isinstance(base, torch.optim.LBFGS):
            raise InputError("base_optimizer: LBFGS; allowed are optimizers that take one gradient a step")
        if not isinstance(skip_nonfinite, bool):
            raise InputError(f"skip_nonfinite: {skip_nonfinite!r}; allowed are True and False")
        self._check_inside(base)
        refuse_duplicates(base.param_groups)
        super().__init__(base.param_groups, base.defaults)
        self.base: Optimizer = base
        self.skip_nonfinite = skip_nonfinite
        self.skipped_steps = 0
        self.masters = Masters(master_dtype)
        self._outer: weakref.ref[Wrapper] | None = None
        self._share()
        if isinstance(base, Wrapper):
            base._outer = weakref.ref(self)
            # One decides, the outermost: what an inner one left out, its neighbours would not.
            self.skip_nonfinite, base.skip_nonfinite = skip_nonfinite or base.skip_nonfinite, False

    def _check_inside(self, base: Optimizer) -> None:
        """Refuse what would be another method than it looks: two of a kind, or two that both place the weights."""
        mine, inside = type(self), base
        while isinstance(inside, Wrapper):
            other = type(inside).__name__
            if type(inside) is mine:
                raise InputError(f"base_optimizer: has a {other} inside; allowed is one of a kind")
            if inside.OUTERMOST:
                raise InputError(f"base_optimizer: a {other}; allowed is {other}({mine.__name__}(base, tau), tau)")
            moved = inside.KEY == "weight_prediction" and not self.OUTERMOST
            if moved or {inside.KEY, self.KEY} in self.EXCLUSIVE:
                raise InputError(
                    f"base_optimizer: has a {other} inside; allowed is WeightPrediction around all but a Delayed, and "
                    "not with ErrorFeedback or DelayCompensation"
                )
            inside = inside.base

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "KEY" in cls.__dict__:
            Wrapper.KINDS.append(cls.KEY)

    def _share(self) -> None:
        """One list of groups and one state, the base's."""
        self.param_groups = self.base.param_groups
        self.state = self.base.state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if "base" in self.__dict__:
            self.base.add_param_group(param_group)
            self._share()
            refuse_duplicates(self.param_groups)
        else:  # called by Optimizer.__init__
            super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {key: self.__dict__[key] for key in self._attributes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_outer", None)
        base = self.__dict__.get("base")
        if isinstance(base, Wrapper):
            base._outer = weakref.ref(self)

    def _attributes(self) -> list[str]:
        return ["base", "skip_nonfinite", "skipped_steps", "masters"]

    @property
    def acts(self) -> bool:
        """False where the wrapper changes nothing: then its step is the base's own, bit for bit."""
        raise NotImplementedError

    def newest_weights(self) -> AbstractContextManager[None]:
        """Inside, the parameters are the newest weights x_k, wherever the next gradient is taken.

        The same as outside, unless a `Delayed` is around.
        """
        outer = None if self._outer is None else self._outer()
        return nullcontext() if outer is None else outer.newest_weights()

    def solution_weights(self) -> AbstractContextManager[None]:
        """Inside, the parameters are what has been trained, and may be changed: the newest weights, unless the method
        trains another point than the one where gradients are taken."""
        return self.base.solution_weights() if isinstance(self.base, Wrapper) else self.newest_weights()

    @torch.no_grad()
    def solution(self) -> list[Tensor]:
        """What has been trained, in the order of the parameters, in full precision where weights are half."""
        with self.solution_weights():
            return [self._full(p).detach().clone() for p in parameters_of(self)]

    def _full(self, p: Tensor) -> Tensor:
        """p, or its full-precision copy if this wrapper or another of the stack has one."""
        top: Wrapper = self
        while top._outer is not None and (outer := top._outer()) is not None:
            top = outer
        inside: Optimizer = top
        while isinstance(inside, Wrapper):
            copy = inside.masters.current(p)
            if copy is not None:
                return copy
            inside = inside.base
        return p

    # -- checkpoint

    def _own_state(self) -> dict[str, Any]:
        """This wrapper's part of a checkpoint: plain values, tensors and dicts by position of a parameter."""
        raise NotImplementedError

    def _load_own_state(self, own: dict[str, Any]) -> None:
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to fit, JSON-ready."""
        raise NotImplementedError

    def _all_settings(self) -> dict[str, Any]:
        """With what the wrapper is around, since two in another order are another method, and the copies' dtype."""
        around = self.base.KEY if isinstance(self.base, Wrapper) else type(self.base).__name__
        return self._settings() | {"around": around, "master_dtype": str(self.masters.dtype)}

    def _by_number(self, values: Mapping[Tensor, Any]) -> dict[int, Any]:
        """Copies for a checkpoint: position of a parameter -> its tensor or list of tensors."""
        number = self._numbers()
        return {
            number[p]: [t.clone() for t in value] if isinstance(value, list) else value.clone()
            for p, value in values.items()
        }

    def _by_parameter(self, saved: Mapping[int, Any]) -> dict[Tensor, Any]:
        """The inverse of :meth:`_by_number`."""
        parameters = list(parameters_of(self))

        def own(i: int, tensor: Tensor) -> Tensor:
            return tensor.detach().to(device=parameters[i].device, copy=True)

        return {
            parameters[i]: [own(i, t) for t in value] if isinstance(value, list) else own(i, value)
            for i, value in saved.items()
        }

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(parameters_of(self))}

    def _check(self, own: Mapping[str, Any]) -> None:
        """Refuse a part that was saved with other settings, or tensors of other shapes."""
        for name, value in self._all_settings().items():
            if own.get(name) != value:
                raise InputError(f"{name}: saved with {own.get(name)!r}, this one has {value!r}")
        parameters = list(parameters_of(self))
        names = [name for group in self.param_groups for name in group.get("param_names", [])]
        for what, by_number in own.items():
            if not isinstance(by_number, dict):
                continue
            for i, value in by_number.items():
                if i >= len(parameters):
                    raise InputError(f"state_dict: {what} of parameter {i}; there are {len(parameters)} parameters")
                for tensor in value if isinstance(value, list) else [value]:
                    if tensor.shape != parameters[i].shape:
                        name = names[i] if len(names) == len(parameters) else i
                        raise InputError(
                            f"state_dict: {what} of parameter {name} was saved with shape {tuple(tensor.shape)}, "
                            f"this one has {tuple(parameters[i].shape)}"
                        )

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state_dict plus this wrapper's part under its own key."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        saved = dict(self.base.state_dict())
        own = self._all_settings() | self._own_state() | {"skipped_steps": self.skipped_steps}
        saved[self.KEY] = own | {"masters": self._by_number(self.masters.copies)}
        for post in self._optimizer_state_dict_post_hooks.values():
            changed = post(self, saved)
            saved = saved if changed is None else changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what state_dict() returned; refused before anything changes if another wrapper saved it.

        Raises InputError if the wrapper's part is missing or belongs to another delay, form, shape or order.
        """
        if not isinstance(state_dict, Mapping):
            raise InputError(f"state_dict: {type(state_dict).__name__}; allowed is a state_dict()")
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        if self.KEY not in state_dict:
            raise InputError(f"state_dict: the key {self.KEY!r} is missing; it was saved without this wrapper")
        own = state_dict[self.KEY]
        self._check(own)
        load = self.base.load_state_dict if isinstance(self.base, Wrapper) else self._load_base
        load({key: value for key, value in state_dict.items() if key != self.KEY})
        self._share()
        self.skipped_steps = int(own["skipped_steps"])
        self.masters.copies = self._by_parameter(own["masters"])
        self._load_own_state(own)
        for post in self._optimizer_load_state_dict_post_hooks.values():
            post(self)

    def _load_base(self, saved: dict[str, Any]) -> None:
        for kind in Wrapper.KINDS:
            if kind in saved:
                raise InputError(f"state_dict: was saved with {kind!r} around the optimizer, which is not there now")
        load_exactly(self.base, saved)

    # -- step

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step, see the class. Returns the closure's value."""
        loss = loss_of(closure)
        usable = self._gradients_usable()
        if not usable:
            self.leave_out()
        elif self.acts:
            with self.masters.in_place_of(parameters_of(self)):
                self._advance()
        else:
            self.base.step()
        return loss

    def _advance(self) -> None:
        """What the wrapper does with usable gradients where it acts."""
        raise NotImplementedError

    @torch.no_grad()
    def leave_out(self) -> None:
        """Pass a step whose gradients are of no use: x_{k+1} = x_k. Only what remembers weights takes note."""
        if self.acts:
            with self.masters.in_place_of(parameters_of(self)):
                self._pass_by()
        elif isinstance(self.base, Wrapper):
            self.base.leave_out()

    def _pass_by(self) -> None:
        if isinstance(self.base, Wrapper):
            self.base.leave_out()

    def _gradients_usable(self) -> bool:
        """False if this step has to be left out; then it is counted and reported."""
        if not self.skip_nonfinite:
            return True
        for p in parameters_of(self):
            if p.grad is None:
                continue
            g = p.grad.coalesce().values() if p.grad.is_sparse else p.grad
            if not bool(torch.isfinite(g).all()):
                self.skipped_steps += 1
                warnings.warn(
                    f"{type(self).__name__}: gradient not finite, step left out (no. {self.skipped_steps})",
                    RuntimeWarning,
                    stacklevel=3,
                )
                return False
        return True


def check_tau(tau: int) -> int:
    """tau as an int; InputError unless it is an integer >= 0."""
    if isinstance(tau, bool) or not isinstance(tau, Integral) or tau < 0:
        raise InputError(f"tau: {tau!r}; allowed is an integer >= 0 (optimizer steps)")
    return int(tau)


def check_number(name: str, value: float, least: float = 0.0, most: float = float("inf")) -> float:
    """A finite number in [least, most]. Raises InputError naming the field."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value <= most or value == float("inf"):
        allowed = f">= {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
        raise InputError(f"{name}: {value!r}; allowed is a finite number {allowed}")
    return float(value)
