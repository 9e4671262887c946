"""ErrorFeedback: any torch optimizer, with the update-level correction for a gradient delay of tau steps.

With U_k the update the optimizer would apply at step k (learning rate and decoupled decay included),
    x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}).
Two forms, equal at tau = 1 and different methods beyond:
    extrapolate   c = tau, lag = 1      y_k = x_k - c U_{k-1}                    one buffer
    telescoped    c = 1,   lag = tau    y_k = x_k - c sum_{i=1..tau} U_{k-i}     tau buffers
A missing U_j (j < 0) is U_0, so the first update is plain and the correction starts with the second.
The identity y_{k+1} = y_k + U_k holds for any optimizer and any c, for k >= 1; y_1 = x_0 + (1 - c lag) U_0.
Moments advance once per gradient, and an old update is never rescaled.

Source: arXiv 2606.30634 (error feedback, tau = 1, coefficient 1); the two forms for tau > 1 are derived here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.correction_buffers import FORMS
from pipeline.errors import InputError
from pipeline.optim.wrapper import Wrapper, check_number, check_tau, parameters_of

STATE_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class ErrorFeedback(Wrapper):
    """`base_optimizer` with error feedback for a delay of tau steps.

    tau: integer >= 0; 0 is bit-identical to the base. form: one of FORMS. coefficient: c, a number >= 0; None: the
    form's own. state_dtype: of the kept updates; None: of the weights they are measured on, which are full-precision
    copies where weights are half (master_dtype).
    A parameter whose gradient is None at a step has U = 0 there; one that never had a gradient has no history yet, and
    its own first update is plain.
    The parameters' storage may be replaced between steps: nothing of it is kept.
    A delay line goes around it, not into it: Delayed(ErrorFeedback(base, tau), tau).
    Raises InputError, naming the field, for a bad value, and for a base that is a Delayed.
    """

    KEY = "error_feedback"

    def __init__(
        self,
        base_optimizer: Optimizer,
        tau: int = 1,
        form: str = "extrapolate",
        coefficient: float | None = None,
        *,
        state_dtype: torch.dtype | None = None,
        master_dtype: torch.dtype | None = torch.float32,
        skip_nonfinite: bool = False,
    ) -> None:
        if form not in FORMS:
            raise InputError(f"form: {form!r}; allowed are {', '.join(FORMS)}")
        if state_dtype is not None and state_dtype not in STATE_DTYPES:
            raise InputError(f"state_dtype: {state_dtype}; allowed are None, {', '.join(map(str, STATE_DTYPES))}")
        self.tau = check_tau(tau)
        self.form = form
        self._coefficient = None if coefficient is None else check_number("coefficient", coefficient)
        self.state_dtype = state_dtype
        super().__init__(base_optimizer, skip_nonfinite, master_dtype)
        # parameter -> the last updates, oldest first: U_{k-lag}, ..., U_{k-1}
        self.history: dict[Tensor, list[Tensor]] = {}

    @property
    def coefficient(self) -> float:
        """c of the correction."""
        if self._coefficient is not None:
            return self._coefficient
        return float(self.tau if self.form == "extrapolate" else 1)

    @property
    def lag(self) -> int:
        """How many updates back the correction reaches."""
        return 1 if self.form == "extrapolate" else self.tau

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "form", "_coefficient", "state_dtype", "history"]

    @property
    def acts(self) -> bool:
        return self.tau > 0

    def _advance(self) -> None:
        """One update of the base optimizer, then the correction."""
        moving = [p for p in parameters_of(self) if p.grad is not None or p in self.history]
        before = [p.detach().clone() for p in moving]
        self.base.step()
        for p, old in zip(moving, before, strict=True):
            history = self.history.get(p)
            if history is None:  # U_{-1} = ... = U_{-lag} = U_0: the correction is zero
                self.history[p] = [self._kept(torch.sub(p.detach(), old, out=old))] * self.lag
            else:
                oldest = history[0].to(old.dtype)
                _correct(p.detach(), old, oldest if self.lag == 1 else oldest.clone(), self.coefficient)
                self.history[p] = [*history[1:], self._kept(old)]

    def _kept(self, U: Tensor) -> Tensor:
        return U if self.state_dtype is None else U.to(self.state_dtype)

    @torch.no_grad()
    def virtual_parameters(self) -> list[Tensor]:
        """y_k in the order of the parameters: the point whose path is the uncorrected recursion y + U.

        In full precision where weights are half. x itself for a parameter that had no update yet, and for tau = 0.
        """
        virtual = []
        with self.newest_weights():
            for p in parameters_of(self):
                y = self._full(p).detach().clone()
                for U in self.history.get(p, []):
                    y -= self.coefficient * U.to(y.dtype)
                virtual.append(y)
        return virtual

    def _settings(self) -> dict[str, Any]:
        settings = {"tau": self.tau, "form": self.form, "coefficient": self.coefficient}
        return settings | {"state_dtype": str(self.state_dtype)}

    def _own_state(self) -> dict[str, Any]:
        return {"history": self._by_number(self.history)}

    def _load_own_state(self, own: dict[str, Any]) -> None:
        self.history = self._by_parameter(own["history"])


def _correct(x: Tensor, old: Tensor, earlier: Tensor, c: float) -> None:
    """x + c ((x - old) - earlier) into x, x - old into ``old``; ``earlier`` is used up.

    The order of these operations is fixed: an independent implementation has to match bit for bit.
    """
    U = torch.sub(x, old, out=old)
    correction = torch.sub(U, earlier, out=earlier)
    if c != 1:
        correction.mul_(c)
    x.add_(correction)
