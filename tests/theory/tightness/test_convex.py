"""Convex quadratics: every step an LMO step, gradient norm and L against the closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

from theory.errors import InputError
from theory.tightness.convex import CONSTANT, convex_orbit, tau

ROUND_OFF = 1e-12  # sums of at most 10 numbers of size 10


@pytest.mark.parametrize("norm", ["l_1", "l_inf"])
@pytest.mark.parametrize("delay", range(5))
def test_orbit(norm, delay):
    H, points, L = convex_orbit(norm, delay)
    period, n = points.shape
    stated = float(CONSTANT.subs(tau, delay))
    assert np.linalg.eigvalsh(H).min() > -ROUND_OFF and period == 2 * n
    corners = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    assert pytest.approx(np.abs(H).max() if norm == "l_1" else np.abs(corners @ H).sum(axis=1).max()) == L
    for k in range(period):
        step = points[(k + 1) % period] - points[k]
        stale, here = H @ points[(k - delay) % period], H @ points[k]
        length, dual = (np.abs(step).sum(), np.abs(stale).max()) if norm == "l_1" else (
            np.abs(step).max(), np.abs(stale).sum())  # fmt: skip
        assert length == 1 and -step @ stale == pytest.approx(dual, abs=ROUND_OFF)
        size = np.abs(here).max() if norm == "l_1" else np.abs(here).sum()
        assert size / L == pytest.approx(stated, abs=ROUND_OFF)
    wrong = [H @ points[(k - delay - 2) % period] @ (points[k] - points[(k + 1) % period]) for k in range(period)]
    assert min(wrong) < dual - 1e-6


def test_limits():
    assert sp.limit(CONSTANT / (tau + sp.Rational(1, 2)), tau, sp.oo) == 2 / sp.pi
    assert sp.simplify(CONSTANT.subs(tau, 0)) == sp.Rational(1, 2)
    assert sp.simplify(CONSTANT.subs(tau, 1) - (1 + sp.sqrt(2)) / 2) == 0


def test_bad_input():
    for norm, delay in (("l_2", 1), ("l_1", -1)):
        with pytest.raises(InputError):
            convex_orbit(norm, delay)
