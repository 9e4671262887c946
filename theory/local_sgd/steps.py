"""The steps that the proofs of LocalSGD share, as inequalities. Kind: certified, in expectation.

  local-descent  E f(x_{k+1}) <= E f(x_k) - (gamma/2) E||grad f(x_k)||^2 - (gamma/2)(1 - gamma L) E||mean grad||^2
                                 + (gamma L^2/2) mean_r E||x_r - x_k||^2 + gamma^2 L sigma^2/(2 S)
  local-average  the same summed over the whole steps, times S^2/K
x_k is the average of the replicas x_r. Proofs: theory/local_sgd/proofs. Checked by
tests/theory/test_local_sgd_proofs.py.
"""

from __future__ import annotations

from sympy import Rational

from theory.inequality import Inequality
from theory.pipedream.parts import Delta0, K, L, S, gamma, sigma
from theory.symbols import symbols

f_now, f_next, grad, mean, apart = symbols(
    "E_f_now E_f_next E_grad_square E_replicas_mean_square E_replicas_apart_square"
)
whole, total_mean, total_apart = symbols("whole_grad_square total_replicas_mean_square total_replicas_apart_square")
half = Rational(1, 2) * gamma
_ASSUMPTIONS = ("euclidean", "smoothness", "local-sgd", "independent-batch", "unbiased", "variance")

DESCENT = Inequality(
    name="local-descent",
    title="One step of all replicas of LocalSGD, in expectation",
    statement=r"\mathbb{E} f(x_{k+1}) \le \mathbb{E} f(x_k) - \frac{\gamma}{2} \mathbb{E} \|\nabla f(x_k)\|^2"
    r" - \frac{\gamma}{2} (1 - \gamma L) \mathbb{E} \|\bar{g}_k\|^2"
    r" + \frac{\gamma L^2}{2 S} \sum_r \mathbb{E} \|x_r - x_k\|^2 + \frac{\gamma^2 L \sigma^2}{2 S}",
    left=f_next,
    terms={
        "objective": f_now,
        "gradient": -half * grad,
        "mean": -half * (1 - gamma * L) * mean,
        "apart": half * L**2 * apart,
        "noise": half * gamma * L * sigma**2 / S,
    },
    assumptions=_ASSUMPTIONS,
    reference="derived here; compare Yu, Yang and Zhu 2019 (arXiv 1807.06629)",
)
AVERAGE = Inequality(
    name="local-average",
    title="A run of LocalSGD, its whole steps, in expectation",
    statement=r"\frac{S^2}{K} \sum_{k<T} \mathbb{E} \|\nabla f(x_k)\|^2 \le \frac{2 S^2 \Delta_0}{\gamma K}"
    r" - (1 - \gamma L) \frac{S^2}{K} \sum_{k<T} \mathbb{E} \|\bar{g}_k\|^2"
    r" + L^2 \frac{S}{K} \sum_{k<T} \sum_r \mathbb{E} \|x_r - x_k\|^2 + \frac{\gamma L \sigma^2}{S}",
    left=whole,
    terms={
        "initial": 2 * S**2 * Delta0 / (gamma * K),
        "mean": -(1 - gamma * L) * S**2 * total_mean / K,
        "apart": L**2 * S**2 * total_apart / K,
        "noise": gamma * L * sigma**2 / S,
    },
    assumptions=(*_ASSUMPTIONS, "lower-bound"),
    reference="derived here; the descent step summed",
)
STEPS: dict[str, Inequality] = {step.name: step for step in (DESCENT, AVERAGE)}
