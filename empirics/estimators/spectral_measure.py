"""How a vector is spread over the eigenvalues of a matrix that is known by its products: Lanczos quadrature.

For symmetric H and a vector v the measure is sum_i <u_i, v>^2 delta(lam_i). m steps of Lanczos from v give its Gauss
quadrature (Golub and Welsch 1969): m nodes and weights that integrate every polynomial of degree up to 2m - 1 exactly;
the sum of the weights is |v|^2. Full reorthogonalisation. Where the Krylov space ends the measure is exact.
Many vectors at once: one product serves all of them.
Checked by tests/empirics/test_prediction.py, against a full eigendecomposition and a naive transcription.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from empirics.errors import InputError

#: [R, n] -> [R, n]: H times each row.
Product = Callable[[Tensor], Tensor]
#: A new direction below this share of the largest one is round-off: the Krylov space has ended.
END = 1e-10


def spectral_measure(product: Product, vectors: Tensor, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, each [R, m], m = min(steps, n), of the vectors [R, n]; unused nodes have weight 0.

    Raises InputError for steps < 1, and for a vector or a product that is not finite.
    """
    if vectors.ndim != 2 or steps < 1 or not bool(torch.isfinite(vectors).all()):
        raise InputError(
            f"vectors, steps: shape {tuple(vectors.shape)}, {steps!r}; allowed are finite vectors [R, n] and steps >= 1"
        )
    R, n = vectors.shape
    m = min(steps, n)
    norm = vectors.double().norm(dim=1)
    q = vectors.double() / norm.clamp_min(torch.finfo(torch.float64).tiny)[:, None]
    basis = torch.zeros(R, m, n, dtype=torch.float64)
    T = torch.zeros(R, m, m, dtype=torch.float64)
    alive, largest = norm > 0, torch.zeros(R, dtype=torch.float64)
    for j in range(m):
        basis[:, j] = q * alive[:, None]
        w = product(basis[:, j].to(vectors.dtype)).double()
        if not bool(torch.isfinite(w).all()):
            raise InputError(f"product: not finite at step {j}; allowed is a finite symmetric matrix")
        T[:, j, j] = (basis[:, j] * w).sum(dim=1)
        for _ in range(2):
            w = w - torch.einsum("rkn,rk->rn", basis, torch.einsum("rkn,rn->rk", basis, w))
        beta = w.norm(dim=1)
        largest = torch.maximum(largest, torch.maximum(beta, T[:, j, j].abs()))
        alive = alive & (beta > END * largest)
        if j + 1 < m:
            T[:, j, j + 1] = T[:, j + 1, j] = beta * alive
            q = w / beta.clamp_min(torch.finfo(torch.float64).tiny)[:, None]
    nodes, vectors_of_T = np.linalg.eigh(T.numpy())
    return nodes, (vectors_of_T[:, 0, :] * norm.numpy()[:, None]) ** 2
