"""LMO: steps of fixed length along the linear minimisation oracle of an exponential average of gradients.

    m_{k+1} = (1 - alpha) m_k + alpha g_k,     x_{k+1} = x_k - lr weight d_k,
    norm(d_k) <= 1,  <m_{k+1}, d_k> = dualnorm(m_{k+1}).
Norms: "spectral" (dual: nuclear), "sign" (l_inf, dual: l_1), "row-l2" (longest row, dual: sum of the rows'
lengths), "frobenius" (normalised SGD). With nesterov the direction is taken of (1 - alpha) m_{k+1} + alpha g_k.
Over a model the norm is max_l norm_l(x_l)/weight_l, its dual sum_l weight_l dual_l(g_l): one step has norm at
most lr. The shape scales nothing else: a spectral d of full rank has entries of root mean square
1/sqrt(max(rows, columns)), with the columns of the flattened matrix.

The spectral d is the exact polar factor of m, or Newton-Schulz as in torch's Muon, which is an inexact oracle:
norm(d) <= r_hi and <m, d> >= r_lo dualnorm(m). With measure=True both are measured at every step.

Source: Kovalev 2025 (arXiv 2503.12645); Pethick et al. 2025 (arXiv 2502.07529), the LMO view of Muon and of
sign descent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.layer_norms import NORMS, check_norm, inexactness, weighted_dual, weighted_norm
from pipeline.optim.polar import ITERATION_DTYPES, POLARS, exact_polar, newton_schulz
from pipeline.optim.wrapper import check_number, loss_of

STARTS = ("zero", "gradient")
_MATRIX_NORMS = ("spectral", "row-l2")
#: Settings that came later than the others, with what was done before.
_LATER = {"polar": "exact", "iteration_dtype": "bfloat16", "measure": False}
#: What a group may have: these settings, and what schedulers add.
_KNOWN = {"params", "param_names", "initial_lr", "max_lr", "min_lr", "lr", "alpha", "norm", "nesterov", "weight",
          "momentum_start", *_LATER}  # fmt: skip


def lmo_direction(m: Tensor, norm: str, polar: str = "exact", iteration_dtype: str = "bfloat16") -> Tensor:
    """The direction d with norm(d) <= 1 and <m, d> = dualnorm(m); zero for m = 0, NaN if m is not finite.

    m: any shape for "sign" and "frobenius"; at least two dimensions for the others, those after the first
    are flattened. Half precision is computed in float32, everything else in its own dtype; the scale of m
    does not matter. Singular values below round-off give no direction (rank-deficient m).
    polar: "exact", or "newton-schulz" for a spectral d that is only nearly that, in iteration_dtype "bfloat16" (as
    torch's Muon, bit for bit, limits of scale included: see :func:`pipeline.optim.polar.newton_schulz`) or "working"
    (dtype and scale as above).
    """
    check_norm(norm)
    _check_choice("polar", polar, POLARS)
    _check_choice("iteration_dtype", iteration_dtype, ITERATION_DTYPES)
    if norm in _MATRIX_NORMS and m.ndim < 2:
        raise InputError(f"norm: {norm!r} for a tensor of shape {tuple(m.shape)}; allowed is ndim >= 2")
    if m.numel() == 0:
        return m.clone()
    if norm == "spectral" and polar == "newton-schulz" and iteration_dtype == "bfloat16":
        return newton_schulz(m.reshape(m.shape[0], -1), iteration_dtype).reshape(m.shape).to(m.dtype)
    work = m if m.dtype in (torch.float32, torch.float64) else m.float()
    size = work.abs().max()
    largest = float(size)
    if not math.isfinite(largest):
        return torch.full_like(m, float("nan"))
    if largest == 0.0:
        return torch.zeros_like(m)
    if norm == "sign":
        return torch.sign(work).to(m.dtype)
    if norm == "spectral" and polar == "newton-schulz":  # in the working dtype
        return newton_schulz(m.reshape(m.shape[0], -1), iteration_dtype).reshape(m.shape).to(m.dtype)
    work = work / size  # no square overflows or vanishes
    if norm == "frobenius":
        return (work / torch.linalg.vector_norm(work)).to(m.dtype)
    matrix = work.reshape(work.shape[0], -1)
    if norm == "row-l2":
        length = torch.linalg.vector_norm(matrix, dim=1, keepdim=True)
        matrix = torch.where(length > 0, matrix / length.clamp(min=torch.finfo(matrix.dtype).tiny), matrix)
        return matrix.reshape(m.shape).to(m.dtype)
    return exact_polar(matrix).reshape(m.shape).to(m.dtype)


class Measured(NamedTuple):
    """How exact one parameter's directions were: of the last step, and the worst of all steps."""

    last_r_lo: float
    last_r_hi: float
    r_lo: float
    r_hi: float


class LMO(Optimizer):
    """The LMO method over parameter groups.

    lr: step length (radius) > 0 or 0; alpha: momentum injection in (0, 1]; norm: one of NORMS;
    nesterov: see the module; weight: factor of the group's step length, > 0;
    momentum_start: "zero" (m_0 = 0) or "gradient" (m_0 = the first gradient);
    polar, iteration_dtype: see lmo_direction; they act on spectral groups only;
    measure: keep r_lo and r_hi of every direction, see measured(). Costs an SVD for a spectral matrix and step.
    All of them are settings of a group. A parameter without gradient is left alone. Raises InputError naming the field,
    and the parameter where a norm does not fit its shape or where it is listed twice.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        alpha: float,
        norm: str = "spectral",
        nesterov: bool = False,
        weight: float = 1.0,
        momentum_start: str = "zero",
        polar: str = "exact",
        iteration_dtype: str = "bfloat16",
        measure: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "norm": norm,
            "nesterov": nesterov,
            "weight": weight,
            "momentum_start": momentum_start,
            "polar": polar,
            "iteration_dtype": iteration_dtype,
            "measure": measure,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key, value in _LATER.items():
                group.setdefault(key, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if isinstance(param_group, dict) and isinstance(param_group.get("params"), Iterable):
            if not isinstance(param_group["params"], (Tensor, set)):  # torch refuses a set
                param_group["params"] = list(param_group["params"])
            self._check_once(param_group["params"])
        super().add_param_group(param_group)
        try:
            _check_group(self.param_groups[-1])
        except InputError:
            self.param_groups.pop()
            raise

    def _check_once(self, params: Any) -> None:
        """Refuse a parameter that one of the groups has, or that this one has twice."""
        new = len(self.param_groups)
        home = {id(p): (number, name) for number, name, p in self._named()}
        for position, item in enumerate([params] if isinstance(params, Tensor) else params):
            name, p = item if isinstance(item, tuple) else (f"number {position} of group {new}", item)
            if id(p) in home:
                group, other = home[id(p)]
                where = f"group {group} and group {new}" if group != new else f"group {new} twice"
                alias = f" (there {other})" if other != name else ""
                raise InputError(f"params: parameter {name} is in {where}{alias}; allowed is one place for a parameter")
            home[id(p)] = (new, name)

    def _named(self) -> Iterator[tuple[int, str, Tensor]]:
        """(number of the group, name or place, parameter), in the order of the parameters."""
        for number, group in enumerate(self.param_groups):
            names = group.get("param_names")
            for position, p in enumerate(group["params"]):
                yield number, names[position] if names else f"number {position} of group {number}", p

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step. Returns the closure's value."""
        loss = loss_of(closure)
        for group in self.param_groups:
            alpha, length = group["alpha"], group["lr"] * group["weight"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    start = group["momentum_start"] == "gradient"
                    state["momentum"] = p.grad.detach().clone() if start else torch.zeros_like(p)
                m = state["momentum"]
                m.lerp_(p.grad, alpha)
                source = m.lerp(p.grad, alpha) if group["nesterov"] else m
                d = lmo_direction(source, group["norm"], group["polar"], group["iteration_dtype"])
                if group["measure"]:
                    last = inexactness(source, d, group["norm"])
                    state["inexactness"] = _worst(last, state.get("inexactness"))
                p.add_(d, alpha=-length)
        return loss

    def measured(self) -> dict[str, Measured]:
        """r_lo and r_hi of the parameters that were measured, by name, or by place where they have none.

        The bounds for an inexact oracle take the smallest r_lo and the largest r_hi of all of them. See
        :func:`pipeline.optim.layer_norms.inexactness` for a momentum of zero.
        """
        return {
            name: Measured(**self.state[p]["inexactness"])
            for _, name, p in self._named()
            if "inexactness" in self.state.get(p, {})
        }

    def norm(self, tensors: Iterable[Tensor | None]) -> float:
        """max_l norm_l(x_l)/weight_l of one tensor for each parameter, in their order; None counts as zero."""
        return weighted_norm(self._layers(list(tensors)))

    def dual_norm(self, tensors: Iterable[Tensor | None]) -> float:
        """sum_l weight_l dual_l(g_l), the dual of :meth:`norm`; tensors as there."""
        return weighted_dual(self._layers(list(tensors)))

    def _layers(self, tensors: Sequence[Tensor | None]) -> list[tuple[Tensor, str, float]]:
        places = [(name, p, group) for group, name, p in self._named()]
        if len(places) != len(tensors):
            raise InputError(f"tensors: {len(tensors)} of them; allowed are {len(places)}, one for each parameter")
        layers = []
        for x, (name, p, number) in zip(tensors, places, strict=True):
            if x is None:
                continue
            if x.shape != p.shape:
                raise InputError(f"tensors: shape {tuple(x.shape)} for {name}; allowed is {tuple(p.shape)}")
            group = self.param_groups[number]
            layers.append((x, group["norm"], group["weight"]))
        return layers


def _worst(last: tuple[float, float], before: dict[str, float] | None) -> dict[str, float]:
    """The fields of Measured as plain numbers, which no checkpoint rounds; NaN stays."""
    r_lo, r_hi = last
    old_lo, old_hi = (before["r_lo"], before["r_hi"]) if before else last
    broken = any(map(math.isnan, (r_lo, r_hi, old_lo, old_hi)))
    worst = (math.nan, math.nan) if broken else (min(old_lo, r_lo), max(old_hi, r_hi))
    return {"last_r_lo": r_lo, "last_r_hi": r_hi, "r_lo": worst[0], "r_hi": worst[1]}


def _check_choice(field: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{field}: {value!r}; allowed are {', '.join(allowed)}")


def _check_group(group: dict[str, Any]) -> None:
    for name in set(group) - _KNOWN:
        raise InputError(f"params: a group has {name!r}; allowed are {', '.join(sorted(_KNOWN))}")
    check_number("lr", group["lr"])
    if check_number("alpha", group["alpha"], most=1.0) == 0:
        raise InputError(f"alpha: {group['alpha']!r}; allowed is 0 < alpha <= 1")
    if check_number("weight", group["weight"]) == 0:
        raise InputError(f"weight: {group['weight']!r}; allowed is a finite number > 0")
    if not isinstance(group["nesterov"], bool):
        raise InputError(f"nesterov: {group['nesterov']!r}; allowed are True, False")
    _check_choice("norm", group["norm"], NORMS)
    _check_choice("momentum_start", group["momentum_start"], STARTS)
    _check_choice("polar", group["polar"], POLARS)
    _check_choice("iteration_dtype", group["iteration_dtype"], ITERATION_DTYPES)
    if not isinstance(group["measure"], bool):
        raise InputError(f"measure: {group['measure']!r}; allowed are True, False")
    if group["norm"] in _MATRIX_NORMS:
        names = group.get("param_names") or [f"number {i}" for i in range(len(group["params"]))]
        for name, p in zip(names, group["params"], strict=True):
            if p.ndim < 2:
                raise InputError(
                    f"norm: {group['norm']!r} for parameter {name} of shape {tuple(p.shape)}; allowed is ndim >= 2"
                )
