"""Which half periods can attain Theorem 1s under sign descent; the identity for quadratics."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from theory.errors import InputError
from theory.tightness.periodic import times
from theory.tightness.sign_limits import bound, eligible_waves
from theory.tightness.sign_orbit import sign_orbit


@pytest.mark.parametrize("tau", [1, 2, 3, 4])
def test_the_identity_for_quadratics(tau):
    """Average gradient norm = average of half the sum of <H d_k, d_{k+j}> over |j| <= tau, exactly."""
    orbit = sign_orbit(tau)
    period = len(orbit.points)
    steps = [orbit.step(k) for k in range(period)]

    def half_sum(reach: int) -> Fraction:
        pairs = [
            sum(a * b for a, b in zip(times(orbit.H, steps[k]), steps[(k + j) % period], strict=True))
            for k in range(period)
            for j in range(-reach, reach + 1)
        ]
        return sum(pairs, Fraction(0)) / 2 / period

    assert sum(orbit.gradient_norms()) / period == half_sum(tau)
    assert half_sum(tau) != half_sum(tau - 1)
    if tau == 1:  # attained: the coordinates that carry H d_k keep their sign over three steps
        for k in range(period):
            for i, value in enumerate(times(orbit.H, steps[k])):
                assert value == 0 or len({steps[(k + j) % period][i] for j in (-1, 0, 1)}) == 1


def test_bounds():
    assert bound(1, 4) == pytest.approx(1.5, abs=1e-6)  # the solver's tolerance
    assert bound(2, 5) == pytest.approx(2, abs=1e-6)
    assert bound(2, 6) == pytest.approx(13 / 6, abs=1e-6)
    assert bound(2, 7) == pytest.approx(1.4357, abs=1e-4)
    for half_period in (5, 6, 7):
        assert bound(2, half_period) < 2.5 - 0.3
    assert bound(2, 2) == 0.0


def test_the_program_meets_the_stored_orbits():
    assert bound(2, 6) == pytest.approx(float(sign_orbit(2).gradient_norms()[0]), abs=1e-6)
    assert replace(sign_orbit(2)).smoothness == 1


def test_waves():
    assert eligible_waves(2, 5) == [(1,) * 5] and eligible_waves(2, 4) == []
    assert len(eligible_waves(2, 7)) == 2 and len(eligible_waves(2, 8)) == 4
    with pytest.raises(InputError, match="coordinates"):
        bound(2, 8)
    with pytest.raises(InputError, match="tau="):
        eligible_waves(-1, 3)
