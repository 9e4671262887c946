"""Randomized PipeDream B: the paper's assumptions, a window counted as it is drawn. Kind: upper bound.

Statement, G fixed per stage's block, any gamma, delays independent of the draws:
    (1/K) sum_{k<K} E||grad f(x_k)||^2
    <= 2 S Delta0/(gamma K) + gamma S L G^2 + gamma^2 L^2 G^2 (delta^2/S + delta (1 - 1/S)):
the last term is Theta(gamma^2 S^3) for delta = S^2, not the Theta(gamma^2 S^4) of `paper`.

Proof: E||x_k - z_k||^2 in `parts`. The number of draws of block s in a window of delta_s steps is binomial with
probability 1/S: E N_s = delta_s/S, E N_s^2 = delta_s^2/S^2 + delta_s (1/S)(1 - 1/S). A bound on second moments is
enough: for i < j in the window E<G_i, G_j> <= E||G_i|| ||grad_{s_i} f(z_j)||/S <= G^2/S, so block s contributes at most
gamma^2 G^2 E N_s^2 (`window_moment`); sum over the blocks, delta_s <= delta. Equality when all block gradients are the
same vector: the constant of the window cannot be smaller.
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from theory.bound import Bound
from theory.pipedream.parts import BLOCK_STEP, BLOCKS, INITIAL, METRIC, STALE, UNIT, G, S, delta_max

BOUND = Bound(
    name="rpd-b",
    title="Randomized PipeDream B: bounded blocks, updates in the window counted",
    terms={
        "initial": INITIAL,
        "step": BLOCK_STEP,
        "delay": STALE * G**2 * (delta_max**2 / S + delta_max * (1 - 1 / S)),
    },
    metric=METRIC,
    unit=UNIT,
    assumptions=(*BLOCKS, "independent-delay"),
    reference="derived here, B",
)


def window_moment(delays: Sequence[int]) -> Fraction:
    """sum_s E N_s^2 for one delay per block: what E||x - z||^2/(gamma G)^2 is at most. One delay for all gives the
    bracket of the theorem; the delays of a schedule give less.
    """
    stages = len(delays)
    return sum((Fraction(d * d + d * (stages - 1), stages * stages) for d in delays), Fraction(0))
