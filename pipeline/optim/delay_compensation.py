"""DelayCompensation: a Taylor term moves the stale gradient to the weights that it is applied to.

    g~_k = g_k + lambda g_k * g_k * (x_k - x_{(k-tau)+}),   elementwise:
the outer product of the gradient stands for the Hessian, and its diagonal for that. Adaptive:
    lambda = lambda_0 / sqrt(M_k + eps),   M_k = r M_{k-1} + (1 - r) g_k * g_k,   M_{-1} = 0.

Source: Zheng et al. 2017 (DC-ASGD, arXiv 1609.08326), its constant and its adaptive form.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.optim.wrapper import Wrapper, check_number, check_tau, parameters_of


class DelayCompensation(Wrapper):
    """`base_optimizer`, given compensated gradients; tau weight-sized buffers, and one more if adaptive.

    tau: delay of the gradients, integer >= 0; 0 is bit-identical to the base. strength: lambda or lambda_0, >= 0
    (None: 0.04, and 2 if adaptive).
    decay: r in [0, 1]; eps > 0. After step() a parameter's .grad is the gradient that was given.
    Raises InputError, naming the field, for a bad value.
    """

    KEY = "delay_compensation"

    def __init__(
        self,
        base_optimizer: Optimizer,
        tau: int = 1,
        strength: float | None = None,
        adaptive: bool = False,
        decay: float = 0.95,
        eps: float = 1e-7,
        *,
        master_dtype: torch.dtype | None = torch.float32,
        skip_nonfinite: bool = False,
    ) -> None:
        self.tau = check_tau(tau)
        own = 2.0 if adaptive else 0.04
        self.strength = own if strength is None else check_number("strength", strength)
        self.adaptive = bool(adaptive)
        self.decay = check_number("decay", decay, most=1.0)
        self.eps = check_number("eps", eps, least=1e-300)
        super().__init__(base_optimizer, skip_nonfinite, master_dtype)
        self.past: dict[Tensor, list[Tensor]] = {}  # x_{k-tau}, ..., x_{k-1}, as far as there have been steps
        self.mean_square: dict[Tensor, Tensor] = {}

    def _attributes(self) -> list[str]:
        own = ["tau", "strength", "adaptive", "decay", "eps", "past", "mean_square"]
        return [*super()._attributes(), *own]

    @property
    def acts(self) -> bool:
        return self.tau > 0

    def _advance(self) -> None:
        trained = [p for p in parameters_of(self) if p.requires_grad]
        given = [(p, p.grad) for p in trained if p.grad is not None]
        for p, g in given:
            taken = self.past.get(p, [p])[0]
            moved = p.detach() - taken
            square = g * g
            strength: Tensor | float = self.strength
            if self.adaptive:
                mean = self.mean_square.get(p, torch.zeros_like(g))
                self.mean_square[p] = mean = self.decay * mean + (1 - self.decay) * square
                strength = self.strength / torch.sqrt(mean + self.eps)
            p.grad = g + strength * square * moved
        self._remember()
        try:
            self.base.step()
        finally:
            for p, g in given:
                p.grad = g

    def _remember(self) -> None:
        for p in parameters_of(self):
            if p.requires_grad or p in self.past:
                self.past[p] = [*self.past.get(p, []), p.detach().clone()][-self.tau :]

    def _pass_by(self) -> None:
        self._remember()
        super()._pass_by()

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("tau", "strength", "adaptive", "decay", "eps")}

    def _own_state(self) -> dict[str, Any]:
        return {"past": self._by_number(self.past), "mean_square": self._by_number(self.mean_square)}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self.past = self._by_parameter(own["past"])
        self.mean_square = self._by_parameter(own["mean_square"])
