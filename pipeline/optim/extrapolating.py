"""What the two rivals of error feedback share that go c steps ahead with one remembered tensor a parameter."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.optim.wrapper import Wrapper, check_number, check_tau


class Extrapolating(Wrapper):
    """tau: integer >= 0; 0 is bit-identical to the base. coefficient: c, a number >= 0; None: tau.

    Raises InputError, naming the field, for a bad value.
    """

    REMEMBERS = ""  # name of the dict parameter -> tensor

    def __init__(
        self,
        base_optimizer: Optimizer,
        tau: int = 1,
        coefficient: float | None = None,
        *,
        master_dtype: torch.dtype | None = torch.float32,
        skip_nonfinite: bool = False,
    ) -> None:
        self.tau = check_tau(tau)
        self.coefficient = float(tau) if coefficient is None else check_number("coefficient", coefficient)
        super().__init__(base_optimizer, skip_nonfinite, master_dtype)
        setattr(self, self.REMEMBERS, {})

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "coefficient", self.REMEMBERS]

    @property
    def acts(self) -> bool:
        return self.tau > 0

    def _ahead(self, change: Tensor) -> Tensor:
        """c times the change."""
        return change if self.coefficient == 1 else change * self.coefficient

    def _settings(self) -> dict[str, Any]:
        return {"tau": self.tau, "coefficient": self.coefficient}

    def _own_state(self) -> dict[str, Any]:
        return {self.REMEMBERS: self._by_number(getattr(self, self.REMEMBERS))}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        setattr(self, self.REMEMBERS, self._by_parameter(own[self.REMEMBERS]))
