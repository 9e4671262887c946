"""A model of several layers: its norm, and the rho that belongs to it.

norm(x) = max_l ||x_l||_op / w_l with w_l > 0 the layer's learning-rate scale, so that one step moves layer l by at most
eta w_l; its dual is sum_l w_l ||v_l||_nuclear. By Cauchy-Schwarz, in the layer and over the layers,
    rho = sqrt(sum_l w_l^2 min(m_l, n_l)),
attained by v_l = w_l times an isometry. r_lo and r_hi of Theorem 1i are the smallest and the largest over the layers.
Embeddings, gains and biases need a norm of their own (row-wise l_2, l_inf: one row as a 1 x n matrix, one entry as
1 x 1): only then does a theorem cover the whole model. Muon for some layers and AdamW for the rest is outside every
theorem of this folder. Checked by tests/theory/test_comparison_rows.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from theory.errors import InputError


def rho_of_layers(shapes: Sequence[tuple[int, int]], weights: Sequence[float] | None = None) -> float:
    """rho of a weighted max over layers of operator norms; weights 1 if left out.

    Raises InputError for shapes that are not pairs of positive integers or weights that are not positive.
    """
    scales = [1.0] * len(shapes) if weights is None else list(weights)
    if not shapes or len(scales) != len(shapes):
        raise InputError(f"weights: {len(scales)} of them for {len(shapes)} layers; allowed is one for each")
    for shape, weight in zip(shapes, scales, strict=True):
        if len(shape) != 2 or not all(isinstance(n, int) and n >= 1 for n in shape):
            raise InputError(f"shapes: {shape!r} is not a pair of integers >= 1")
        if not 0 < weight < math.inf:
            raise InputError(f"weights: {weight!r} is not a number > 0")
    return math.sqrt(math.fsum(w * w * min(shape) for shape, w in zip(shapes, scales, strict=True)))
