"""Randomized PipeDream A: second moment of the whole gradient, any stepsize. Kind: upper bound.

Statement, B fixed for the whole gradient, any gamma: (1/K) sum_{k<K} E||grad f(x_k)||^2
    <= 2 S Delta0/(gamma K) + gamma L B^2 + gamma^2 L^2 delta^2 B^2/S                              (rpd-a)
and, if the delays are independent of the draws, with the last term either of
    gamma^2 L^2 B^2 (delta/S + delta (delta-1)/S^{3/2})                                    (rpd-a-independent),
    gamma^2 L^2 B^2 (delta + sqrt(delta (S-1)))^2/S^2                                      (rpd-a-drift).
B^2 = S G^2 turns the first into the paper's: `rpd-paper` never needed more than this.

Proof: E||G_k||^2 = E||g||^2/S <= B^2/S. First: Cauchy-Schwarz over at most delta terms in each block,
||z - x||^2 <= gamma^2 delta sum_j ||G_j||^2, also where delays depend on the past. Second: the window is fixed, so for
i < j in it, given everything before the draw s_j, block s_i is drawn again with probability 1/S:
    E<G_i, G_j> = E<G_i, grad_{s_i} f(z_j)>/S <= (1/S) sqrt(E||G_i||^2) sqrt(E||grad f(z_j)||^2) <= B^2/S^{3/2},
and windows that differ between blocks only drop terms. Third: w_j, the first j updates of the windows in order, has
    E||w_j||^2 <= E||w_{j-1}||^2 + 2 (B/S) E||w_{j-1}|| + B^2/S,
so q_j^2 = E||w_j||^2 obeys q_j^2 <= (q_{j-1} + B/S)^2 + (S-1) B^2/S^2, by induction q_j <= (B/S)(j + sqrt(j (S-1))).
For delta = S^2 the term grows like gamma^2 B^2 times S^3, S^{5/2}, S^2. The second is never larger than the first; the
third is the smallest where delta is large against S.
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import sqrt

from theory.bound import Bound
from theory.pipedream.parts import INITIAL, METRIC, MOMENT_STEP, MOMENTS, STALE, UNIT, B, S, delta_max

BOUND = Bound(
    name="rpd-a",
    title="Randomized PipeDream A: second moment of the whole gradient, any stepsize",
    terms={"initial": INITIAL, "step": MOMENT_STEP, "delay": STALE * delta_max**2 * B**2 / S},
    metric=METRIC,
    unit=UNIT,
    assumptions=MOMENTS,
    reference="derived here, A",
)

INDEPENDENT = Bound(
    name="rpd-a-independent",
    title="Randomized PipeDream A, fixed windows: delays independent of the draws",
    terms={
        **BOUND.terms,
        "delay": STALE * B**2 * (delta_max / S + delta_max * (delta_max - 1) / (S * sqrt(S))),
    },
    metric=METRIC,
    unit=UNIT,
    assumptions=(*MOMENTS, "independent-delay"),
    reference="derived here, A with fixed windows",
)

DRIFT = Bound(
    name="rpd-a-drift",
    title="Randomized PipeDream A, drift and martingale: delays independent of the draws and long",
    terms={**BOUND.terms, "delay": STALE * B**2 * (delta_max + sqrt(delta_max * (S - 1))) ** 2 / S**2},
    metric=METRIC,
    unit=UNIT,
    assumptions=INDEPENDENT.assumptions,
    reference="derived here, A with fixed windows as drift and martingale",
)
