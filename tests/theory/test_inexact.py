"""Theorem 1i and Nesterov's direction: what they become where the oracle is exact, and against the sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from theory import InputError, get_bound
from theory.lmo.inexact import FORMS

VALUES = dict(L=1.3, eta=0.02, alpha=0.3, tau=2, sigma=0.4, rho=1.7, Delta0=0.9, K=77, E0=0.8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("law", ["", "-nesterov"])
def test_an_exact_oracle_is_the_exact_theorem(form, law):
    inexact = get_bound(f"delayed-lmo-inexact{law}{form}").evaluate_terms(**VALUES, r_lo=1, r_hi=1)
    exact = get_bound(f"delayed-lmo{law}{form}").evaluate_terms(**VALUES)
    if form == "-median" or law:
        assert inexact == pytest.approx(exact, rel=1e-14)
    assert sum(inexact.values()) == pytest.approx(sum(exact.values()), rel=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_nesterov_without_momentum_is_the_classical(form):
    values = VALUES | dict(alpha=1.0)
    nesterov = get_bound(f"delayed-lmo-nesterov{form}").evaluate(**values)
    assert nesterov == pytest.approx(get_bound(f"delayed-lmo{form}").evaluate(**values), rel=1e-14)


@pytest.mark.parametrize("law", ["", "-nesterov"])
@pytest.mark.parametrize("tau", [0, 3])
def test_against_the_sums(law, tau):
    """The displayed inequality, with mu, R0 and N summed over the age law."""
    v = VALUES | dict(tau=tau)
    a, L, eta, K, lo, hi = v["alpha"], v["L"], v["eta"], v["K"], 0.7, 1.2
    i = np.arange(400)
    P = a * (1 - a) ** i
    left = (1 - a) ** (i + 1.0)  # the weight of m_0 at step i
    if law:
        P, left = (1 - a) * P, (1 - a) * left
        P[0] += a
    R0, N = v["E0"] * left.sum() / K, v["rho"] * v["sigma"] * np.sqrt((P**2).sum())
    mean = (P * i).sum()
    mu = mean + tau
    start = v["Delta0"] / (eta * K) + L * eta * hi**2 / 2
    expected = {
        "": start + (lo + hi) * (R0 + L * eta * hi * mu + N),
        "-shifted": start + L * eta * hi**2 * tau + (lo + hi) * (R0 + L * eta * hi * mean + N),
        "-momentum": start + hi * (R0 + L * eta * hi * mu + N),
    }
    for form, right in expected.items():
        value = get_bound(f"delayed-lmo-inexact{law}{form}").evaluate(**v, r_lo=lo, r_hi=hi)
        assert value == pytest.approx(right / lo, rel=1e-12), form
    for s in (0, 1, 5):
        distance = (P * np.abs(i + tau - s)).sum()
        right = start + (lo + hi) * (R0 + N) + L * eta * hi * (hi * mu + lo * distance)
        value = get_bound(f"delayed-lmo-inexact{law}-median").evaluate(**v, r_lo=lo, r_hi=hi, s=s)
        assert value == pytest.approx(right / lo, rel=1e-12)


def test_a_worse_oracle_never_helps():
    for form in FORMS:
        bound = get_bound(f"delayed-lmo-inexact{form}")
        best = bound.evaluate(**VALUES, r_lo=1, r_hi=1)
        assert bound.evaluate(**VALUES, r_lo=0.9, r_hi=1) > best
        assert bound.evaluate(**VALUES, r_lo=1, r_hi=1.1) > best


def test_refusals():
    with pytest.raises(InputError, match=r"r_lo <= r_hi; given r_lo=1.2, r_hi=1; here r_lo must be <= 1, or r_hi must"):
        get_bound("delayed-lmo-inexact").evaluate(**VALUES, r_lo=1.2, r_hi=1)
    with pytest.raises(InputError, match="missing r_lo, r_hi"):
        get_bound("delayed-lmo-inexact").evaluate(**VALUES)
