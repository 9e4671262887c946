"""GradientExtrapolation: the correction of the gradient instead of the update, g~_k = g_k + c (g_k - g_{k-1}).

With c = tau, and 2 g_k - g_{k-1} for one step of delay. The gradients are those the optimizer is given, each tau steps
old; the first one is used as it is. Noise is extrapolated too: its variance grows to (1 + c)^2 + c^2 times its own.

Source: the gradient-level counterpart of error feedback (arXiv 2606.30634); for tau = 1 the step of the optimistic
gradient method (Popov 1980).
"""

from __future__ import annotations

from torch import Tensor

from pipeline.optim.extrapolating import Extrapolating
from pipeline.optim.wrapper import parameters_of


class GradientExtrapolation(Extrapolating):
    """`base_optimizer`, given extrapolated gradients; one gradient-sized buffer.

    tau: integer >= 0; 0 is bit-identical to the base. coefficient: c, a number >= 0; None: tau.
    After step() a parameter's .grad is the gradient that was given. A parameter without gradient at a step is left
    alone by it, and its next difference is to the last gradient it had.
    Raises InputError, naming the field, for a bad value.
    """

    KEY = "gradient_extrapolation"
    REMEMBERS = "last"
    last: dict[Tensor, Tensor]  # g_{k-1}

    def _advance(self) -> None:
        given = [(p, p.grad) for p in parameters_of(self) if p.grad is not None]
        for p, g in given:  # the base gets a tensor of its own: some write into it
            last, self.last[p] = self.last.get(p), g.detach().clone()
            if last is None:
                p.grad = g.detach().clone()
            else:
                change = g - last
                p.grad = g + self._ahead(change)
        try:
            self.base.step()
        finally:
            for p, g in given:
                p.grad = g
