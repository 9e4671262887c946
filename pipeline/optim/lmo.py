"""LMO: steps of fixed length along the linear minimisation oracle of an exponential average of gradients.

    m_{k+1} = (1 - alpha) m_k + alpha g_k,     x_{k+1} = x_k - lr weight d_k,
    norm(d_k) <= 1,  <m_{k+1}, d_k> = dualnorm(m_{k+1}).
Norms: "spectral" (dual: nuclear; d is the exact polar factor, Muon without Newton-Schulz), "sign" (l_inf,
dual: l_1), "row-l2" (longest row, dual: sum of the rows' lengths), "frobenius" (normalised SGD).
With nesterov the direction is taken of (1 - alpha) m_{k+1} + alpha g_k.

Source: Kovalev 2025 (arXiv 2503.12645); Pethick et al. 2025 (arXiv 2502.07529), the LMO view of Muon and of
sign descent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError

NORMS = ("spectral", "sign", "row-l2", "frobenius")
STARTS = ("zero", "gradient")


def lmo_direction(m: Tensor, norm: str) -> Tensor:
    """The direction d with norm(d) <= 1 and <m, d> = dualnorm(m); zero for m = 0, NaN if m is not finite.

    m: any shape for "sign" and "frobenius"; at least two dimensions for the others, those after the first
    are flattened. Half precision is computed in float32, everything else in its own dtype; the scale of m
    does not matter. Singular values below round-off give no direction (rank-deficient m).
    """
    if norm not in NORMS:
        raise InputError(f"norm: {norm!r}; allowed are {', '.join(NORMS)}")
    if norm in ("spectral", "row-l2") and m.ndim < 2:
        raise InputError(f"norm: {norm!r} for a tensor of shape {tuple(m.shape)}; allowed is ndim >= 2")
    if m.numel() == 0:
        return m.clone()
    work = m if m.dtype in (torch.float32, torch.float64) else m.float()
    size = work.abs().max()
    if not bool(torch.isfinite(size)):
        return torch.full_like(m, float("nan"))
    if float(size) == 0.0:
        return torch.zeros_like(m)
    if norm == "sign":
        return torch.sign(work).to(m.dtype)
    work = work / size  # no square overflows or vanishes
    if norm == "frobenius":
        return (work / torch.linalg.vector_norm(work)).to(m.dtype)
    matrix = work.reshape(work.shape[0], -1)
    if norm == "row-l2":
        length = torch.linalg.vector_norm(matrix, dim=1, keepdim=True)
        matrix = torch.where(length > 0, matrix / length.clamp(min=torch.finfo(matrix.dtype).tiny), matrix)
        return matrix.reshape(m.shape).to(m.dtype)
    U, s, Vh = torch.linalg.svd(matrix, full_matrices=False)  # U [a, r], s [r], Vh [r, b]
    keep = s > s[0] * max(matrix.shape) * torch.finfo(matrix.dtype).eps
    return ((U * keep) @ Vh).reshape(m.shape).to(m.dtype)


class LMO(Optimizer):
    """The LMO method over parameter groups.

    lr: step length (radius) > 0 or 0; alpha: momentum injection in (0, 1]; norm: one of NORMS;
    nesterov: see the module; weight: factor of the group's step length, > 0;
    momentum_start: "zero" (m_0 = 0) or "gradient" (m_0 = the first gradient).
    A parameter without gradient is left alone. Raises InputError naming the field, and the parameter
    where a norm does not fit its shape.
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
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "norm": norm,
            "nesterov": nesterov,
            "weight": weight,
            "momentum_start": momentum_start,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        try:
            _check_group(self.param_groups[-1])
        except InputError:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step. Returns the closure's value."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
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
                m.mul_(1 - alpha).add_(p.grad, alpha=alpha)
                source = m * (1 - alpha) + p.grad * alpha if group["nesterov"] else m
                p.add_(lmo_direction(source, group["norm"]), alpha=-length)
        return loss


def _check_group(group: dict[str, Any]) -> None:
    if not 0 <= group["lr"] < float("inf"):
        raise InputError(f"lr: {group['lr']!r}; allowed is a finite number >= 0")
    if not 0 < group["alpha"] <= 1:
        raise InputError(f"alpha: {group['alpha']!r}; allowed is 0 < alpha <= 1")
    if not 0 < group["weight"] < float("inf"):
        raise InputError(f"weight: {group['weight']!r}; allowed is a finite number > 0")
    if group["norm"] not in NORMS:
        raise InputError(f"norm: {group['norm']!r}; allowed are {', '.join(NORMS)}")
    if group["momentum_start"] not in STARTS:
        raise InputError(f"momentum_start: {group['momentum_start']!r}; allowed are {', '.join(STARTS)}")
    if group["norm"] in ("spectral", "row-l2"):
        names = group.get("param_names") or [f"number {i}" for i in range(len(group["params"]))]
        for name, p in zip(names, group["params"], strict=True):
            if p.ndim < 2:
                raise InputError(
                    f"norm: {group['norm']!r} for parameter {name} of shape {tuple(p.shape)}; allowed is ndim >= 2"
                )
