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

import torch
from torch import Tensor

from pipeline.optim.extrapolating import Extrapolating
from pipeline.optim.wrapper import parameters_of


class WeightPrediction(Extrapolating):
    """`base_optimizer` whose parameters are predictions; the weights are kept here: one weight-sized buffer.

    tau: integer >= 0; 0 is bit-identical to the base. coefficient: c, a number >= 0; None: tau.
    `solution` and `solution_weights` give y, which is what has been trained; other changes of the parameters are lost.
    Raises InputError, naming the field, for a bad value.
    """

    KEY = "weight_prediction"
    REMEMBERS = "weights"
    weights: dict[Tensor, Tensor]  # y of a parameter that has been stepped

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
            p.add_(self._ahead(U))

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
