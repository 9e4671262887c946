"""How a vector is spread over the eigenvalues of a matrix that is known by its products: Lanczos quadrature.

For symmetric H and a vector v the measure is sum_i <u_i, v>^2 delta(lam_i). m steps of Lanczos from v
(`empirics.estimators.krylov`) give its Gauss quadrature (Golub and Welsch 1969): m nodes and weights that integrate
every polynomial of degree up to 2m - 1 exactly; the sum of the weights is |v|^2. Where the Krylov space ends the
measure is exact. Many vectors at once: one product serves all of them.
Checked by tests/empirics/test_prediction.py, against a full eigendecomposition and a naive transcription.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from empirics.errors import InputError
from empirics.estimators.krylov import krylov_spaces

#: [R, n] -> [R, n]: H times each row.
Product = Callable[[Tensor], Tensor]


def spectral_measure(product: Product, vectors: Tensor, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, each [R, m], of the vectors [R, n]; nodes that a vector has no use for have weight 0.

    m is at most steps and n, and less where all Krylov spaces end before.
    Raises InputError for steps < 1, and for a vector or a product that is not finite.
    """
    if vectors.ndim != 2 or steps < 1 or not bool(torch.isfinite(vectors).all()):
        raise InputError(
            f"vectors, steps: shape {tuple(vectors.shape)}, {steps!r}; allowed are finite vectors [R, n] and steps >= 1"
        )
    starts, numbers = vectors.double(), itertools.count()

    def checked(v: Tensor) -> Tensor:
        step, w = next(numbers), product(v.to(vectors.dtype)).double()
        if not bool(torch.isfinite(w).all()):
            raise InputError(f"product: not finite at step {step}; allowed is a finite symmetric matrix")
        return w

    *_, space = krylov_spaces(checked, starts, steps)
    nodes, S = np.linalg.eigh(space.T.numpy())
    return nodes, (S[:, 0, :] * starts.norm(dim=1).numpy()[:, None]) ** 2
