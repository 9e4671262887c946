"""Randomized PipeDream under the Polyak-Lojasiewicz inequality. Kind: upper bound.

Statement, G fixed per stage's block, mu gamma <= S:
    E[f(x_K) - f_*] <= (1 - mu gamma/S)^K Delta0 + S L gamma G^2/(2 mu) + L^2 gamma^2 delta^2 G^2/(2 mu)   (rpd-pl),
and with delays independent of the draws and the finite geometric sum kept                              (rpd-pl-b)
    (1 - q^K) [ S L gamma G^2 + L^2 gamma^2 G^2 (delta^2/S + delta (1 - 1/S)) ]/(2 mu),  q = 1 - mu gamma/S.

Proof: the descent of `parts` without -||grad f(z_k)||^2, with ||grad f(x_k)||^2 >= 2 mu (f(x_k) - f_*):
    E f(x_{k+1}) - f_* <= q (f(x_k) - f_*) + (gamma L^2/2S) E||x_k - z_k||^2 + (gamma^2 L/2) G^2,
the window of `paper` or of `blocks`, and sum_{k<K} q^k = (1 - q^K) S/(mu gamma).
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Le

from theory.bound import Bound
from theory.pipedream.parts import BLOCKS, PAPER, STALE, Delta0, G, K, L, S, delta_max, gamma, mu

_CONTRACTION = (1 - mu * gamma / S) ** K
_STEP = S * L * gamma * G**2 / (2 * mu)
_STALE = STALE * G**2 / (2 * mu)

BOUND = Bound(
    name="rpd-pl",
    title="Randomized PipeDream PL: objectives with the Polyak-Lojasiewicz inequality",
    terms={"initial": _CONTRACTION * Delta0, "step": _STEP, "delay": _STALE * delta_max**2},
    metric=r"\mathbb{E} f(x_K) - f_*",
    unit="f",
    assumptions=(*(name for name in BLOCKS if name != "lower-bound"), "pl"),
    conditions=(Le(mu * gamma, S),),
    reference=f"derived here, from the steps of {PAPER}",
)

COUNTED = Bound(
    name="rpd-pl-b",
    title="Randomized PipeDream PL, B: Polyak-Lojasiewicz, updates in the window counted",
    terms={
        "initial": _CONTRACTION * Delta0,
        "step": (1 - _CONTRACTION) * _STEP,
        "delay": (1 - _CONTRACTION) * _STALE * (delta_max**2 / S + delta_max * (1 - 1 / S)),
    },
    metric=BOUND.metric,
    unit="f",
    assumptions=(*BOUND.assumptions, "independent-delay"),
    conditions=BOUND.conditions,
    reference="derived here, B under the Polyak-Lojasiewicz inequality",
)
