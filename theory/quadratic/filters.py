"""Rational update filters: mean lag, energy, and the two numbers that Theorem V takes from them. Kind: exact.

An update is a filtered gradient, U = -eta G g, G(z) = sum_{j>=0} g_j z^{-j} with G(1) = 1 (a filter with another gain
gamma is gamma G, and eta is gamma eta). T_k = g_k + g_{k+1} + ... is the weight of gradients at least k steps old.
    mean lag       g1 = sum j g_j = sum_{k>=1} T_k = -G'(1)
    energy         sum g_j^2 = (1/2 pi) int |G|^2 dw
    remainder      R = (1/2 pi) int (|G|^2 - 1)/|z-1|^2 dw = sum_{k>=1} T_k^2 - g1
    window energy  A_l = energy of G (1 + z^{-1} + ... + z^{-(l-1)})
Why R: F = (G - 1)/(z - 1) = -sum_{k>=1} T_k z^{-k} is regular at 1, and |G|^2 - 1 = |G-1|^2 + 2 Re(G-1). The first
part gives the energy of F. In the second |z-1|^2 = -(z-1)^2/z on the circle: it is -2 Re (1/2 pi i) pv int F/(z-1) dz.
F is analytic outside the circle and vanishes at infinity: the principal value is -F(1)/2, and F(1) = G'(1) = -g1.
Energies come from the Astrom-Jury recursion, in rational arithmetic; its pivots are the test of stability.
Checked by tests/theory/test_quadratic_filters.py (integrals by quadrature, sums of impulse responses).
"""

from __future__ import annotations

import sympy as sp

from theory.errors import InputError
from theory.quadratic.polynomial import beta, numerator, z


def momentum_filter(momentum: sp.Expr = beta, nesterov: bool = False) -> sp.Expr:
    """G of heavy ball and EMA momentum, or of their Nesterov form, scaled to G(1) = 1."""
    return (1 - momentum) * numerator(momentum, nesterov) / (z - momentum)


def corrected(G: sp.Expr, c: sp.Expr, lag: int) -> sp.Expr:
    """G of the corrected update U_k + c (U_k - U_{k-lag}); G itself for lag = 0."""
    return sp.together(G * (1 + c * (1 - z**-lag))) if lag else G


def mean_lag(G: sp.Expr) -> sp.Expr:
    """g1 = -G'(1)."""
    return sp.cancel(-sp.diff(normalised(G), z).subs(z, 1))


def normalised(G: sp.Expr) -> sp.Expr:
    """G in lowest terms. Raises InputError unless G(1) = 1."""
    reduced = sp.cancel(G)
    if sp.simplify(reduced.subs(z, 1) - 1) != 0:
        raise InputError(f"G={G} is not allowed: G(1) must be 1")
    return reduced


def energy(G: sp.Expr) -> sp.Expr:
    """sum g_j^2, for numbers or symbols as coefficients (symbols are taken to be stable).

    Raises InputError for a pole on or outside the unit circle and for more zeros than poles.
    """
    top, bottom = (sp.Poly(part, z) for part in sp.fraction(sp.cancel(G)))
    a, b = bottom.all_coeffs(), top.all_coeffs()
    if len(b) > len(a):
        raise InputError(f"G={G} is not allowed: it needs gradients of the future")
    b = [sp.S.Zero] * (len(a) - len(b)) + b
    total, first = sp.S.Zero, a[0]
    while True:
        if (a[0] / first).is_positive is False:
            raise InputError(f"G={G} is not stable: a pole on or outside the unit circle")
        ratio_b = sp.cancel(b[-1] / a[0])
        total += b[-1] * ratio_b
        if len(a) == 1:
            return sp.factor(sp.cancel(total / first))
        ratio_a = sp.cancel(a[-1] / a[0])
        b = [sp.cancel(x - ratio_b * y) for x, y in zip(b, reversed(a), strict=True)][:-1]
        a = [sp.cancel(x - ratio_a * y) for x, y in zip(a, reversed(a), strict=True)][:-1]


def remainder(G: sp.Expr) -> sp.Expr:
    """R = (1/2 pi) int (|G|^2 - 1)/|z-1|^2 dw. Raises InputError as `energy`, and unless G(1) = 1."""
    own = normalised(G)
    return sp.factor(energy((own - 1) / (z - 1)) - mean_lag(own))


def window_energy(G: sp.Expr, lag: int) -> sp.Expr:
    """A_lag: sum over k of (g_k + ... + g_{k-lag+1})^2. Raises InputError for lag < 1."""
    if isinstance(lag, bool) or not isinstance(lag, int) or lag < 1:
        raise InputError(f"lag={lag!r} is not allowed: lag must be an integer >= 1")
    return energy(G * sum(z**-j for j in range(lag)))
