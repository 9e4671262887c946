"""LRDiscount: a smaller learning rate where the delay is longer, for the first part of training.

Step k uses lr / max(tau, 1)^p with p = 1 - min(k / K, 1): from lr / tau to the whole lr in K steps. Nothing changes
where the delay is one step, as in PipeDream-2BW.

Source: Yang et al. 2021 (PipeMare, arXiv 1910.05124), its first technique, learning-rate rescheduling.
"""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.wrapper import Wrapper, check_number


class LRDiscount(Wrapper):
    """`base_optimizer` with the discounted learning rate, whatever a scheduler has set; no buffer.

    tau: delay in optimizer steps, a number >= 0 (PipeMare's is a fraction); up to 1 it is bit-identical to the base.
    anneal_steps: K >= 1. The rate in the groups is the undiscounted one, before and after a step.
    Raises InputError, naming the field, for a bad value.
    """

    KEY = "lr_discount"

    def __init__(
        self, base_optimizer: Optimizer, tau: float, anneal_steps: int, *, skip_nonfinite: bool = False
    ) -> None:
        self.tau = check_number("tau", tau)
        if isinstance(anneal_steps, bool) or not isinstance(anneal_steps, int) or anneal_steps < 1:
            raise InputError(f"anneal_steps: {anneal_steps!r}; allowed is an integer >= 1 (optimizer steps)")
        self.anneal_steps = anneal_steps
        super().__init__(base_optimizer, skip_nonfinite, master_dtype=None)
        self.steps = 0

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "anneal_steps", "steps"]

    @property
    def acts(self) -> bool:
        return self.tau > 1

    @property
    def factor(self) -> float:
        """What the next step multiplies the learning rate by."""
        return float(max(self.tau, 1.0) ** -(1 - min(self.steps / self.anneal_steps, 1)))

    def _advance(self) -> None:
        rates = [group["lr"] for group in self.param_groups]
        for group, lr in zip(self.param_groups, rates, strict=True):
            group["lr"] = lr * self.factor
        try:
            self.base.step()
        finally:
            for group, lr in zip(self.param_groups, rates, strict=True):
                group["lr"] = lr
        self.steps += 1

    def _settings(self) -> dict[str, Any]:
        return {"tau": self.tau, "anneal_steps": self.anneal_steps}

    def _own_state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self.steps = int(own["steps"])
