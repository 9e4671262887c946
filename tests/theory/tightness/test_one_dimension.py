"""One dimension: the enumeration against linear programs, brute force and the closed form."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from theory.errors import InputError
from theory.tightness import drifting, lattice
from theory.tightness import one_dimension as one


def largest_by_solver(signs, weights) -> float:
    n = len(signs)
    slope = np.diag(np.array(signs, dtype=float))
    change = slope[1:] - slope[:-1]
    A, b = np.vstack([change, -change]), np.ones(2 * (n - 1))
    return -linprog(-np.array(weights), A, b, bounds=(0, None), method="highs").fun


def test_the_dynamic_program_is_the_linear_program():
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(2, 9))
        signs = [int(s) for s in rng.choice([-1, 1], n)]
        if len(set(signs)) == 1:
            continue
        weights = [int(w) for w in rng.integers(0, 5, n)]
        value, levels = lattice.steepest(signs, weights)
        assert float(value) == pytest.approx(largest_by_solver(signs, weights), abs=1e-9)  # the solver's tolerance
        assert value == sum(w * t for w, t in zip(weights, levels, strict=True))
        slopes = [s * t for s, t in zip(signs, levels, strict=True)]
        assert all(abs(a - b) <= 1 for a, b in itertools.pairwise(slopes)) and min(levels) >= 0


@pytest.mark.parametrize("tau", range(4))
def test_closed_form_is_the_worst_case(tau):
    found = one.worst_case(tau)
    assert found.average == one.AVERAGE.subs(one.tau, tau)
    assert found.orbits >= [1, 2, 30, 200][tau]
    visited = found.orbit.positions
    assert sum(abs(found.slopes[p]) for p in visited) / len(visited) == found.average
    wrong = one.AVERAGE.subs(one.tau, tau + 1)
    assert found.average < wrong  # an off-by-one in tau is seen


def test_wider_orbits_change_nothing():
    for tau in (1, 2):
        assert one.worst_case(tau, 4 * tau + 12).average == one.worst_case(tau).average


@pytest.mark.parametrize("tau", range(5))
def test_the_quadratic_attains_it(tau):
    """Exact average and minimum over a period, and the average of a horizon K with Delta0 = 1/8 fixed."""
    period = 4 * tau + 2
    x = one.quadratic_run(tau, 100 * period)
    norms = [abs(p) for p in x]
    assert x[period : 2 * period] == x[:period]
    assert sum(norms[:period]) / period == one.AVERAGE.subs(one.tau, tau)
    assert min(norms) == Fraction(1, 2) == one.MINIMUM
    for K in (3, 17, 200):
        gap = abs(sum(norms[:K]) / K - Fraction(str(one.AVERAGE.subs(one.tau, tau))))
        assert gap <= Fraction(period * (tau + 1), K)


def test_every_reported_orbit_is_the_method():
    """Replay each orbit: the steps follow from the signs tau steps ago, and the orbit closes."""
    for tau, c, lag in ((0, 0, 1), (2, 0, 1), (1, 1, 1), (2, 2, 1), (2, 1, 2)):
        for orbit in lattice.cycles(tau, 9, c, lag):
            n = len(orbit.positions)
            for k in range(n):
                updates = [-orbit.signs[orbit.positions[(j - tau) % n]] for j in (k, k - lag)]
                assert orbit.updates[k] == updates[0]
                step = updates[0] + c * (updates[0] - updates[1])
                assert orbit.positions[(k + 1) % n] - orbit.positions[k] == step


def test_every_sign_pattern_is_met():
    """Brute force over all patterns on 9 points finds the same best average."""
    tau, best = 2, Fraction(0)
    for signs in itertools.product((1, -1), repeat=8):
        pattern = dict(zip([-8, -7, -6, -5, -4, -3, -2, -1], signs, strict=True)) | {0: 1}
        x = [0]
        while len(x) < 200 and -8 <= x[max(len(x) - 1 - tau, 0)] <= 0:
            x.append(x[-1] - pattern[x[max(len(x) - 1 - tau, 0)]])
        if len(x) < 200 or not -8 <= min(x) <= max(x) <= 0:
            continue
        tail = x[80:200]  # 120 is a multiple of the periods 10 and 12
        found = lattice.steepest([pattern[p] for p in range(-8, 1)], [tail.count(p) for p in range(-8, 1)])
        if found and x[80:90] == x[90:100]:
            best = max(best, found[0] / len(tail))
    assert best == one.worst_case(tau, 9).average == Fraction(13, 10)


def test_drifting_orbits_stay_below():
    for tau, rings in ((0, (2, 5)), (1, (2, 4, 6)), (2, (3, 4, 6)), (3, (5, 6)), (4, (6,))):
        for ring in rings:
            value = drifting.steepest_drift(tau, ring)
            assert value is None or value < (0.26 if tau < 2 else 0.56 * float(one.AVERAGE.subs(one.tau, tau)))
    signs, visits = next(iter(drifting.drifting_orbits(2, 3)))  # they exist from tau = 2 on
    assert set(map(len, (signs, visits))) == {3}
    assert any(len(set(signs)) == 2 for signs, _ in drifting.drifting_orbits(2, 3))


@pytest.mark.parametrize("call", [
    lambda: one.worst_case(-1),
    lambda: one.worst_case(True),
    lambda: one.worst_case(1.0),
    lambda: list(lattice.cycles(1, 0)),
    lambda: lattice.steepest([1], [1, 2]),
    lambda: one.quadratic_run(1, -1),
    lambda: drifting.steepest_drift(1, 1),
])
def test_bad_input(call):
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
