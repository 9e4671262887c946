"""What the metric of a bound is in proofs: LaTeX of the left side -> the quantity that a proof has to end at.

So a proof cannot bound one quantity and be filed under the metric of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_GRAD_AT_X = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|_*"
_GRAD_REFERENCE = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_{(k-s_{\mathrm{ref}})_+})\|_*"
_GRAD_TAKEN = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_{(k-\tau)_+})\|_*"
_WHERE_CALLED = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|(1-\alpha) m_{k+1} + \alpha g_k\|_*"
_PER_MICROBATCH = r"\frac{1}{M} \sum_{m<M} \mathbb{E} \|\nabla f(y_m)\|^2"

#: (metric, at the virtual iterate's steps k = 1, ..., K) -> quantity of theory.symbols.
METRICS: Mapping[tuple[str, bool], str] = MappingProxyType(
    {
        (_GRAD_AT_X, False): "E_mean_grad_norm",
        (_GRAD_TAKEN, False): "E_mean_taken_norm",
        (_GRAD_REFERENCE, False): "E_mean_reference_norm",
        (_GRAD_AT_X, True): "E_mean_taken_norm",
        (r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|m_{k+1}\|_*", False): "E_mean_momentum_norm",
        (_WHERE_CALLED, False): "E_mean_called_norm",
        (r"\frac{1}{K} \sum_{k=1}^{K} \mathbb{E} \|\nabla f(y_k)\|_*", True): "E_mean_grad_norm",
        (r"\frac{1}{K} \sum_{k=1}^{K} \mathbb{E} \|\nabla f(x_k)\|_*", True): "E_mean_grad_norm_at_x",
        (r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|^2", False): "mean_grad_square",
        (_PER_MICROBATCH, False): "mean_grad_square",
        (
            r"\frac{S^2}{K} \sum_{t<\lfloor K/S^2 \rfloor} \mathbb{E} \|\nabla f(\bar{x}_t)\|^2",
            False,
        ): "whole_grad_square",
        (r"\min_{k<K} \|\nabla f(x_k)\|^2", False): "least_square",
        (r"\mathbb{E} f(x_K) - f_*", False): "excess_last",
    }
)
#: Key of METRICS -> the assumption under which alone it is that quantity: at delay 1 step k >= 1 takes at x_{k-1},
#: PipeDream's steps are microbatches, the oracle is called at the vector of Nesterov's direction.
METRIC_UNDER: Mapping[tuple[str, bool], str] = MappingProxyType(
    {(_GRAD_AT_X, True): "delay-one", (_PER_MICROBATCH, False): "pipedream", (_WHERE_CALLED, False): "nesterov"}
)
#: Counts of steps, of which the terms and conditions of a bound may contain its metric's own alone.
COUNTS = ("K", "M")
#: Metric -> c of the schema `tuned_step`: the step size is the minimiser of the bound on that metric, and of no other.
TUNED: Mapping[str, int] = MappingProxyType({_GRAD_AT_X: 2, _GRAD_TAKEN: 1})


def count_of(metric: str) -> str:
    """The count of steps that a metric is about: one of COUNTS."""
    return "M" if metric == _PER_MICROBATCH else "K"
