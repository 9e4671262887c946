"""Randomized PipeDream D: bounded variance, delays independent of the draws. Kind: upper bound.

Statement, sigma fixed for the whole gradient, for every theta > 0 with
    gamma L + gamma^2 L^2 [(1+theta) delta^2 + (1+1/theta) delta (S-1)]/S^2 <= 1:
    (1/K) sum_{k<K} E||grad f(x_k)||^2
    <= 2 S Delta0/(gamma K) + gamma L sigma^2 + (1+1/theta) gamma^2 L^2 delta sigma^2/S       (rpd-d-split),
and theta = 1 (rpd-d). Tuned, S^4/K becomes S^2/K; with theta large, which small steps allow, at half the constant.

Proof: in the window block s of G_j is grad_s f(z_j)/S (drift) plus a martingale difference, since neither window nor
z_j depends on the draw of step j. |u + v|^2 <= (1+theta)|u|^2 + (1+1/theta)|v|^2. Drift: Cauchy-Schwarz,
(delta/S^2) sum_j ||grad f(z_j)||^2, each j in at most delta windows. Martingale: differences are orthogonal, and
E_j||G_j - grad f(z_j)/S||^2 <= (1/S - 1/S^2)||grad f(z_j)||^2 + sigma^2/S. The factor of mean||grad f(z)||^2 is the
left side of the condition minus 1.
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Expr, Integer, Le

from theory.bound import Bound
from theory.pipedream.parts import (
    INITIAL,
    METRIC,
    NOISE,
    STALE,
    UNIT,
    VARIANCE,
    L,
    S,
    delta_max,
    gamma,
    sigma,
    theta,
)


def _bound(name: str, title: str, split: Expr) -> Bound:
    drift, martingale = delta_max**2 / S**2, delta_max * (S - 1) / S**2
    return Bound(
        name=name,
        title=title,
        terms={
            "initial": INITIAL,
            "noise": NOISE,
            "delay": (1 + 1 / split) * STALE * delta_max * sigma**2 / S,
        },
        metric=METRIC,
        unit=UNIT,
        assumptions=(*VARIANCE, "independent-delay"),
        conditions=(Le(gamma * L + STALE * ((1 + split) * drift + (1 + 1 / split) * martingale), 1),),
        reference="derived here, D",
    )


BOUND = _bound("rpd-d", "Randomized PipeDream D: bounded variance, independent delays", Integer(1))
SPLIT = _bound("rpd-d-split", "Randomized PipeDream D, free split: drift against noise", theta)
