"""The exact PipeDream, E: every stage steps after every microbatch, nothing random but the data. Kind: upper bound.

y_{m+1} = y_m - gamma g(z_m; xi_m), block s of z_m is block s of y_{m - min(m, a_s)}, a_s = S - 1 - s (textbook warm-up;
a greedy start has S - 1 for all), sigma_s^2 the variance of block s, sigma^2 their sum,
block_age = sum_s a_s sigma_s^2/sigma^2, which is (S-1)/2 where all sigma_s are equal.
Statement, sigma fixed for the whole gradient, for every theta > 0 with gamma L + (1+theta) gamma^2 L^2 (S-1)^2 <= 1:
    (1/M) sum_{m<M} E||grad f(y_m)||^2
    <= 2 Delta0/(gamma M) + gamma L sigma^2 + (1+1/theta) gamma^2 L^2 block_age sigma^2  (pipedream-exact-split),
theta = 1 (pipedream-exact-age), and also block_age = (S-1)/2 (pipedream-exact).

Proof: the descent of `parts` for S = 1:
    E f(y_{m+1}) <= f(y_m) - (gamma/2)||grad f(y_m)||^2 - (gamma/2)||grad f(z_m)||^2
                    + (gamma L^2/2)||y_m - z_m||^2 + (gamma^2 L/2)(||grad f(z_m)||^2 + sigma^2).
Block s of (z_m - y_m)/gamma is the sum of
the last min(m, a_s) gradients g_s(z_j): drift and noise. Split as in `variance`; drift: Cauchy-Schwarz,
a_s sum_j ||grad_s f(z_j)||^2, each j in at most a_s windows; noise: z_j is known before xi_j, so the noises are
orthogonal, min(m, a_s) sigma_s^2. Sum over s: (1+theta)(S-1)^2 mean||grad f(z)||^2 + (1+1/theta) sum_s a_s sigma_s^2.
A cost linear in S cannot be avoided: `stability`. The paper (arXiv 2606.03498) treats the randomized method alone.
Checked by tests/theory/test_pipedream_runs.py and tests/theory/test_pipedream_bounds.py.
"""

from __future__ import annotations

from sympy import Expr, Integer, Le, factor

from theory.bound import Bound
from theory.pipedream.parts import NOISE, STALE, UNIT, Delta0, L, M, S, gamma, sigma, theta
from theory.symbols import symbols

(block_age,) = symbols("block_age")

_ASSUMPTIONS = (
    "euclidean",
    "smoothness",
    "lower-bound",
    "pipedream",
    "unbiased",
    "variance",
)


def _bound(name: str, title: str, split: Expr, mean_age: Expr) -> Bound:
    equal = mean_age != block_age
    return Bound(
        name=name,
        title=title,
        terms={
            "initial": 2 * Delta0 / (gamma * M),
            "noise": NOISE,
            "delay": factor((1 + 1 / split) * mean_age) * STALE * sigma**2,
        },
        metric=r"\frac{1}{M} \sum_{m<M} \mathbb{E} \|\nabla f(y_m)\|^2",
        unit=UNIT,
        assumptions=(*_ASSUMPTIONS, "equal-noise") if equal else _ASSUMPTIONS,
        conditions=(
            Le(gamma * L + (1 + split) * STALE * (S - 1) ** 2, 1),
            *(() if equal else (Le(block_age, S - 1),)),
        ),
        reference="derived here, E",
    )


BOUND = _bound("pipedream-exact", "PipeDream itself, E: the same noise in every stage", Integer(1), (S - 1) / 2)
AGE = _bound("pipedream-exact-age", "PipeDream itself, E, any noise: ages weighed by noise", Integer(1), block_age)
SPLIT = _bound("pipedream-exact-split", "PipeDream itself, E, free split: drift against noise", theta, block_age)
