"""Least squares cut into blocks, one per stage, with noise whose expectations can be enumerated.

f(x) = |A x - b|^2/2, H = A'A; a gradient sample is grad f(x) + s n with a fair sign s and a fixed vector n. So, in the
Euclidean norm, L is the largest eigenvalue of H, mu (of the Polyak-Lojasiewicz inequality) the smallest that is not 0,
sigma^2 = |n|^2, sigma_s^2 = |n_s|^2, and E|g_s|^2 = |grad_s f|^2 + |n_s|^2, all exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from empirics.block_sgd import stage_slices
from empirics.errors import InputError


@dataclass(frozen=True)
class BlockLeastSquares:
    """A [p, n], b [p], noise n [n], stages S <= n. Raises InputError for shapes that disagree or what is not finite."""

    A: np.ndarray
    b: np.ndarray
    noise: np.ndarray
    stages: int

    def __post_init__(self) -> None:
        for name in ("A", "b", "noise"):
            array = np.asarray(getattr(self, name), dtype=float)
            if not np.isfinite(array).all():
                raise InputError(f"{name}: not finite; allowed are finite numbers")
            object.__setattr__(self, name, array)
        A, b, noise = self.A, self.b, self.noise
        if A.ndim != 2 or b.shape != A.shape[:1] or noise.shape != A.shape[1:]:
            raise InputError(f"A, b, noise: shapes {A.shape}, {b.shape}, {noise.shape}; allowed are (p, n), (p,), (n,)")
        stage_slices(A.shape[1], self.stages)

    @property
    def n(self) -> int:
        return int(self.A.shape[1])

    @property
    def blocks(self) -> list[slice]:
        """The coordinates of each stage."""
        return stage_slices(self.n, self.stages)

    @cached_property
    def H(self) -> np.ndarray:
        return self.A.T @ self.A

    @cached_property
    def _eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.H)

    @property
    def L(self) -> float:
        return float(self._eigenvalues[-1])

    @property
    def mu(self) -> float:
        """Of the Polyak-Lojasiewicz inequality; 0 where f is constant."""
        above = self._eigenvalues[self._eigenvalues > 1e-10 * self.L]
        return float(above[0]) if above.size else 0.0

    @cached_property
    def f_star(self) -> float:
        return float(self.f(np.linalg.pinv(self.A) @ self.b))

    @property
    def block_variances(self) -> np.ndarray:
        """sigma_s^2 [S]."""
        return self.by_block(self.noise)

    @property
    def sigma(self) -> float:
        return float(np.linalg.norm(self.noise))

    def f(self, x: np.ndarray) -> np.ndarray:
        """f(x) for x [..., n]."""
        return ((x @ self.A.T - self.b) ** 2).sum(axis=-1) / 2

    def grad(self, x: np.ndarray) -> np.ndarray:
        """grad f(x) for x [..., n]."""
        return (x @ self.A.T - self.b) @ self.A

    def by_block(self, v: np.ndarray) -> np.ndarray:
        """Squared norm of each block of v [..., n]: [..., S]."""
        return np.stack([(v[..., block] ** 2).sum(axis=-1) for block in self.blocks], axis=-1)

    def only(self, s: int) -> np.ndarray:
        """Indicator of block s, [n]."""
        out = np.zeros(self.n)
        out[self.blocks[s]] = 1.0
        return out


def random_block_problem(n: int = 6, stages: int = 3, sigma: float = 0.5, seed: int = 0) -> BlockLeastSquares:
    """A Gaussian instance with L = 1; noise of that sigma, the same in every block where they are equally large."""
    if n < 1 or not 0 <= sigma < np.inf:
        raise InputError(f"n, sigma: {n!r}, {sigma!r}; allowed are n >= 1 and a finite sigma >= 0")
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n + 2, n))
    A /= np.linalg.norm(A, 2)
    signs = np.sign(rng.standard_normal(n))
    return BlockLeastSquares(A, rng.standard_normal(n + 2), signs * sigma / np.sqrt(n), stages)
