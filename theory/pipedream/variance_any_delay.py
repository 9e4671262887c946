"""Randomized PipeDream C: bounded variance, delays that may depend on the past. Kind: upper bound.

Statement, sigma fixed for the whole gradient, if gamma L + gamma^2 L^2 delta^2/S <= 1:
    (1/K) sum_{k<K} E||grad f(x_k)||^2 <= 2 S Delta0/(gamma K) + gamma L sigma^2 + gamma^2 L^2 delta^2 sigma^2/S.
No bound on gradients.

Proof: `parts` with E||G_k||^2 <= (||grad f(z_k)||^2 + sigma^2)/S. ||x_k - z_k||^2 <= gamma^2 delta sum_j ||G_j||^2 over
the window, and a step j is in at most delta windows, so
    mean||x - z||^2 <= gamma^2 (delta^2/S) (mean||grad f(z)||^2 + sigma^2).
The factor of mean||grad f(z)||^2 is gamma L + gamma^2 L^2 delta^2/S - 1 <= 0.
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Le

from theory.bound import Bound
from theory.pipedream.parts import INITIAL, METRIC, NOISE, STALE, UNIT, VARIANCE, L, S, delta_max, gamma, sigma

BOUND = Bound(
    name="rpd-c",
    title="Randomized PipeDream C: bounded variance, any delays",
    terms={"initial": INITIAL, "noise": NOISE, "delay": STALE * delta_max**2 * sigma**2 / S},
    metric=METRIC,
    unit=UNIT,
    assumptions=VARIANCE,
    conditions=(Le(gamma * L + STALE * delta_max**2 / S, 1),),
    reference="derived here, C",
)
