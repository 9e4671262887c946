"""One-dimensional sign descent on a lattice: every sign pattern of f', and the steepest f for each. Kind: exact.

Units L = eta = 1. In one dimension every norm is a multiple of |x|, the LMO step is -sign(f'), so without noise and at
alpha = 1 the iterates stay on x_0 + Z and the run depends on f only through the signs of f' on the lattice. `cycles`
assigns a sign to a point when the run first asks for it, both ways, from the method's own start (the first tau + 1
gradients are taken at x_0), so each reachable periodic orbit of width below `width` is found once.

`steepest` is the largest value of sum_p w_p |f'(p)| over all L-smooth f with that sign pattern. f' is 1-Lipschitz iff
neighbours obey |t_p - t_{p+1}| <= 1 for equal signs and t_p + t_{p+1} <= 1 for opposite ones, t = |f'|. Each constraint
has two variables with coefficients +-1, so the vertices of this polyhedron are half-integral, and a dynamic program
over half-integers is exact. A pattern without a sign change has no largest value: f would be unbounded below.

With t = 0 the sign is the direction that the LMO chose there, the same at each visit. Checked by
tests/theory/tightness/test_one_dimension.py (against scipy's linear programs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from theory.errors import InputError


def check_natural(name: str, value: object, low: int = 0) -> int:
    """`value` as an int >= low; InputError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise InputError(f"{name}={value!r} is not allowed: {name} must be an integer >= {low}")
    return value


@dataclass(frozen=True)
class Orbit:
    """A periodic orbit of the method from its own start: positions of one period, and the signs that cause it.

    updates: U_k / eta of the same steps; signs: position -> sign of f' there, every point the run has asked for.
    """

    positions: tuple[int, ...]
    updates: tuple[int, ...]
    signs: Mapping[int, int]


def cycles(tau: int, width: int, coefficient: int = 0, lag: int = 1) -> Iterator[Orbit]:
    """Every periodic orbit of x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}), U_k = -sign f'(x_{(k-tau)+}), narrower than
    `width`. c = 0: no correction. Missing U_j (j < 0) are U_0.
    """
    check_natural("tau", tau)
    check_natural("width", width, 1)
    check_natural("coefficient", coefficient)
    check_natural("lag", lag, 1)
    todo: list[dict[int, int]] = [{0: 1}]  # the mirror image {0: -1} gives mirrored orbits
    while todo:
        signs = todo.pop()
        found = _run(signs, tau, width, coefficient, lag)
        if isinstance(found, int):
            todo += [{**signs, found: 1}, {**signs, found: -1}]
        elif found is not None:
            yield found


def _run(signs: Mapping[int, int], tau: int, width: int, c: int, lag: int) -> Orbit | int | None:
    """The orbit; or the point whose sign is needed; or None where the run leaves the width."""
    x, updates = [0], list[int]()
    seen: dict[tuple[int, ...], int] = {}
    while True:
        k = len(updates)
        if k >= tau + lag:  # from here on the state decides all that follows
            state = (*x[k - tau :], *updates[k - lag :]) if c else tuple(x[k - tau :])
            if state in seen:
                return Orbit(tuple(x[seen[state] : k]), tuple(updates[seen[state] :]), dict(signs))
            seen[state] = k
        point = x[max(k - tau, 0)]
        if point not in signs:
            return point
        updates.append(-signs[point])
        x.append(x[k] + updates[k] + c * (updates[k] - updates[max(k - lag, 0)]))
        if max(x) - min(x) >= width:
            return None


def steepest(signs: Sequence[int], weights: Sequence[int]) -> tuple[Fraction, list[Fraction]] | None:
    """The largest sum of weights times |f'| over neighbouring lattice points with these signs, and the |f'| of one f.

    None where the value is unbounded: no change of sign. Raises InputError for lists of other lengths.
    """
    if len(signs) != len(weights) or not signs:
        raise InputError(f"signs and weights: lengths {len(signs)} and {len(weights)}; equal lengths >= 1 are needed")
    if len(set(signs)) == 1:
        return None
    top = 2 * len(signs)  # |f'| is at most the distance to a change of sign; levels are doubled
    best: dict[int, tuple[int, list[int]]] = {t: (weights[0] * t, [t]) for t in range(top + 1)}
    for i in range(1, len(signs)):
        same = signs[i] == signs[i - 1]
        grown: dict[int, tuple[int, list[int]]] = {}
        for t in range(top + 1):
            levels_before = range(max(0, t - 2), t + 3) if same else range(3 - t)
            before = [best[u] for u in levels_before if u in best]
            if before:
                value, levels = max(before)
                grown[t] = (value + weights[i] * t, [*levels, t])
        best = grown
    value, levels = max(best.values())
    return Fraction(value, 2), [Fraction(level, 2) for level in levels]
