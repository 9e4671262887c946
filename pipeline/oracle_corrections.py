"""What the oracle does about a delay: each correction from its definition, with nothing of the optimizer wrappers.

All of it is by parameter: x are the weights that forwards see, y those that the optimizer steps (x itself, but for
weight prediction), U what the optimizer did. A parameter's own first step is the first one that it has a gradient at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class OracleCorrection:
    """A correction by name; tau: delay of each layer in optimizer steps, 0 where it does nothing.

    error-feedback (form, coefficient), weight-prediction (coefficient), gradient-extrapolation (coefficient),
    delay-compensation (strength, adaptive), lr-discount (anneal_steps).
    """

    name: str
    tau: Sequence[int]
    form: str = "extrapolate"
    coefficient: float | None = None
    strength: float | None = None
    adaptive: bool = False
    anneal_steps: int = 1


class Corrector:
    """A correction under way; tau by parameter name."""

    def __init__(self, rule: OracleCorrection, tau: Mapping[str, int]) -> None:
        self.rule = rule
        self.tau = tau
        self.done = 0  # real steps
        self.earlier: dict[str, list[Tensor]] = {}  # by meaning: updates, gradients or weights, oldest first
        self.squares: Weights = {}

    def _c(self, name: str) -> float:
        if self.rule.coefficient is not None:
            return self.rule.coefficient
        return 1.0 if self.rule.form == "telescoped" else float(self.tau[name])

    def stepped(self, x: Weights) -> Weights:
        """y for the weights x."""
        if self.rule.name != "weight-prediction":
            return x
        return {name: self.earlier[name][0] if name in self.earlier else x[name] for name in x}

    def rate(self, tau: int) -> float:
        """Factor of the learning rate of parameters with that delay."""
        if self.rule.name != "lr-discount" or tau <= 1:
            return 1.0
        return float(tau) ** (min(self.done / self.rule.anneal_steps, 1) - 1)

    def gradient(self, given: Weights, x: Weights) -> Weights:
        """What the optimizer gets in place of the gradients ``given``, at a step from x."""
        return {name: self._gradient(name, g, x[name]) if self.tau[name] else g for name, g in given.items()}

    def _gradient(self, name: str, g: Tensor, x: Tensor) -> Tensor:
        rule = self.rule
        if rule.name == "gradient-extrapolation":
            last, self.earlier[name] = self.earlier.get(name), [g]
            if last is None:
                return g
            change = g - last[0]
            return g + (change if self._c(name) == 1 else change * self._c(name))
        if rule.name == "delay-compensation":
            moved = x - self.earlier.get(name, [x])[0]
            given = rule.strength if rule.strength is not None else 2.0 if rule.adaptive else 0.04
            strength: float | Tensor = given
            if rule.adaptive:
                old = self.squares.get(name, torch.zeros_like(g))
                self.squares[name] = 0.95 * old + (1 - 0.95) * (g * g)
                strength = given / torch.sqrt(self.squares[name] + 1e-7)
            return g + strength * (g * g) * moved
        return g

    def passed(self, x: Weights) -> None:
        """Step k is behind, taken or left out; x are the weights it started from."""
        if self.rule.name == "delay-compensation":
            for name, tau in self.tau.items():
                if tau:
                    self.earlier[name] = [*self.earlier.get(name, []), x[name]][-tau:]

    def after(self, new: Weights, update: Weights, had_gradient: Mapping[str, Tensor]) -> Weights:
        """x_{k+1}, where the optimizer went to ``new`` by ``update``."""
        self.done += 1
        if self.rule.name not in ("error-feedback", "weight-prediction"):
            return new
        x_next = dict(new)
        for name, tau in self.tau.items():
            if tau and (name in had_gradient or name in self.earlier):
                x_next[name] = self._after(name, tau, new[name], update[name])
        return x_next

    def _after(self, name: str, tau: int, new: Tensor, U: Tensor) -> Tensor:
        c = self._c(name)
        if self.rule.name == "weight-prediction":
            self.earlier[name] = [new]
            return new + (U if c == 1 else U * c)
        lag = tau if self.rule.form == "telescoped" else 1
        past = self.earlier.get(name)
        self.earlier[name] = [*(past or []), U][-lag:]
        if past is None:
            return new
        change = U - past[0]  # where fewer than lag are known, the first one
        return new + (change if c == 1 else change * c)
