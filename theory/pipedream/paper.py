"""Randomized PipeDream as reported, Theorem 4.1 of arXiv 2606.03498. Kind: upper bound; as reported.

Statement, gamma <= 1/L, G fixed per stage's block: (1/K) sum_{k<K} E||grad f(x_k)||^2
    <= 2 S Delta0/(gamma K) + gamma S L G^2 + gamma^2 L^2 delta^2 G^2.

Proof: `parts`, without -mean||grad f(z)||^2. The blocks of z - x are orthogonal, so with N_s <= delta draws of block s
in the window ||z - x||^2 <= gamma^2 (sum_j ||G_j||)^2 over at most delta steps, and E of it is at most
gamma^2 delta^2 G^2. gamma <= 1/L is not used. With delta = S^2 - S/2 the last term is Theta(gamma^2 S^4); most of it is
slack, for a block is drawn delta/S and not delta times in a window: `blocks`.
Checked by tests/theory/test_pipedream_runs.py (every path of small runs) and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Le

from theory.bound import Bound
from theory.pipedream.parts import BLOCK_STEP, BLOCKS, INITIAL, METRIC, PAPER, STALE, UNIT, G, L, delta_max, gamma

BOUND = Bound(
    name="rpd-paper",
    title="Theorem 4.1 of arXiv 2606.03498, as reported: Randomized PipeDream",
    terms={"initial": INITIAL, "step": BLOCK_STEP, "delay": STALE * delta_max**2 * G**2},
    metric=METRIC,
    unit=UNIT,
    assumptions=BLOCKS,
    conditions=(Le(gamma * L, 1),),
    origin="as reported",
    reference=PAPER,
)
