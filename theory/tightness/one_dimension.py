"""The delay constant in one dimension: a lower bound for every norm. Kind: exact over the orbits enumerated.

Setting: alpha = 1, no noise, L = eta = 1. Statement: over all L-smooth f and all periodic orbits of width below
2 tau + 8 that the method reaches from its own start, the largest average of |f'(x_k)| is
    1/2 + tau^2/(2 tau + 1),
the largest minimum is 1/2, and f = x^2/2 attains both at once. The average at x_{(k-tau)+} over K steps differs from
that at x_k by O(1/K), so both metrics have this limit.

Why a lower bound for every norm: with a vector u of dual norm 1 take f(x) = phi(<u, x>); then dn(grad f) = |phi'|, L is
that of phi, and an LMO step moves <u, x> by -eta sign(phi').
The budget: a bounded orbit has an f that is bounded below (continue it upwards outside), so Delta0 is fixed and
Delta0/(eta K) -> 0; on x^2/2 from x_0 = 1/2 it is 1/8. Orbits that drift for ever are in `drifting`: far below.
The minimum: a bounded orbit visits two neighbours of opposite sign, whose |f'| sum to at most 1.
Checked by tests/theory/tightness/test_one_dimension.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from theory.symbols import symbols
from theory.tightness.lattice import Orbit, check_natural, cycles, steepest

(tau,) = symbols("tau")
AVERAGE = sp.Rational(1, 2) + tau**2 / (2 * tau + 1)
MINIMUM = sp.Rational(1, 2)


@dataclass(frozen=True)
class WorstCase:
    """The orbit of the largest average of |f'|, in units of L eta.

    slopes: position -> f' there, for an f that attains the average; orbits: how many orbits were compared.
    """

    average: Fraction
    orbit: Orbit
    slopes: dict[int, Fraction]
    orbits: int


def steepest_on(orbit: Orbit) -> tuple[Fraction, dict[int, Fraction]] | None:
    """The largest average of |f'| over a period of the orbit, and f' on its points; None where f falls for ever.

    Points between those visited, which longer steps may jump over, take the signs of the best f.
    """
    points = range(min(orbit.positions), max(orbit.positions) + 1)
    weights = [orbit.positions.count(p) for p in points]
    patterns: list[list[int]] = [[]]
    for p in points:
        choices = [orbit.signs[p]] if p in orbit.signs else [1, -1]
        patterns = [[*signs, choice] for signs in patterns for choice in choices]
    best: tuple[Fraction, list[Fraction], list[int]] | None = None
    for signs in patterns:
        found = steepest(signs, weights)
        if found is not None and (best is None or found[0] > best[0]):
            best = (*found, signs)
    if best is None:
        return None
    value, levels, signs = best
    return value / len(orbit.positions), {p: s * t for p, s, t in zip(points, signs, levels, strict=True)}


def worst_case(tau: int, width: int | None = None, coefficient: int = 0, lag: int = 1) -> WorstCase:
    """The largest average over all orbits narrower than `width` (default 2 tau + 8), without or with correction."""
    check_natural("tau", tau)
    found: list[tuple[Fraction, dict[int, Fraction], Orbit]] = []
    for orbit in cycles(tau, 2 * tau + 8 if width is None else width, coefficient, lag):
        best = steepest_on(orbit)
        if best is not None:
            found.append((*best, orbit))
    average, slopes, orbit = max(found, key=lambda item: item[0])
    return WorstCase(average, orbit, slopes, len(found))


def quadratic_run(tau: int, steps: int) -> list[Fraction]:
    """x_0 = 1/2, ..., x_steps of delayed sign descent on x^2/2 with L = eta = 1: periodic from the start."""
    check_natural("tau", tau)
    check_natural("steps", steps)
    x = [Fraction(1, 2)]
    for k in range(steps):
        x.append(x[k] - (1 if x[max(k - tau, 0)] > 0 else -1))
    return x
