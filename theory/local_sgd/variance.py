"""LocalSGD with S replicas of one objective: only the noise drives them apart. Kind: upper bound.

Set-up of `averaged`, sigma of one replica's whole gradient, no bound on gradients. Statement, gamma <= 1/L:
    (S^2/K) sum_{t<floor(K/S^2)} E||grad f(xbar_t)||^2 <= 2 S^2 Delta0/(gamma K) + L gamma sigma^2/S
        + gamma^2 L^2 sigma^2 (1 - 1/S) ((H-1)/2) (1 + gamma L)^{2(H-2)}:
linear in H as long as gamma L H is small, where the reported term is quadratic.

Proof: the descent of `averaged`. V_h = mean_r E||x_r - xbar||^2, h steps after an average, n_r the noises:
    x_r^+ - xbar^+ = (x_r - xbar) - gamma (grad f(x_r) - mean grad f) - gamma (n_r - nbar).
The noises have mean 0 given the past and mean_r E||n_r - nbar||^2 <= (1 - 1/S) sigma^2. The rest is at most
(1 + gamma L)^2 V_h: mean_r||grad f(x_r) - mean grad f||^2 <= mean_r||grad f(x_r) - grad f(xbar)||^2 <= L^2 V_h, and
Minkowski. V_0 = 0, so V_h <= gamma^2 (1 - 1/S) sigma^2 sum_{i<h} (1 + gamma L)^{2i}, and the sum is
at most h (1 + gamma L)^{2(H-2)} as h < H; the average of h is (H-1)/2, over an unfinished round less.
That equal data makes the drift a matter of noise is known (Stich and Karimireddy 2020, arXiv 1909.05350, among others).
Checked by tests/theory/test_delayed_sgd_runs.py, test_local_sgd_proofs.py and test_pipedream_bounds.py.
"""

from __future__ import annotations

from theory.bound import Bound
from theory.local_sgd import averaged
from theory.pipedream.parts import STALE, L, S, gamma, sigma
from theory.symbols import symbols

(H,) = symbols("H")

BOUND = Bound(
    name="local-sgd-variance",
    title="LocalSGD, variance: S replicas of one objective",
    terms={
        **averaged.BOUND.terms,
        "drift": STALE * sigma**2 * (1 - 1 / S) * (H - 1) * (1 + gamma * L) ** (2 * (H - 2)) / 2,
    },
    metric=averaged.BOUND.metric,
    unit=averaged.BOUND.unit,
    assumptions=tuple(name for name in averaged.BOUND.assumptions if name != "second-moment"),
    conditions=averaged.BOUND.conditions,
    reference="derived here",
)
