"""What one unit of gradient noise does to a real run: the impulse response, exact moments without sampling.

On f = lam x^2/2 a linear optimizer turns gradient noise into weights by a fixed sequence r_i: x_k = s sum r_i xi_{k-i}
in a run that has forgotten its start. So the stationary variance is s^2 sum r_i^2, without a statistical error.
To get r, the real code starts at x = 0, makes some steps on the gradient 0 (every history exists then, and is zero),
sees one gradient that is 1 too large, and goes on. One parameter holds many curvatures: with lr = 1, h = eta lam = lam.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from empirics.errors import InputError
from pipeline.optim.delayed import Delayed

#: Steps on the gradient 0 before the impulse, beyond the delay: more than any memory here is long.
QUIET = 8


@dataclass(frozen=True)
class Impulse:
    """Response r [steps, modes] to one unit of noise, at curvatures h [modes] and lr = 1; r_0 is the first nonzero."""

    h: np.ndarray
    response: np.ndarray

    def variance(self) -> np.ndarray:
        """sum r_i^2 over the recorded steps: the stationary variance for s = 1, eta = 1, lam = h."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((self.response**2).sum(axis=0))

    def truncation(self) -> np.ndarray:
        """Share of the variance beyond the recorded steps, from the energies E3, E4 of the last two quarters:
        E4 q/(1-q), q = E4/E3, exact for one decaying mode; inf where nothing decays.
        """
        quarter = len(self.response) // 4
        blocks = [self.response[len(self.response) - (i + 1) * quarter :][:quarter] for i in range(2)]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            last, before = ((block**2).sum(axis=0) for block in blocks)
            ratio = np.where(last == 0, 0.0, last / before)
            share = last * ratio / (1 - ratio) / self.variance()
        return np.where(ratio < 1, share, np.inf)

    def growth(self) -> np.ndarray:
        """Growth per step at the end of the run, see `growth_per_step`."""
        return growth_per_step(self.response)

    def error(self, variance: np.ndarray) -> float:
        """Largest |sum r_i^2 / variance - 1| over the modes; inf where a run left float64."""
        with np.errstate(invalid="ignore"):
            error = float(np.max(np.abs(self.variance() / variance - 1)))
        return error if np.isfinite(error) else float("inf")


def growth_per_step(path: np.ndarray) -> np.ndarray:
    """Modulus of the slowest mode of a linear path [steps, modes], from its last quarter; inf where it left float64.

    There x_{k+1} = a x_k + b x_{k-1} is fitted: exact once at most one pair of modes is left, also for a pair that
    oscillates. 0 for a path that has come to rest at 0.
    """
    end = path[-max(len(path) // 4, 4) :]
    growth = np.empty(path.shape[1])
    for mode, x in enumerate(end.T):
        size = np.abs(x).max()
        if not np.isfinite(size) or size == 0:
            growth[mode] = 0.0 if size == 0 else np.inf
            continue
        x = x / size
        a, b = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)[0]
        growth[mode] = np.abs(np.roots([1.0, -a, -b])).max()
    return growth


def impulse(
    make: Callable[[list[nn.Parameter]], Delayed],
    h: list[float] | np.ndarray,
    steps: int,
    watch: Callable[[Delayed], list[Tensor]] = Delayed.newest,
) -> Impulse:
    """Run the real code with one impulse and record `steps` weights.

    make: the optimizer for a parameter of shape [1, modes], with lr = 1. watch: what is recorded after each step;
    `Delayed.virtual_parameters` for the path under a correction.
    Raises InputError for h that are not all positive, and for steps < 8.
    """
    lam = np.asarray(h, dtype=np.float64)
    if lam.ndim != 1 or not len(lam) or not np.all(np.isfinite(lam) & (lam > 0)):
        raise InputError(f"h: {h!r}; allowed is a non-empty list of numbers > 0")
    if steps < 8:
        raise InputError(f"steps: {steps!r}; allowed is an integer >= 8")
    p = nn.Parameter(torch.zeros(1, len(lam), dtype=torch.float64))
    optimizer = make([p])
    curvature = torch.from_numpy(lam)
    path = np.empty((steps, len(lam)))
    quiet = optimizer.tau + QUIET
    for k in range(-quiet, steps):
        p.grad = p.detach() * curvature
        if k == 0:
            p.grad += 1.0
        optimizer.step()
        if k >= 0:
            path[k] = watch(optimizer)[0].detach().numpy()[0]
    return Impulse(lam, path)
