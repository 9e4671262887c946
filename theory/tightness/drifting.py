"""One-dimensional orbits that drift for ever: never worse than the bounded ones. Kind: upper bound, by linear programs.

From tau = 2 on delayed sign descent can drift through a periodic landscape whose slope has mean zero. On a ring of R
lattice points (spatial period R eta, L = eta = 1) an orbit that winds to the right needs
    sum over the ring of f(p+1) - f(p) >= 0,
else f falls for ever. Since f' is 1-Lipschitz, f(p+1) - f(p) <= (f'(p) + f'(p+1))/2 + 1/4, so sum f'(p) >= -R/4: with
the Lipschitz and sign constraints a linear program whose value bounds the average of |f'(x_k)| of every such f.
Statement: for R <= 2 tau + 4 it stays below 0.56 (1/2 + tau^2/(2 tau+1)), the bounded orbits' value (tau = 2..4); for
tau = 0 and 1 only |f'| <= 1/4 is left. Checked by tests/theory/tightness/test_one_dimension.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

from theory.tightness.lattice import check_natural


def drifting_orbits(tau: int, ring: int) -> Iterator[tuple[list[int], list[int]]]:
    """(signs, visits in one period) on the ring, for every orbit that winds to the right from its own start."""
    check_natural("tau", tau)
    check_natural("ring", ring, 2)
    todo: list[dict[int, int]] = [{0: 1}, {0: -1}]
    while todo:
        signs = todo.pop()
        x = [0]
        seen: dict[tuple[int, ...], int] = {}
        while True:
            k = len(x) - 1
            if k >= tau:
                state = (x[k] % ring, *(p - x[k] for p in x[k - tau : k]))
                if state in seen:
                    if x[k] > x[seen[state]]:  # a unit step cannot jump: every point of the ring is visited
                        period = [p % ring for p in x[seen[state] : k]]
                        yield [signs[p] for p in range(ring)], [period.count(p) for p in range(ring)]
                    break
                seen[state] = k
            point = x[max(k - tau, 0)] % ring
            if point not in signs:
                todo += [{**signs, point: 1}, {**signs, point: -1}]
                break
            x.append(x[k] - signs[point])


def steepest_drift(tau: int, ring: int) -> float | None:
    """An upper bound on the average of |f'| over all drifting orbits of that spatial period; None if there is none."""
    values = []
    for signs, visits in drifting_orbits(tau, ring):
        sign = np.array(signs, dtype=float)
        slope = np.diag(sign)  # f' at the points, as rows over |f'|
        change = slope - np.roll(slope, -1, axis=0)
        result = linprog(
            -np.array(visits) / sum(visits),
            A_ub=np.vstack([change, -change, -sign]),
            b_ub=np.append(np.ones(2 * ring), ring / 4),
            bounds=(0, None),
            method="highs",
        )
        if result.status == 0:
            values.append(-float(result.fun))
    return max(values, default=None)
