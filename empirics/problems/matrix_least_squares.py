"""Matrix least squares f(X) = ||A X B - Y||_F^2 / 2 with every constant of the theorems known exactly.

grad f(X) = A^T (A X B - Y) B^T, so grad f(X) - grad f(Z) = P (X - Z) Q with P = A^T A, Q = B B^T, and
    spectral:  L = sum_i sigma_i(P) sigma_i(Q)   (von Neumann; attained)
    frobenius: L = sigma_1(P) sigma_1(Q)         (attained)
    sign:      L = sum |P| sum |Q|               (an upper bound; attained where P and Q have one sign)
f_* by the pseudo-inverse.

Noise: n = sum_j s_j M_j with independent signs s_j and fixed matrices M_j, so E ||n||_F^2 = sum_j ||M_j||_F^2 is
sigma^2 exactly and expectations over a few steps can be enumerated. M_j is a multiple of a matrix with equal
singular values: its nuclear norm is rho times its Frobenius norm, the largest possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from empirics.errors import InputError
from empirics.norms import get_norm


@dataclass(frozen=True)
class MatrixLeastSquares:
    """A [p, rows], B [cols, q], Y [p, q]; the variable X is [rows, cols]. Raises InputError if shapes disagree."""

    A: np.ndarray
    B: np.ndarray
    Y: np.ndarray

    def __post_init__(self) -> None:
        for name in ("A", "B", "Y"):
            array = np.asarray(getattr(self, name), dtype=float)
            if array.ndim != 2 or not array.size or not np.isfinite(array).all():
                raise InputError(f"{name}: shape {array.shape}; allowed is a finite non-empty matrix")
            object.__setattr__(self, name, array)
        if self.Y.shape != (self.A.shape[0], self.B.shape[1]):
            raise InputError(f"Y: shape {self.Y.shape}; allowed is {(self.A.shape[0], self.B.shape[1])}")
        if not self.A.any() or not self.B.any():
            raise InputError("A, B: a zero matrix; allowed is a problem that depends on X")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols) of X."""
        return self.A.shape[1], self.B.shape[0]

    @cached_property
    def P(self) -> np.ndarray:
        return self.A.T @ self.A

    @cached_property
    def Q(self) -> np.ndarray:
        return self.B @ self.B.T

    def L(self, norm: str = "spectral") -> float:
        """Smoothness constant: dual(grad f(X) - grad f(Z)) <= L norm(X - Z)."""
        get_norm(norm)
        p = np.linalg.svd(self.P, compute_uv=False)
        q = np.linalg.svd(self.Q, compute_uv=False)
        if norm == "spectral":
            r = min(p.size, q.size)
            return float(p[:r] @ q[:r])
        if norm == "frobenius":
            return float(p[0] * q[0])
        return float(np.abs(self.P).sum() * np.abs(self.Q).sum())

    def rho(self, norm: str = "spectral") -> float:
        """dual(v) <= rho ||v||_F."""
        return get_norm(norm).rho(*self.shape)

    @cached_property
    def f_star(self) -> float:
        """min f."""
        return float(self.f(np.linalg.pinv(self.A) @ self.Y @ np.linalg.pinv(self.B)))

    def f(self, X: np.ndarray) -> np.ndarray:
        """f(X) for X of shape [..., rows, cols] -> [...]."""
        return ((self.A @ X @ self.B - self.Y) ** 2).sum(axis=(-2, -1)) / 2

    def grad(self, X: np.ndarray) -> np.ndarray:
        """grad f(X), same shape as X [..., rows, cols]."""
        return self.A.T @ (self.A @ X @ self.B - self.Y) @ self.B.T

    def noise_matrices(self, sigma: float, terms: int, seed: int) -> np.ndarray:
        """The M_j, shape [terms, rows, cols], with sum_j ||M_j||_F^2 = sigma^2."""
        if not 0 <= sigma < math.inf or terms < 1:
            raise InputError(f"sigma, terms: {sigma!r}, {terms!r}; allowed are sigma >= 0 and terms >= 1")
        g = np.random.default_rng(seed).standard_normal((terms, *self.shape))
        U, _, Vh = np.linalg.svd(g, full_matrices=False)
        return U @ Vh * (sigma / math.sqrt(terms * min(self.shape)))

    def noise(self, sigma: float, steps: int, seed: int, terms: int = 4) -> np.ndarray:
        """Independent noises n_0 .. n_{steps-1}, shape [steps, rows, cols]."""
        signs = np.random.default_rng([seed, 1]).integers(0, 2, size=(steps, terms)) * 2.0 - 1.0
        return np.einsum("kj,jab->kab", signs, self.noise_matrices(sigma, terms, seed))


def random_problem(rows: int = 12, cols: int = 16, seed: int = 0) -> MatrixLeastSquares:
    """A Gaussian instance with L = 1 in the spectral geometry and f_* > 0."""
    if min(rows, cols) < 1:
        raise InputError(f"rows, cols: {rows!r}, {cols!r}; allowed are integers >= 1")
    rng = np.random.default_rng([seed, 0])
    p, q = rows + 4, cols + 4
    A, B = rng.standard_normal((p, rows)) / math.sqrt(p), rng.standard_normal((cols, q)) / math.sqrt(q)
    A = A / math.sqrt(MatrixLeastSquares(A, B, np.zeros((p, q))).L())
    X = rng.standard_normal((rows, cols)) * 3.0
    return MatrixLeastSquares(A, B, A @ X @ B + 0.05 * rng.standard_normal((p, q)))


def scalar_problem(L: float = 1.0) -> MatrixLeastSquares:
    """f(x) = L x^2/2 in one dimension, as a 1 x 1 matrix problem: all norms are the absolute value."""
    if not 0 < L < math.inf:
        raise InputError(f"L: {L!r}; allowed is a finite number > 0")
    return MatrixLeastSquares(np.array([[math.sqrt(L)]]), np.array([[1.0]]), np.array([[0.0]]))
