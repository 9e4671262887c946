"""The search behind sign_orbits.json: the best negacyclic quadratic for a triangle wave, a linear program.

Variables h_0, ..., h_{n-1}; maximise ||grad f(x_0)||_1 = sum of s_i g_i, where s_i is the sign of coordinate i that the
step tau later needs, subject to s_i g_i >= 0 and s'Ht <= 1 for all sign vectors s, t. The last are 4^n: they are added
where violated, the worst s over all 2^n found exactly, until none is. Kind: heuristic search, certified afterwards by
`periodic.PeriodicOrbit`. Run as `python -m theory.tightness.sign_search 4` for all tau <= 4.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from theory.tightness.lattice import check_natural
from theory.tightness.sign_orbit import triangle_orbit

TOLERANCE = 1e-9
DENOMINATOR = 3000  # of the rounded optimum; the check afterwards is exact


def best_row(tau: int, n: int) -> tuple[Fraction, ...]:
    """The optimal h, rounded to small denominators."""
    check_natural("tau", tau)
    check_natural("n", n, 2)
    free = (n + 1) // 2  # h_{n-d} = -h_d; h_{n/2} = 0
    units = []
    for d in range(free):
        row = [Fraction(0)] * n
        row[d] += 1
        if d:
            row[n - d] -= 1
        units.append(triangle_orbit(tau, tuple(row)))
    H = np.array([unit.H for unit in units], dtype=float)  # (free, n, n)
    gradient = np.array([unit.gradient(0) for unit in units], dtype=float)  # (free, n)
    signs = -np.array(units[0].step(tau), dtype=float)
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    corners = 1.0 - 2.0 * bits  # s and -s give the same
    rows, limits = list(-(signs * gradient).T), [0.0] * n
    while True:
        result = linprog(-gradient @ signs, np.array(rows), limits, bounds=(-1, 1), method="highs")
        product = corners @ np.tensordot(result.x, H, 1)
        values = np.abs(product).sum(axis=1)
        if values.max() <= 1 + TOLERANCE:
            break
        for worst in np.argsort(-values)[:8]:
            other = np.where(product[worst] >= 0, 1.0, -1.0)
            rows.append(np.einsum("i,kij,j->k", corners[worst], H, other))
            limits.append(1.0)
    h = [Fraction(0)] * n
    for d, value in enumerate(result.x):
        h[d] = Fraction(float(value)).limit_denominator(DENOMINATOR)
        if d:
            h[n - d] = -h[d]
    return tuple(h)


def main(largest: int) -> None:
    """Print the content of sign_orbits.json: n = 2 tau + 2."""
    found = {tau: best_row(tau, 2 * tau + 2) for tau in range(1, largest + 1)}
    note = "negacyclic quadratics of theory.tightness.sign_orbit: delay -> h_0, ..., h_{n-1}"
    text = {"about": note, "h": {str(tau): [str(v) for v in row] for tau, row in found.items()}}
    print(json.dumps(text, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]))
