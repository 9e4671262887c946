"""LocalSGD with S replicas, at the averaged model: as reported, and with the drift counted. Kind: upper bound.

S replicas of an S-stage model; a step of all of them is S^2 block updates, so K block updates are T = floor(K/S^2)
whole steps and rows compare with Randomized PipeDream at the same K. xbar_t is the average of the replicas.
Statement, B and sigma of one replica's whole gradient, gamma <= 1/L, every K >= 1:
    (S^2/K) sum_{t<T} E||grad f(xbar_t)||^2
    <= 2 S^2 Delta0/(gamma K) + L gamma sigma^2/S + 4 gamma^2 H^2 B^2 L^2               (local-sgd, as reported);
the last term is in fact at most gamma^2 L^2 B^2 (H-1)(2H-1)/6                          (local-sgd-counted),
less than a twelfth of it, and nothing at H = 1, where LocalSGD is SGD on S samples.

Proof: gbar the average of the S gradients, mean(.) over replicas r, h < H steps since the last average:
    E f(xbar - gamma gbar) <= f(xbar) - (gamma/2)||grad f(xbar)||^2 - (gamma/2)(1 - gamma L)||mean grad f(x_r)||^2
                              + (gamma/2) L^2 mean||xbar - x_r||^2 + gamma^2 L sigma^2/(2S).
mean||xbar - x_r||^2 <= mean||x_r - xbar_last||^2, as a mean minimises squares, and x_r is h gradients away from
xbar_last: in expectation at most gamma^2 h^2 B^2; the average of h^2 over h < H is (H-1)(2H-1)/6, over
an unfinished round less. Summed over the T steps, and T S^2/K <= 1: where S^2 does not divide K, the left
counts whole steps only.
Reference: Yu, Yang and Zhu 2019 (arXiv 1807.06629), Theorem 1, for the first. Checked by
tests/theory/test_delayed_sgd_runs.py, test_local_sgd_proofs.py and test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Le

from theory.bound import Bound
from theory.pipedream.parts import STALE, UNIT, B, Delta0, K, L, S, gamma, sigma
from theory.symbols import symbols

(H,) = symbols("H")

BOUND = Bound(
    name="local-sgd",
    title="LocalSGD, as reported: S replicas, second moment",
    terms={
        "initial": 2 * S**2 * Delta0 / (gamma * K),
        "drift": 4 * STALE * H**2 * B**2,
        "noise": L * gamma * sigma**2 / S,
    },
    metric=r"\frac{S^2}{K} \sum_{t<\lfloor K/S^2 \rfloor} \mathbb{E} \|\nabla f(\bar{x}_t)\|^2",
    unit=UNIT,
    assumptions=(
        "euclidean",
        "smoothness",
        "lower-bound",
        "local-sgd",
        "unbiased",
        "independent-batch",
        "variance",
        "second-moment",
    ),
    conditions=(Le(gamma * L, 1),),
    origin="as reported",
    reference="Yu, Yang and Zhu 2019 (arXiv 1807.06629), Theorem 1",
)

COUNTED = Bound(
    name="local-sgd-counted",
    title="LocalSGD, counted: steps since the last average",
    terms={**BOUND.terms, "drift": STALE * B**2 * (H - 1) * (2 * H - 1) / 6},
    metric=BOUND.metric,
    unit=UNIT,
    assumptions=BOUND.assumptions,
    conditions=BOUND.conditions,
    reference="derived here; the rest as in Yu, Yang and Zhu 2019 (arXiv 1807.06629), Theorem 1",
)
