"""ErrorFeedback: any torch optimizer, with the update-level correction for a gradient delay of tau steps.

With U_k the update the optimizer would apply at step k (learning rate and decoupled decay included),
    x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}).
Two forms, equal at tau = 1 and different methods beyond:
    extrapolate   c = tau, lag = 1      y_k = x_k - tau U_{k-1}                  one buffer
    telescoped    c = 1,   lag = tau    y_k = x_k - sum_{i=1..tau} U_{k-i}       tau buffers
A missing U_j (j < 0) is U_0, so the first real update is plain and the correction starts with the second.
The identity y_{k+1} = y_k + U_k holds for any optimizer, for k >= 1; y_1 = x_0 - (tau-1) U_0.
Moments advance once per gradient, and an old update is never rescaled.

Source: arXiv 2606.30634 (error feedback, tau = 1, coefficient 1); the two forms for tau > 1 are derived here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.delayed import Delayed
from pipeline.optim.wrapper import Wrapper, check_tau, parameters_of

FORMS = ("extrapolate", "telescoped")


class ErrorFeedback(Wrapper):
    """`base_optimizer` with error feedback for a delay of tau steps.

    tau: integer >= 0; 0 is bit-identical to the base. form: one of FORMS.
    A parameter whose gradient is None at a step has U = 0 there; one that never had a gradient has no history
    yet, and its own first update is plain.
    The parameters' storage may be replaced between steps: nothing of it is kept.
    A delay line goes around it, not into it: Delayed(ErrorFeedback(base, tau), tau).
    Raises InputError for a bad tau or form, and for a base that is a Delayed.
    """

    KEY = "error_feedback"

    def __init__(
        self, base_optimizer: Optimizer, tau: int = 1, form: str = "extrapolate", skip_nonfinite: bool = False
    ) -> None:
        if form not in FORMS:
            raise InputError(f"form: {form!r}; allowed are {', '.join(FORMS)}")
        tau = check_tau(tau)
        if isinstance(base_optimizer, Delayed):
            raise InputError("base_optimizer: a Delayed; allowed is Delayed(ErrorFeedback(base, tau), tau)")
        super().__init__(base_optimizer, skip_nonfinite)
        self.tau = tau
        self.form = form
        # parameter -> the last updates, oldest first: U_{k-lag}, ..., U_{k-1}
        self.history: dict[Tensor, list[Tensor]] = {}

    @property
    def coefficient(self) -> int:
        """c of the correction."""
        return self.tau if self.form == "extrapolate" else 1

    @property
    def lag(self) -> int:
        """How many updates back the correction reaches."""
        return 1 if self.form == "extrapolate" else self.tau

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "form", "history"]

    def _advance(self) -> None:
        """One update of the base optimizer, then the correction."""
        c, lag = self.coefficient, self.lag
        before = [(p, p.detach().clone()) for p in parameters_of(self) if p.grad is not None or p in self.history]
        self.base.step()
        for p, old in before:
            new = p.detach()
            U = new - old
            history = self.history.get(p)
            if history is None:  # U_{-1} = ... = U_{-lag} = U_0: the correction is zero
                self.history[p] = [U] * lag
                continue
            # The order of these operations is fixed: an independent implementation has to match bit for bit.
            correction = U - history[0]
            if c != 1:
                correction = correction * c
            p.copy_(new + correction)
            self.history[p] = [*history[1:], U]

    @torch.no_grad()
    def virtual_parameters(self) -> list[Tensor]:
        """y_k in the order of the parameters: the point whose path is the uncorrected recursion y + U.

        x itself for a parameter that had no update yet, and for tau = 0.
        """
        virtual = []
        for p in parameters_of(self):
            y = p.detach().clone()
            updates = self.history.get(p, [])
            if self.form == "extrapolate":
                for U in updates:
                    y = y - self.tau * U
            else:
                for U in updates:
                    y = y - U
            virtual.append(y)
        return virtual

    def _own_state(self) -> dict[str, Any]:
        number = {p: i for i, p in enumerate(parameters_of(self))}
        history = {number[p]: [U.clone() for U in updates] for p, updates in self.history.items()}
        return {"tau": self.tau, "form": self.form, "history": history}

    def _check_own_state(self, own: dict[str, Any]) -> None:
        if own["tau"] != self.tau:
            raise InputError(f"tau: saved with {own['tau']}, this one has {self.tau}")
        if own["form"] != self.form:
            raise InputError(f"form: saved with {own['form']!r}, this one has {self.form!r}")

    def _load_own_state(self, own: dict[str, Any]) -> None:
        parameters = list(parameters_of(self))
        self.history = {
            parameters[i]: [U.detach().to(device=parameters[i].device, copy=True) for U in updates]
            for i, updates in own["history"].items()
        }
