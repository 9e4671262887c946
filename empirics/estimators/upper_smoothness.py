"""Smoothness at a point, from Hessian-vector products: L(x) = max of dual(H v) over norm(v) <= 1.

Lower end by the power method for norms (Boyd 1974, Linear Algebra Appl. 9): v <- the LMO direction of H v. The value
dual(H v) never falls, since it is max_u <u, H v>, and max over u and v in turn; what it reaches is attained, but may be
a local maximum, so several starts are made (the top eigenvector's direction, then random ones). It works on pairs
(u, v), so eigenvalues +-lam of one size do not stop it, and negative curvature counts.

Upper end: norm(v) <= 1 gives ||v||_F <= rho (as ||v||_F^2 <= dual(v) norm(v) <= rho ||v||_F norm(v)), so
L(x) <= rho^2 max |eigenvalue|, by Lanczos with its bracket. In the Frobenius norm both ends are one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from empirics.constants import Constant
from empirics.errors import InputError
from empirics.estimators.lanczos import Product, Spectrum, extreme_eigenvalues
from empirics.estimators.model_norm import AnyNorm, EuclideanNorm
from empirics.estimators.weights import Weights, check_finite, unflatten


@dataclass(frozen=True)
class UpperSmoothness:
    """value: largest dual(H v)/norm(v) found, attained at `direction`; upper: rho^2 times the upper end of the
    spectrum's bracket at its level; converged: the best start had at most tolerance left to climb, going on as it did,
    and Lanczos converged; starts: the value that each start reached; products: in all."""

    value: float
    upper: float
    direction: Weights
    converged: bool
    starts: tuple[float, ...]
    products: int
    spectrum: Spectrum

    @property
    def starts_agree(self) -> bool:
        """Whether all starts reached the same value to 1 %; otherwise there are local maxima."""
        return min(self.starts) >= 0.99 * max(self.starts)

    def constant(self, where: str) -> Constant:
        """L at the point: [attained, proved at the level of Lanczos' bracket]."""
        s = self.spectrum
        words = "converged" if self.converged else "not converged"
        note = (
            f"{words} after {self.products} products; eigenvalue of largest modulus {s.signed:.6g} +- {s.residual:.1g}"
        )
        level = None if self.upper == self.value or math.isinf(self.upper) else s.level
        high = max(self.upper, self.value)
        return Constant("L", self.value, "estimated", where, self.value, high, level, "norm power method", None, note)


def upper_smoothness(
    product: Product,
    norm: AnyNorm,
    like: Weights,
    tolerance: float = 1e-3,
    most_products: int = 40,
    starts: int = 3,
    seed: int = 0,
    most_climb: int = 200,
    level: float = 0.99,
) -> UpperSmoothness:
    """Both ends, with at most `most_products` for Lanczos and `most_climb` for each start; level: of Lanczos' bracket.

    Raises InputError for a product that is not finite.
    """
    if starts < 1:
        raise InputError(f"starts: {starts!r}; allowed is an integer >= 1")
    spectrum = extreme_eigenvalues(product, like, "magnitude", tolerance, most_products, seed, level=level)
    vector = spectrum.vector(spectrum.index)
    top = spectrum.modulus if spectrum.bracket is None else spectrum.bracket[1]
    upper = norm.rho(like) ** 2 * top
    if isinstance(norm, EuclideanNorm):  # the power method is Lanczos, only slower
        v = unflatten(vector, like)
        return UpperSmoothness(
            spectrum.modulus, upper, v, spectrum.converged, (spectrum.modulus,), spectrum.products, spectrum
        )
    generator = torch.Generator().manual_seed(seed + 1)
    found, products = [], spectrum.products
    for start in range(starts):
        if start:
            vector = torch.randn(spectrum.dimension, dtype=torch.float64, generator=generator)
        found.append(_climb(product, norm, norm.direction(unflatten(vector, like)), tolerance, most_climb))
        products += found[-1][3]
    value, direction, settled, _ = max(found, key=lambda one: one[0])
    converged = settled and spectrum.converged
    return UpperSmoothness(value, upper, direction, converged, tuple(f[0] for f in found), products, spectrum)


def _climb(
    product: Product, norm: AnyNorm, v: dict[str, torch.Tensor], tolerance: float, most: int
) -> tuple[float, dict[str, torch.Tensor], bool, int]:
    """(value, direction, settled, products) of one start."""
    best, at, values = 0.0, v, list[float]()
    for k in range(1, most + 1):
        size = norm.norm(v)
        if size == 0.0:
            return best, at, True, k - 1  # H v = 0
        w = product(v)
        check_finite(w, f"Hessian-vector product {k}")
        values.append(norm.dual(w) / size)
        if values[-1] > best:
            best, at = values[-1], v
        if _settled(values, tolerance):
            return best, at, True, k
        v = norm.direction(w)
    return best, at, False, most


def _settled(values: list[float], tolerance: float) -> bool:
    """Whether what is left to climb, if the last steps go on geometrically, is at most tolerance times the value.

    Two products are one step: u and v take turns. A plain stop at a small growth would stop where growth is slow.
    """
    if len(values) < 5:
        return False
    before, now = values[-3] - values[-5], values[-1] - values[-3]
    allowed = tolerance * abs(values[-1])
    if now <= 1e-12 * abs(values[-1]):
        return True
    return now <= allowed and now < before and now * now / (before - now) <= allowed
