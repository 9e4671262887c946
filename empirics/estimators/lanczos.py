"""Both ends of a symmetric operator's spectrum by Lanczos with full reorthogonalisation.

Ritz value theta with residual r = ||H y - theta y||: an eigenvalue lies within r of theta (always), and within r^2/gap
(Parlett 1980, ch. 11). From a random start the top one is missed with probability 0, and after k products
    P(lam_max - theta_max > eps (lam_max - lam_min)) <= 1.648 sqrt(d) exp(-sqrt(eps) (2k-1))
(Kuczynski and Wozniakowski 1992, SIAM J. Matrix Anal. 13, theorem 4.2, shifted), which gives the interval `bracket`: it
needs no residual, and covers what a residual cannot see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from empirics.errors import InputError
from empirics.estimators.weights import Weights, check_finite, flatten, unflatten

Product = Callable[[Weights], Weights]
ENDS = ("top", "bottom", "magnitude", "both")
#: Share of the operator's size by which a computed product may depart from symmetry: single precision, many layers.
ASYMMETRY = 1e-3
#: Two moduli this close are one.
TIE = 1e-12


@dataclass(frozen=True)
class Spectrum:
    """Ritz values [k], ascending and signed, with residuals [k]; basis [k, d] of the Krylov space, coefficients [k, k]
    of the Ritz vectors in it; weights [k], with which the values stand for the spectrum as the start sees it.

    converged: residual of what was asked for <= tolerance times the largest |value|; products: made, k; bracket:
    [low, high] of the largest modulus at `level` (None after a given start); dimension d.
    """

    values: np.ndarray
    residuals: np.ndarray
    basis: torch.Tensor
    coefficients: np.ndarray
    converged: bool
    bracket: tuple[float, float] | None
    level: float

    @property
    def products(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        return self.basis.shape[1]

    @property
    def top(self) -> float:
        """Largest eigenvalue, signed."""
        return float(self.values[-1])

    @property
    def bottom(self) -> float:
        """Smallest eigenvalue, signed."""
        return float(self.values[0])

    @property
    def weights(self) -> np.ndarray:
        """Squares of the start's components along the Ritz vectors; they add up to 1."""
        return np.asarray(self.coefficients[0] ** 2)

    def vector(self, index: int) -> torch.Tensor:
        """Ritz vector of a value, [d], length 1: -1 the top one, 0 the bottom one."""
        return self.basis.T @ torch.from_numpy(self.coefficients[:, index].copy())

    @property
    def signed(self) -> float:
        """The eigenvalue of the largest modulus, with its sign; the positive one in a tie up to round-off."""
        return float(self.values[self.index])

    @property
    def _top_is_larger(self) -> bool:
        return self.top >= -self.bottom * (1 - TIE)

    @property
    def modulus(self) -> float:
        """The operator norm, the smoothness constant in the Frobenius norm."""
        return abs(self.signed)

    @property
    def residual(self) -> float:
        """Of `signed`."""
        return float(self.residuals[self.index])

    @property
    def index(self) -> int:
        """Of `signed` among the values."""
        return -1 if self._top_is_larger else 0


