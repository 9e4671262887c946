"""The quantities that only proofs about delayed gradient descent need: what old gradients have above the smallest one.

The T steps that are added up lead from x_0 to the last iterate of the run, T = K - 1.
"""

from __future__ import annotations

from theory.quantity import NONNEGATIVE, REAL, Quantity

_SQUARE = "(f/x)^2"


def _square(name: str, latex: str, meaning: str, unit: str = _SQUARE) -> Quantity:
    return Quantity(name, latex, unit, NONNEGATIVE, meaning, "trajectory")


_LEAST = r"\min_{i<K} \|\nabla f(x_i)\|^2"
RANDOM_EXCESS = [
    _square("update_excess", rf"\|G_k\|^2 - {_LEAST}", "squared update above the smallest square of the run"),
    _square("block_window_excess", rf"\sum_{{j \in W_s}} (\|G_{{j,s}}\|^2 - {_LEAST})", "its sum over a window"),
    _square("window_excess", rf"\sum_{{j \in W}} (\|G_j\|^2 - {_LEAST})", "its sum over the window of the whole model"),
]
IN_EXCESS_PROOFS = [
    Quantity("f_infimum", r"\inf f", "f", REAL, "infimum of the objective"),
    Quantity("length_square", r"\min(k, \tau)^2", "1", NONNEGATIVE, "square of the length of the window of step k"),
    Quantity("total_length_square", r"\sum_{k<T} \min(k, \tau)^2", "1", NONNEGATIVE, "sum of length_square"),
    Quantity("finite_weight", "D", "1", REAL, "what the smallest square counts in 2 L Delta0 (delayed-gd-finite)"),
    _square("total_taken_square", r"\sum_{k<T} \|\nabla f(z_k)\|^2", "sum of ||grad f(z_k)||^2"),
    _square("total_apart_square", r"\sum_{k<T} \|x_k - z_k\|^2", "sum of ||x_k - z_k||^2", "x^2"),
    _square("total_update_excess", r"\sum_{k<T} (\|G_k\|^2 - \min)", "sum of update_excess"),
    _square("total_window_excess", r"\sum_{k<T} \sum_{j \in W_k} (\|G_j\|^2 - \min)", "sum of window_excess"),
]
