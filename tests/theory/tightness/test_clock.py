"""The clock: own start, exact orbit after it, average and smoothness in the limit."""

from __future__ import annotations

import numpy as np
import pytest

from theory.errors import InputError
from theory.tightness.clock import clocked_run
from theory.tightness.coordinate_orbit import coordinate_orbit
from theory.tightness.sign_orbit import sign_orbit

ORBITS = [sign_orbit(tau) for tau in (1, 2, 3, 4)] + [coordinate_orbit(tau) for tau in (0, 1, 2, 3, 4)]


@pytest.mark.parametrize("orbit", ORBITS, ids=lambda orbit: f"{orbit.norm}-{orbit.tau}")
def test_the_own_start_leads_to_the_orbit(orbit):
    """Entry in a straight line of tau + 1 equal steps, then the orbit for ever: no step is off by one."""
    ramp, steps, tau = 300, 500, orbit.tau
    run = clocked_run(orbit, ramp, 1e-3, steps)
    entry = np.diff(run.w[: tau + 2], axis=0)
    assert (entry == entry[0]).all()
    for j in range(steps - tau):
        point = np.array(orbit.points[j % len(orbit.points)], dtype=float)
        np.testing.assert_array_equal(run.w[tau + 1 + j], point)  # half-integers: exact in floating point
    constant = float(orbit.gradient_norms()[0])
    assert constant <= run.norms[ramp + tau + 2 :].min() < constant + 1e-6  # the forcing is what is above it


def test_smoothness_tends_to_one():
    orbit = sign_orbit(1)
    excess = [clocked_run(orbit, ramp, 1 / ramp, 40).excess_smoothness for ramp in (10**4, 10**6)]
    assert excess[1] < 0.02 * excess[0] < 0.02


@pytest.mark.parametrize("ramp, forcing, steps", [(0, 0.1, 5), (5, 0.0, 5), (5, 1.0, 5), (5, 0.1, 0)])
def test_bad_input(ramp, forcing, steps):
    with pytest.raises(InputError):
        clocked_run(sign_orbit(1), ramp, forcing, steps)
