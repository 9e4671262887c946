"""White noise: variances against sums over the noises themselves, break-even points."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from theory.errors import InputError
from theory.feedback import noise
from theory.feedback.linear import FORMS
from theory.lmo.parts import alpha


def by_impulse_response(form: str | None, tau: int, a: float) -> float:
    """Sum of squares of the displacement that one unit noise causes, from the method's definition, eta = 1."""
    steps = 4000
    m = a * (1 - a) ** np.arange(steps)  # momenta after an impulse; stationary: no start
    U = -np.concatenate([np.zeros(2 * tau + 2), m])
    c, lag = {"extrapolate": (tau, 1), "telescoped": (1, tau), None: (0, 1)}[form]

    def shifted(j):
        return np.concatenate([np.zeros(j), U[: len(U) - j]])

    moves = U + c * (U - shifted(lag))
    x = np.concatenate([[0.0], np.cumsum(moves)])  # x_k before step k
    k = np.arange(2 * tau + 2, len(U))
    y = x[k] - c * sum(U[k - j] for j in range(1, lag + 1))
    return float(((y - x[k - tau]) ** 2).sum())


@pytest.mark.parametrize("form", [None, *FORMS])
@pytest.mark.parametrize("tau", [1, 2, 3])
def test_variance(form, tau):
    for a in (0.1, 0.37, 0.9):
        stated = float(noise.variance(form, tau).subs(alpha, a))
        assert stated == pytest.approx(by_impulse_response(form, tau, a), rel=1e-9)


def test_stated_values():
    for form in FORMS:
        assert sp.simplify(noise.variance(form, 1) / noise.variance(None, 1) - 2 * alpha) == 0
        assert noise.break_even(form, 1) == sp.Rational(1, 2)
    table = {"extrapolate": [0.382, 0.309, 0.259], "telescoped": [0.382, 0.296, 0.239]}
    for form, values in table.items():
        found = [float(noise.break_even(form, tau)) for tau in (2, 3, 4)]
        np.testing.assert_allclose(found, values, atol=5e-4)
        for tau, limit in zip((2, 3, 4), found, strict=True):
            ratio = noise.variance(form, tau) / noise.variance(None, tau)
            assert ratio.subs(alpha, 0.9 * limit) < 1 < ratio.subs(alpha, 1.1 * limit)


def test_bad_input():
    with pytest.raises(InputError, match="form="):
        noise.break_even("none", 1)
    with pytest.raises(InputError, match="tau=0"):
        noise.variance(None, 0)
