"""Delayed: any torch optimizer fed with gradients that are tau optimizer steps old.

A pure delay line for gradients. Calls of step() are numbered n = 0, 1, ...: call n stores the gradient it is
given, and from n = tau on applies the one stored at call n - tau. The first tau calls only fill the line and
leave the weights alone. Update number k (k = n - tau) therefore uses the gradient of call k, which was
taken at x_{(k-tau)+} with a sample of its own: exactly g(x_{(k-tau)+}; xi_k) of the delayed method, start-up
included.
Weight decay acts once per applied update, not per stored gradient.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from pipeline.errors import InputError
from pipeline.optim.wrapper import Wrapper, check_tau, parameters_of


class Delayed(Wrapper):
    """`base`, applied to the gradient of tau calls ago.

    base: any torch optimizer, an ErrorFeedback included: Delayed(ErrorFeedback(base, tau), tau).
    tau: delay in optimizer steps, integer >= 0; tau = 0 is bit-identical to `base`.
    After step() the parameters' .grad are the fresh gradients again, never the stored ones.
    A parameter without gradient at a call is left alone by the update that belongs to that call.
    Raises InputError for a bad tau.
    """

    KEY = "delayed"

    def __init__(self, base: Optimizer, tau: int, skip_nonfinite: bool = False) -> None:
        tau = check_tau(tau)
        super().__init__(base, skip_nonfinite)
        self.tau = tau
        # One entry a call: parameter -> its gradient (a copy). At most tau entries between calls.
        self.queue: deque[dict[Tensor, Tensor]] = deque()

    def _attributes(self) -> list[str]:
        return [*super()._attributes(), "tau", "queue"]

    def _advance(self) -> None:
        """Store the fresh gradients; apply the ones of tau calls ago."""
        parameters = list(parameters_of(self))
        fresh = [p.grad for p in parameters]
        self.queue.append({p: g.detach().clone() for p, g in zip(parameters, fresh, strict=True) if g is not None})
        if len(self.queue) <= self.tau:
            return
        stale = self.queue.popleft()
        for p in parameters:
            p.grad = stale.get(p)
        try:
            self.base.step()
        finally:
            for p, g in zip(parameters, fresh, strict=True):
                p.grad = g

    def _own_state(self) -> dict[str, Any]:
        number = {p: i for i, p in enumerate(parameters_of(self))}
        queue = [{number[p]: g.clone() for p, g in entry.items()} for entry in self.queue]
        return {"tau": self.tau, "queue": queue}

    def _check_own_state(self, own: dict[str, Any]) -> None:
        if own["tau"] != self.tau:
            raise InputError(f"tau: saved with {own['tau']}, this one has {self.tau}")

    def _load_own_state(self, own: dict[str, Any]) -> None:
        parameters = list(parameters_of(self))
        self.queue = deque(
            {parameters[i]: g.detach().to(device=parameters[i].device, copy=True) for i, g in entry.items()}
            for entry in own["queue"]
        )
