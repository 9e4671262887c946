"""Matrix least squares f(X) = ||A X B - Y||_F^2 / 2 with every constant of the theorems known exactly.

grad f(X) = A^T (A X B - Y) B^T, so grad f(X) - grad f(Z) = P (X - Z) Q with P = A^T A, Q = B B^T, and
    spectral:  L = sum_i sigma_i(P) sigma_i(Q)   (von Neumann; attained)
    frobenius: L = sigma_1(P) sigma_1(Q)         (attained)
    sign:      L <= min(sum |P|, rows sigma_1(P)) min(sum |Q|, cols sigma_1(Q))   (attained where P and Q have one
               sign); exact by enumeration of the signs where X has at most 12 entries
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
import torch
from torch import Tensor

from empirics.constants import Constant, exact
from empirics.errors import InputError
from empirics.estimators.weights import Weights
from empirics.norms import get_norm
from empirics.problems.interface import check_index, draw_of_finite

#: Most entries of X for which the sign geometry's constant is found by enumeration: 2048 sign matrices.
MOST_ENUMERATED = 12


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
        if self.P.shape[0] * self.Q.shape[0] <= MOST_ENUMERATED:
            return self._sign_by_enumeration
        # L = max <X, P X Q> over sign matrices X, as the Hessian is positive semidefinite. Each factor on its own:
        # sum_ij P_ij <x_i, Q x_j> over rows x_i is at most sum |P| max <x, Q x>, or rows sigma_1(P) times the same.
        left = min(float(np.abs(self.P).sum()), self.P.shape[0] * float(p[0]))
        right = min(float(np.abs(self.Q).sum()), self.Q.shape[0] * float(q[0]))
        return left * right

    @cached_property
    def _sign_by_enumeration(self) -> float:
        n = self.P.shape[0] * self.Q.shape[0]
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1  # X and -X are worth the same
        X = (2.0 * bits - 1.0).reshape(-1, *self.shape)
        return float(np.abs(self.P @ X @ self.Q).sum(axis=(-2, -1)).max())

    def L_is_exact(self, norm: str = "spectral") -> bool:
        """Whether L is attained, not only a bound."""
        get_norm(norm)
        if norm != "sign" or self.P.shape[0] * self.Q.shape[0] <= MOST_ENUMERATED:
            return True
        signs = [np.sign(M[M != 0]) for M in (self.P, self.Q)]
        return all(s.min() == s.max() for s in signs)

    def hessian_product(self, V: np.ndarray) -> np.ndarray:
        """The Hessian times V [..., rows, cols]: P V Q, everywhere the same."""
        return self.P @ V @ self.Q

    @cached_property
    def hessian(self) -> np.ndarray:
        """The Hessian on vec(X), row by row: shape [rows cols, rows cols]."""
        return np.kron(self.P, self.Q)

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


@dataclass(frozen=True)
class NoisyLeastSquares:
    """Matrix least squares with the noise of its module, as a problem: 2^terms sign patterns, all equally likely.

    sigma: of one sample, exactly; seed: of the noise matrices. The variable is "X", and x_0 = 0.
    """

    problem: MatrixLeastSquares
    sigma: float = 0.0
    terms: int = 4
    seed: int = 0
    name: str = "least-squares"

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= MOST_ENUMERATED:
            raise InputError(f"terms: {self.terms!r}; allowed are integers from 1 to {MOST_ENUMERATED}")
        self.problem.noise_matrices(self.sigma, self.terms, self.seed)  # refuses a bad sigma

    @cached_property
    def _matrices(self) -> np.ndarray:
        return self.problem.noise_matrices(self.sigma, self.terms, self.seed)

    @property
    def samples(self) -> int:
        return int(2**self.terms)

    @cached_property
    def convexity(self) -> float:
        """Smallest eigenvalue of the Hessian; 0 where round-off could have made it."""
        p, q = np.linalg.eigvalsh(self.problem.P), np.linalg.eigvalsh(self.problem.Q)
        least = float(p[0] * q[0])
        return least if min(p[0], q[0]) > 0 and least > 1e-12 * float(p[-1] * q[-1]) else 0.0

    @property
    def floor(self) -> tuple[float, str]:
        return self.problem.f_star, "pseudo-inverse"

    def start(self) -> dict[str, Tensor]:
        return {"X": torch.zeros(self.problem.shape, dtype=torch.float64)}

    def value(self, x: Weights) -> float:
        return float(self.problem.f(_array(x)))

    def value_and_gradient(self, x: Weights) -> tuple[float, dict[str, Tensor]]:
        return self.value(x), {"X": torch.from_numpy(self.problem.grad(_array(x)))}

    def hessian_product(self, x: Weights, v: Weights) -> dict[str, Tensor]:
        return {"X": torch.from_numpy(self.problem.hessian_product(_array(v)))}

    def sample_gradient(self, x: Weights, i: int) -> dict[str, Tensor]:
        signs = 2.0 * ((check_index(i, self.samples) >> np.arange(self.terms)) & 1) - 1.0
        noise = np.einsum("j,jab->ab", signs, self._matrices)
        return {"X": torch.from_numpy(self.problem.grad(_array(x)) + noise)}

    def draw(self, x: Weights, batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        return draw_of_finite(self, x, batch, generator)

    def _L(self, norm: str) -> Constant:
        L = self.problem.L(norm)
        if self.problem.L_is_exact(norm):
            return exact("L", L, "everywhere", "the Hessian is constant")
        return Constant("L", L, "bound", "everywhere", 0.0, L, method="closed form", note="upper bound")

    def known(self, norm: str) -> dict[str, Constant]:
        norm = "spectral" if norm == "layers" else norm  # one matrix
        L = {} if norm == "row-l2" else {"L": self._L(norm)}
        star = self.problem.f_star
        return L | {
            "sigma": exact("sigma", self.sigma, "everywhere", "of one sample"),
            "f_star": exact("f_star", star, self.name, "pseudo-inverse"),
            "hessian_lipschitz": exact("hessian_lipschitz", 0.0, "everywhere", "the Hessian is constant"),
        }


def _array(x: Weights) -> np.ndarray:
    return x["X"].detach().double().numpy()


def least_squares(
    rows: int = 12, cols: int = 16, sigma: float = 0.1, terms: int = 4, seed: int = 0
) -> NoisyLeastSquares:
    """`random_problem` with noise."""
    return NoisyLeastSquares(random_problem(rows, cols, seed), sigma, terms, seed)
