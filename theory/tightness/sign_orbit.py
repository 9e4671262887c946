"""Sign descent: periodic orbits on quadratics, found by linear programs, checked exactly. Kind: exact instances.

Norm l_inf, dual l_1, f = x'Hx/2, H_ij = h_{i-j} with h_{n+d} = -h_d (negacyclic). All coordinates run through one
triangle wave, x_i(k) = w(k - i), w(0..2n) = -n/2, -n/2 + 1, ..., n/2, ..., -n/2. Given the wave, the best h with L <= 1
is a linear program (theory.tightness.sign_search); its optima are rational and stored in sign_orbits.json. By symmetry
the gradient norm is the same at all iterates, so it bounds average and minimum alike. In units of L eta:
    tau                   1      2      3      4
    gradient norm        3/2   13/6     3    15/4
    of tau + 1/2          1    13/15   6/7    5/6          (dimension n = 2 tau + 2)
At tau = 1 this is Theorem 1s itself: for sign descent in dimension 4 the delay constant is exactly 1, with
H = (1/4) [[0,1,0,-1],[1,0,1,0],[0,1,0,1],[-1,0,1,0]], two copies of the 2 x 2 Hadamard form, for which L = 1. At n = 3
the best is 7/9 of it. H is indefinite and the orbit repels: theory.tightness.clock leads the method's own start to it,
decides its ties (one zero coordinate of the gradient per iterate at even n) and keeps f bounded below, in one more
dimension and with L <= 1 + O(eps).

Operator norm: f(diag X) on n x n matrices has the same L, a diagonal gradient, nuclear norm = l_1, and polar factor =
diagonal of signs. So Muon inherits each value: its constant at tau = 1 is 1 too, on 4 x 4 matrices
(5 x 5 with the clock).
Checked by tests/theory/tightness/test_orbits.py.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

from theory.errors import InputError
from theory.tightness.periodic import PeriodicOrbit

STORE = Path(__file__).with_name("sign_orbits.json")


@cache
def stored_rows() -> dict[int, tuple[Fraction, ...]]:
    """Delay -> first column h_0, ..., h_{n-1} of H, as stored."""
    data = json.loads(STORE.read_text(encoding="utf-8"))
    return {int(tau): tuple(Fraction(entry) for entry in row) for tau, row in data["h"].items()}


def triangle_orbit(tau: int, h: tuple[Fraction, ...]) -> PeriodicOrbit:
    """The triangle-wave orbit on the negacyclic quadratic with first column h; symmetric iff h_{n-d} = -h_d."""
    n = len(h)
    H = tuple(tuple(h[i - j] if i >= j else -h[n + i - j] for j in range(n)) for i in range(n))
    wave = [Fraction(-n, 2) + min(k, 2 * n - k) for k in range(2 * n)]
    points = tuple(tuple(wave[(k - i) % (2 * n)] for i in range(n)) for k in range(2 * n))
    return PeriodicOrbit("l_inf", tau, H, points)


def sign_orbit(tau: int) -> PeriodicOrbit:
    """The best stored orbit for that delay. Raises InputError where none is stored."""
    if tau not in stored_rows():
        known = ", ".join(map(str, stored_rows()))
        raise InputError(f"tau={tau!r}: no orbit of sign descent is stored; known: {known}")
    return triangle_orbit(tau, stored_rows()[tau])