def extreme_eigenvalues(
    product: Product,
    like: Weights,
    which: str = "magnitude",
    tolerance: float = 1e-3,
    most_products: int = 40,
    seed: int = 0,
    start: Weights | None = None,
    level: float = 0.99,
) -> Spectrum:
    """The ends of the spectrum of a symmetric operator on weights shaped as `like`.

    start: mixed with as much of a random vector, as one that is orthogonal to the eigenvector would hide it.
    Raises InputError for a product that is not finite, or that is not one of a symmetric operator that stays the same
    (a new batch each time).
    """
    if which not in ENDS:
        raise InputError(f"which: {which!r}; allowed are {', '.join(ENDS)}")
    if not 0 < tolerance < 1 or most_products < 1:
        raise InputError(
            f"tolerance, most_products: {tolerance!r}, {most_products!r}; allowed are 0 < tolerance < 1 and at least 1"
        )
    if not 0 < level < 1:
        raise InputError(f"level: {level!r}; allowed is 0 < level < 1")
    d = sum(v.numel() for v in like.values())
    if not d:
        raise InputError("like: no parameter; allowed is at least one entry")
    generator = torch.Generator().manual_seed(seed)
    q = _unit(torch.randn(d, dtype=torch.float64, generator=generator))
    if start is not None:
        given = flatten(start)
        check_finite({"start": given}, "start")
        if float(given.abs().max()) > 0:
            q = _unit(_unit(given) + q)
    most = min(most_products, d)
    Q = torch.zeros(most, d, dtype=torch.float64)
    diagonal: list[float] = []
    below: list[float] = []
    size, theta, S = 0.0, np.zeros(1), np.ones((1, 1))
    for k in range(most):
        Q[k] = q
        found = product(unflatten(q, like))
        check_finite(found, f"Hessian-vector product {k + 1}")
        w = flatten(found)
        size = max(size, float(torch.linalg.vector_norm(w)))
        overlaps = Q[: k + 1] @ w
        diagonal.append(float(overlaps[k]))
        if k > 1 and float(overlaps[: k - 1].abs().max()) > ASYMMETRY * size:
            raise InputError(
                f"product {k + 1}: not of the operator that gave the ones before it; allowed is a symmetric operator "
                f"that stays the same (eval mode, a fixed batch)"
            )
        w = w - Q[: k + 1].T @ overlaps
        w = w - Q[: k + 1].T @ (Q[: k + 1] @ w)  # twice is enough
        rest = float(torch.linalg.vector_norm(w))
        T = np.diag(diagonal) + np.diag(below, 1) + np.diag(below, -1)
        theta, S = np.linalg.eigh(T)
        residuals = rest * np.abs(S[-1])
        # Nothing new: the space is invariant, and from a random start it meets every eigenspace.
        invariant = rest <= 8 * math.sqrt(d) * np.finfo(float).eps * size
        if invariant or _settled(which, theta, residuals, tolerance):
            break
        below.append(rest)
        q = w / rest
    products = len(diagonal)
    if products == d or invariant:
        residuals = np.zeros_like(residuals)
    bracket = None
    if start is None:
        bracket = _bracket(theta, products, d, level, bool(products == d or invariant))
    settled = _settled(which, theta, residuals, tolerance)
    return Spectrum(theta, residuals, Q[:products], S, settled, bracket, level)


def _unit(v: torch.Tensor) -> torch.Tensor:
    return v / torch.linalg.vector_norm(v)


def _settled(which: str, theta: np.ndarray, residuals: np.ndarray, tolerance: float) -> bool:
    allowed = tolerance * float(np.abs(theta).max())
    top, bottom = bool(residuals[-1] <= allowed), bool(residuals[0] <= allowed)
    if which == "top":
        return top
    if which == "bottom":
        return bottom
    if which == "both":
        return top and bottom
    larger, other = (-1, 0) if theta[-1] >= -theta[0] else (0, -1)
    # The other end must not be about to overtake.
    return bool(residuals[larger] <= allowed) and bool(
        len(theta) == 1 or abs(theta[other]) + residuals[other] <= abs(theta[larger]) + allowed
    )


def _bracket(theta: np.ndarray, k: int, d: int, level: float, invariant: bool) -> tuple[float, float]:
    """Of the largest modulus, at `level`, from the bound in the header for both ends."""
    low = float(np.abs(theta).max())
    if invariant:
        return low, low
    eps = (math.log(2 * 1.648 * math.sqrt(d) / (1 - level)) / (2 * k - 1)) ** 2
    if eps >= 0.5:
        return low, math.inf
    spread = float(theta[-1] - theta[0]) / (1 - 2 * eps)
    return low, max(float(theta[-1]) + eps * spread, -float(theta[0]) + eps * spread)
