"""Polar factors: the matrix U V' of a matrix with singular value decomposition U S V', exact and by Newton-Schulz.

Exact, without a singular value decomposition of the whole matrix A [m, n], m >= n (else of its transpose):
    A' A = V L V'        eigenvectors, good to sqrt(eps) only: the Gram matrix has the squared condition number
    B = A V = Q D        columns of length d_i, orthogonal but for what is wrong with V
    F = Q' Q - I         small, and known to full precision, since columns of length 1 are multiplied
    polar(B) = B (D (I + F) D)^(-1/2) = Q (I + W)^(-1), to second order in F:
        W = (X + Z) D^(-1),  D X + X D = D F D,  D Z + Z D = -X X
    polar(A) = polar(B) V'
V need not be right, only orthogonal. The first neglected power of ||F||_F is checked to be below round-off; where it is
not, the SVD decides. Columns shorter than eps^(1/4), or so, of the longest are separated first: turned away from the
long ones, and taken apart by a thin SVD of their own.
Singular values up to max(m, n) eps times the largest give no direction, as in the SVD path.

Newton-Schulz: X <- a X + (b X X' + c (X X')^2) X, five times, coefficients of Jordan 2024 (kellerjordan.github.io,
"Muon"). It takes singular values from 0.002 to 1 of the Frobenius norm to between 0.68 and 1.21, not to 1, and smaller
ones less far.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: With fewer rows or columns the SVD is fastest.
SMALL = 48
#: Matrices that are nearly square (m < 2 n) tend to have short columns, which cost most in float32. Up to this n,
#: float64 is used for them, where little has to be separated or corrected,
WIDEN = 96
#: and above it, but below this n, the SVD.
LARGE = 192
#: Coefficients, number of steps and smallest norm of torch.optim.Muon.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
EPS = 1e-7

POLARS = ("exact", "newton-schulz")
ITERATION_DTYPES = ("bfloat16", "working")


def exact_polar(A: Tensor) -> Tensor:
    """The polar factor of A [m, n]: float32 or float64, finite, not zero, largest entry near 1.

    Deterministic. Where A is rank deficient the factor is a partial isometry of the numerical rank.
    """
    n, m = sorted(A.shape)
    if n >= SMALL and not (A.dtype == torch.float32 and m < 2 * n and WIDEN < n < LARGE):
        tall = A if A.shape[0] >= A.shape[1] else A.T
        U = _by_eigenvectors(tall)
        if U is not None:
            return U if tall is A else U.T
    return svd_polar(A)


def svd_polar(A: Tensor) -> Tensor:
    """The same by the SVD of the whole matrix: what :func:`exact_polar` is held against."""
    U, s, Vh = torch.linalg.svd(A, full_matrices=False)  # U [m, r], s [r], Vh [r, n]
    keep = s > s[0] * max(A.shape) * torch.finfo(A.dtype).eps
    return (U if bool(keep[-1]) else U * keep) @ Vh


def _by_eigenvectors(A: Tensor) -> Tensor | None:
    """exact_polar for m >= n; None where the SVD has to decide."""
    wanted = torch.finfo(A.dtype).eps
    cut = max(A.shape) * wanted  # no direction below this share of the longest column
    dtype = A.dtype
    if A.shape[1] <= WIDEN and A.shape[0] < 2 * A.shape[1]:
        A = A.double()
    eps = torch.finfo(A.dtype).eps
    short = (2 if A.dtype == torch.float32 else 0.5) * eps**0.25
    if cut > short / 2:
        return None
    try:
        L, V = torch.linalg.eigh(A.T @ A)  # ascending
    except torch.linalg.LinAlgError:
        return None
    B = A @ V  # [m, n]
    keep = None
    least, largest = L[:: len(L) - 1].tolist()
    if least >= short**2 * largest:
        d = torch.linalg.vector_norm(B, dim=0)
        if eps < wanted:
            return ((B / d) @ V.T).to(dtype)  # F is below the round-off of the result
    else:
        r = int((L < short**2 * largest).sum())
        if 2 * r > A.shape[1]:
            return None
        B, V = _separate(B, V, r)
        d = torch.linalg.vector_norm(B, dim=0)
        relative = d[:r] / (cut * d.max())
        if bool(((relative > 0.75) & (relative < 1.25)).any()):
            return None  # round-off would decide about the rank
        keep = torch.ones_like(d)
        keep[:r] = relative > 1
        B = B * keep
        d = torch.where(keep > 0, d, 1)
    Q = B / d
    F = Q.T @ Q
    F.diagonal().sub_(1 if keep is None else keep)
    size = float(torch.linalg.vector_norm(F))
    if not size**3 <= eps:
        return None
    sums = d[:, None] + d
    W = F * d[:, None] / sums  # X D^(-1)
    Vh = V.T
    if size**2 > eps:
        W = W - ((W * d) @ W) / sums  # Z D^(-1) = -W D W / (d_i + d_j)
        Vh = Vh - W @ (Vh - W @ Vh)
    else:
        Vh = Vh - W @ Vh
    return (Q @ Vh).to(dtype)


def _separate(B: Tensor, V: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """B and V after small rotations that leave the first r columns of B = A V orthogonal to the rest and to each other.

    Column j < r turns towards column i >= r by t_ij = <b_i, b_j>/d_i^2, to second order.
    """
    m = B.shape[0]
    both = torch.cat((B, V))
    X2, X1 = both[:, :r], both[:, r:]
    T = (B[:, r:].T @ B[:, :r]) / B[:, r:].square().sum(dim=0)[:, None]  # [n - r, r]
    along = X1 @ T
    Y1 = X1 + (X2 - along / 2) @ T.T
    Y2 = X2 - along - X2 @ (T.T @ T / 2)
    U, s, Wh = torch.linalg.svd(Y2[:m], full_matrices=False)
    return torch.cat((U * s, Y1[:m]), dim=1), torch.cat((Y2[m:] @ Wh.T, Y1[m:]), dim=1)


def newton_schulz(A: Tensor, iteration_dtype: str) -> Tensor:
    """Five Newton-Schulz steps from A [m, n], in one of ITERATION_DTYPES; returned in that dtype.

    bfloat16: bit for bit what torch.optim.Muon computes, with its limits: a Frobenius norm below 1e-7 is divided by
    1e-7 instead (the result shrinks with A), and one whose square exceeds float32 (1.8e19) gives zero.
    working: in the dtype of A, half precision in float32; the scale of A does not matter.
    """
    if iteration_dtype == "bfloat16":
        X = A.to(torch.bfloat16, copy=True)
    else:
        X = A if A.dtype in (torch.float32, torch.float64) else A.float()
        X = X / X.abs().max()  # no square overflows or vanishes
    if A.shape[0] > A.shape[1]:
        X = X.T
    X = X.div_(X.norm().clamp(min=EPS))  # in place, as torch: bit for bit
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        G = X @ X.T
        X = torch.addmm(X, torch.addmm(G, G, G, beta=b, alpha=c), X, beta=a)
    return X.T if A.shape[0] > A.shape[1] else X
