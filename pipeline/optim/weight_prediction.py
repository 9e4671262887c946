"""WeightPrediction: gradients are taken where the weights are expected to be when they are used.

The weights are y; what a forward and a backward see is the prediction x^_k = y_k + c U_{k-1}, c = tau: tau more steps
like the last one. The gradient of step k is taken at x^_{(k-tau)+}, and y_{k+1} = y_k + U_k(y_k).

Without decoupled decay this is error feedback in its `extrapolate` form, seen at y and with U_{-1} = 0 at the start:
the two differ in which point is called the weights, in where decay acts, and in the first steps.

Source: Chen et al. 2018 (SpecTrain, arXiv 1809.02839), for SGD with momentum, whose smoothed gradient is the last
update over the learning rate; Guan et al. 2019 (XPipe, arXiv 1911.04610), for Adam's update. The last update itself is
used here, so that any optimizer will do; decay is part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.optim.wrapper import Wrapper, check_number, check_tau, parameters_of


class WeightPrediction(Wrapper):
    """`base_optimizer` whose parameters are predictions; the weights are kept here: one weight-sized buffer.

    tau: integer >= 0; 0 is bit-identical to the base. coefficient: c, a number >= 0; None: tau.
    `solution` and `solution_weights` give y, which is what has been trained; other changes of the parameters are lost.
    Raises InputError, naming the field, for a bad value.
    """

    KEY = "weight_prediction"

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
        self.weights: dict[Tensor, Tensor] = {}  # y of a parameter that has been stepped

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "coefficient", "weights"]

    @property
    def acts(self) -> bool:
        return self.tau > 0

    def _advance(self) -> None:
        moving = [p for p in parameters_of(self) if p.grad is not None or p in self.weights]
        for p in moving:
            if p in self.weights:
                p.copy_(self.weights[p])
            else:
                self.weights[p] = p.detach().clone()
        self.base.step()
        for p in moving:
            y = self.weights[p]
            U = p.detach() - y
            y.copy_(p)
            p.add_(U if self.coefficient == 1 else U * self.coefficient)

    @contextmanager
    def solution_weights(self) -> Iterator[None]:
        """Inside, the parameters are y; what is changed there moves the prediction with it."""
        with self.newest_weights():
            moved = [p for p in parameters_of(self) if p in self.weights]
            seen = [(p.detach().clone(), self.weights[p].to(p.dtype)) for p in moved]
            with torch.no_grad():
                for p, (_, y) in zip(moved, seen, strict=True):
                    p.copy_(y)
            try:
                yield
            finally:
                with torch.no_grad():
                    for p, (prediction, y) in zip(moved, seen, strict=True):
                        if not torch.equal(p, y):
                            self.weights[p].copy_(p)
                            prediction += p.detach() - y
                        p.copy_(prediction)

    def _full(self, p: Tensor) -> Tensor:
        return self.weights.get(p, super()._full(p))

    def _settings(self) -> dict[str, Any]:
        return {"tau": self.tau, "coefficient": self.coefficient}

    def _own_state(self) -> dict[str, Any]:
        return {"weights": self._by_number(self.weights)}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self.weights = self._by_parameter(own["weights"])
