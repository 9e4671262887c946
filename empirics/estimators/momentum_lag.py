"""Momentum error e_k = m_{k+1} - grad f(z_k), and the four parts that the proof splits it into.

With g_k = grad f(z_k), s_k the full gradient where step k's was taken, n_k its noise, a = alpha and g_{-1} := g_0,
    e_k = (1-a) e_{k-1} + (1-a)(g_{k-1} - g_k) + a (s_k - g_k) + a n_k,      e_{-1} = m_0 - g_0.
Each term runs through the same recursion by itself: start, lag, delay, noise. Their sum is e_k, an identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.weights import Weights, combine, minus

PARTS = ("start", "lag", "delay", "noise")


def momentum_error(norm: AnyNorm, momentum: Weights, gradient: Weights) -> float:
    """dual(m_{k+1} - grad f(z_k))."""
    return norm.dual(minus(momentum, gradient))


@dataclass
class MomentumLag:
    """Streams, from k = 0 on, (g_k, s_k, the gradient that the optimizer got). Keeps four weights-sized sums.

    m0: the first momentum. parts: name -> dual norm after each step; total: dual norm of their sum, which is e_k.
    """

    norm: AnyNorm
    alpha: float
    m0: Weights
    parts: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PARTS})
    total: list[float] = field(default_factory=list)
    _sums: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    _before: Weights | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha: {self.alpha!r}; allowed is a number in (0, 1]")

    def add(self, now: Weights, stale: Weights, received: Weights) -> None:
        """The next step; `now` is kept, not copied."""
        a = self.alpha
        if self._before is None:
            zero = {name: torch.zeros_like(v) for name, v in now.items()}
            self._sums = {name: zero for name in PARTS} | {"start": minus(self.m0, now)}
        before = now if self._before is None else self._before
        new: dict[str, list[tuple[float, Weights]]] = {
            "start": [],
            "lag": [(1 - a, minus(before, now))],
            "delay": [(a, minus(stale, now))],
            "noise": [(a, minus(received, stale))],
        }
        for name in PARTS:
            self._sums[name] = combine([(1 - a, self._sums[name]), *new[name]])
            self.parts[name].append(self.norm.dual(self._sums[name]))
        self.total.append(self.norm.dual(self.error))
        self._before = now

    @property
    def error(self) -> dict[str, Tensor]:
        """e_k after the last step."""
        return combine([(1.0, self._sums[name]) for name in PARTS])
