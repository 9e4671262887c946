"""Both ends of a symmetric operator's spectrum by Lanczos (`empirics.estimators.krylov`).

Ritz value theta with residual r = ||H y - theta y||: an eigenvalue lies within r of theta (always), and within r^2/gap
(Parlett 1980, ch. 11). From a random start the top one is missed with probability 0, and after k products
    P(lam_max - theta_max > eps (lam_max - lam_min)) <= 1.648 sqrt(d) exp(-sqrt(eps) (2k-1))
(Kuczynski and Wozniakowski 1992, SIAM J. Matrix Anal. 13, theorem 4.2, shifted), which gives the interval `bracket`: it
needs no residual, and covers what a residual cannot see. The bound is for a k that is set beforehand, and here the run
decides when to stop: so k has the share (1 - level)/(k (k+1)) of what may fail, which over all k adds up to 1 - level,
and each end has half of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from empirics.errors import InputError
from empirics.estimators.krylov import Krylov, RowProduct, krylov_spaces, unit
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

    converged: residual of what was asked for <= tolerance times the largest |value|; products: made, k; reach: by how
    much the spectrum may go on beyond the values, at either end and at `level` for both: 0 for an invariant space, None
    after a given start; dimension d.
    """

    values: np.ndarray
    residuals: np.ndarray
    basis: torch.Tensor
    coefficients: np.ndarray
    converged: bool
    tolerance: float
    reach: float | None
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
    def bracket(self) -> tuple[float, float] | None:
        """[low, high] of the largest modulus at `level`."""
        return None if self.reach is None else (self.modulus, max(self.top, -self.bottom) + self.reach)

    def settled(self, which: str) -> bool:
        """`converged`, for another one of ENDS."""
        return _settled(which, self.values, self.residuals, self.tolerance)

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
    q = unit(torch.randn(d, dtype=torch.float64, generator=generator))
    if start is not None:
        given = flatten(start)
        check_finite({"start": given}, "start")
        if float(given.abs().max()) > 0:
            q = unit(unit(given) + q)
    for space in krylov_spaces(_as_rows(product, like), q[None], most_products):
        _check_same(space)
        theta, S = np.linalg.eigh(space.T[0].numpy())
        # Nothing new: the space is invariant, and from a random start it meets every eigenspace.
        invariant = len(theta) == d or bool(space.ended)
        residuals = (0.0 if invariant else float(space.rest)) * np.abs(S[-1])
        settled = _settled(which, theta, residuals, tolerance)
        if settled:
            break
    reach = None if start is not None else 0.0 if invariant else _reach(theta, d, level)
    return Spectrum(theta, residuals, space.basis[0], S, settled, tolerance, reach, level)


def _as_rows(product: Product, like: Weights) -> RowProduct:
    """The product on a single row; InputError where it is not finite."""
    numbers = itertools.count(1)

    def of_row(v: torch.Tensor) -> torch.Tensor:
        found = product(unflatten(v[0], like))
        check_finite(found, f"Hessian-vector product {next(numbers)}")
        return flatten(found)[None]

    return of_row


def _check_same(space: Krylov) -> None:
    """T has to be tridiagonal: the last product has nothing along directions older than its own and the one before."""
    older = space.overlaps[0, :-2]
    if older.numel() and float(older.abs().max()) > ASYMMETRY * float(space.size):
        raise InputError(
            f"product {space.overlaps.shape[1]}: not of the operator that gave the ones before it; allowed is a "
            f"symmetric operator that stays the same (eval mode, a fixed batch)"
        )


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


def _reach(theta: np.ndarray, d: int, level: float) -> float:
    """How far either end may lie beyond the Ritz values [k], at `level` for both and for every k, by the header."""
    k = len(theta)
    failing = (1 - level) / (k * (k + 1)) / 2
    eps = (math.log(1.648 * math.sqrt(d) / failing) / (2 * k - 1)) ** 2
    # The spread is at most that of the values and eps of itself at both ends.
    return eps * float(theta[-1] - theta[0]) / (1 - 2 * eps) if eps < 0.5 else math.inf
