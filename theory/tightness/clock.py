"""From the method's own start to a periodic orbit: one more coordinate that counts the steps. Kind: exact, with limits.

Lemma. Let a periodic orbit (theory.tightness.periodic) with gradient norms C L eta exist in a norm |w|, tau any. Then
in the norm max(|w|, |t|), whose dual is the sum, the method as it is defined (all of the first tau + 1 gradients at
x_0) has averages -> C L eta (1 - o(1)) on functions with L <= 1 + o(1), bounded below. For sign descent and for the
operator norm this is the same norm in one more dimension, so their constants hold from the method's own start; for l_1
it is the norm of two layers.

Proof (eta = 1, H with L = 1): f(w, t) = chi(t) w'Hw/2 + A(t) p(t)'w - S(t).
 1. S' exceeds |chi' w'Hw/2 + ((A p)')'w| on the run, so df/dt < 0 and t_k = k: t is a clock.
 2. p(0) and p(k), k >= 1, have as LMO directions the step d that the orbit begins with and then the orbit's next steps,
    tau steps early; w_0 = O_0 + (tau+1) d. While chi = 0 the run follows p, however small A > 0 is: a step of an LMO
    method does not depend on the size of a gradient. So w_{tau+1+j} = O_j.
 3. On the orbit chi H w has the same LMO directions as p (for l_inf coordinatewise, zeros included), so turning chi on
    over T steps changes no step, and p decides the ties.
 4. L <= 1 + 2 sup dn(chi' H w + (A p)') + sup|f_tt|: chi', chi'' = O(1/T), A = eps/(1+t)^2; S' = O(1/T) on the ramp and
    O(eps/(1+t)^2) later, so S is bounded. In w the cut-off of `coordinate_orbit` bounds f; it works in any norm.
`clocked_run` makes that run, exact in w; `excess_smoothness` is the bound of 4 on the run. Checked by
tests/theory/tightness/test_clock.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from theory.errors import InputError
from theory.tightness.lattice import check_natural
from theory.tightness.periodic import PeriodicOrbit


@dataclass(frozen=True)
class ClockedRun:
    """w: (steps + 1, n); norms: dn of the w-part of the gradient over L eta, (steps,), at most that of the gradient;
    excess_smoothness: L <= 1 + this on the run.
    """

    w: np.ndarray
    norms: np.ndarray
    excess_smoothness: float


def clocked_run(orbit: PeriodicOrbit, ramp: int, forcing: float, steps: int) -> ClockedRun:
    """The run of the proof. ramp: T; forcing: eps. Raises InputError for numbers that are no counts or not > 0."""
    for name, value in (("ramp", ramp), ("steps", steps)):
        check_natural(name, value, 1)
    if not 0 < forcing < 1:
        raise InputError(f"forcing={forcing!r} is not allowed: forcing must be a number in (0, 1)")
    tau, period = orbit.tau, len(orbit.points)
    H = np.array(orbit.H, dtype=float) / float(orbit.smoothness)
    moves = np.array([orbit.step(k) for k in range(period)], dtype=float)

    def force(t: int) -> np.ndarray:  # A(t) p(t): its LMO step is what the orbit does tau steps later
        return np.asarray(-forcing / (1 + t) ** 2 * moves[max(t - 1, 0) % period])

    def turned_on(t: int) -> float:  # chi, a smooth step from 0 at tau + 1 to 1 at tau + 1 + ramp
        s = min(max((t - tau - 1) / ramp, 0.0), 1.0)
        return 2 * s * s if s <= 0.5 else 1 - 2 * (1 - s) ** 2

    w = [np.array(orbit.points[0], dtype=float) - (tau + 1) * moves[0]]
    gradients = []
    for k in range(steps):
        gradients.append(turned_on(k) * H @ w[k] + force(k))
        w.append(w[k] + _lmo_step(orbit.norm, gradients[max(k - tau, 0)]))
    norms = np.array([float(orbit.dual_norm(list(g))) for g in gradients])
    size = max(float(orbit.dual_norm(list(H @ v))) for v in w)
    # cubic steps between the integers: |p'| <= 3, |p''| <= 12 for entries +-1; A' >= -2 eps, A'' <= 6 eps
    change = 2 / ramp * size + 5 * forcing * float(orbit.dual_norm(list(np.ones(len(H)))))  # |chi'| <= 2/T, |(A p)'|
    reach = max(float(np.abs(v).sum()) for v in w)
    curvature = 4 / ramp**2 * size * reach + 30 * forcing * reach  # |chi''| <= 4/T^2, |(A p)''|; S'' the same
    return ClockedRun(np.array(w), norms, 2 * change + 2 * curvature)


def _lmo_step(norm: str, gradient: np.ndarray) -> np.ndarray:
    if norm == "l_inf":
        return -np.sign(gradient)
    largest = int(np.argmax(np.abs(gradient)))
    step = np.zeros(len(gradient))
    step[largest] = -np.sign(gradient[largest])
    return step
