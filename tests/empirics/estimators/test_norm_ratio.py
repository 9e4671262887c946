"""rho exact, the effective one against its formula and a known truth, and how often its intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from empirics.errors import InputError
from empirics.estimators.model_norm import model_norm
from empirics.estimators.norm_ratio import LEAST_NOISES, effective_ratio, effective_rho, ratio_of, rho

#: Of a Gaussian vector in d dimensions in the sign geometry: E |n|_1 / sqrt(E |n|_2^2) = sqrt(2 d/pi).
D = 12
TRUTH = math.sqrt(2 * D / math.pi)


def samples(rng, *shape):
    g = rng.standard_normal((*shape, D))
    return np.abs(g).sum(axis=-1), np.sqrt((g**2).sum(axis=-1))


def test_rho_is_exact_and_attained():
    x = {"X": torch.eye(3, 5, dtype=torch.float64)}
    norm = model_norm("spectral", x)
    found = rho(norm, x)
    assert found.how == "exact" and found.value == pytest.approx(math.sqrt(3)) == ratio_of(norm, x)
    with pytest.raises(InputError, match="v: all entries are 0"):
        ratio_of(norm, {"X": torch.zeros(3, 5)})


def test_equal_to_its_formula_with_the_jackknife_written_out():
    a, b = samples(np.random.default_rng(3), 9)
    found = effective_rho(a, b, "here", 0.9)
    assert found.value == pytest.approx(a.mean() / math.sqrt((b**2).mean()), rel=1e-13)
    out = [math.log(np.delete(a, i).mean() / math.sqrt((np.delete(b, i) ** 2).mean())) for i in range(9)]
    pseudo = 9 * math.log(found.value) - 8 * np.array(out)
    freedom = 9 / (stats.kurtosis(pseudo, fisher=False) - 1) / 2
    assert 1 < freedom < 8
    half = stats.t.ppf(0.95, freedom) * stats.sem(pseudo)
    assert (found.low, found.high) == pytest.approx((found.value * math.exp(-half), found.value * math.exp(half)))
    assert "fewer than 32 noises" in found.note


def test_converges_to_the_truth():
    a, b = samples(np.random.default_rng(1), 40_000)
    assert effective_ratio(a, b) == pytest.approx(TRUTH, rel=2e-3)
    assert effective_rho(a, b, "here", level=0.999).covers(TRUTH)


LAWS = {
    "normal in 1": lambda r, s: r.standard_normal((*s, 1)),
    "normal in 2": lambda r, s: r.standard_normal((*s, 2)),
    "normal, spectrum 1/i^2": lambda r, s: r.standard_normal((*s, 40)) / np.arange(1, 41),
    "uniform": lambda r, s: r.uniform(-1, 1, (*s, 1)),
    "exponential in 5": lambda r, s: r.exponential(size=(*s, 5)) - 1,
    "normal of exponential size": lambda r, s: r.standard_normal((*s, 20)) * np.sqrt(r.exponential(size=(*s, 1))),
    "Laplace": lambda r, s: r.laplace(size=(*s, 1)),
}


@pytest.mark.parametrize("law", list(LAWS))
def test_it_covers_under_every_law_that_is_not_marked(law):
    rng, error = np.random.default_rng(2), 3 * math.sqrt(0.95 * 0.05 / 1500)
    g = LAWS[law](rng, (200_000,))
    truth = float(effective_ratio(np.abs(g).sum(axis=1), np.sqrt((g**2).sum(axis=1))))
    g = LAWS[law](rng, (1500, LEAST_NOISES))
    found = [effective_rho(np.abs(x).sum(axis=1), np.sqrt((x**2).sum(axis=1)), "here") for x in g]
    hits, marked = np.mean([f.covers(truth) for f in found]), np.mean(["too seldom" in f.note for f in found])
    if law == "Laplace":  # a single number of heavy tails: most are marked, and rightly
        assert hits < 0.92 and marked > 0.8
    else:
        assert 0.93 - error <= hits <= 0.975 + error and marked < 0.4, (hits, marked)


def test_bootstrap_covers_from_80_samples_and_refuses_fewer():
    a, b = samples(np.random.default_rng(3), 600, 80)
    found = [effective_rho(x, y, "here", method="bootstrap") for x, y in zip(a[:150], b[:150], strict=True)]
    assert all(f.method == "bootstrap, BCa" for f in found)
    assert np.mean([f.covers(TRUTH) for f in found]) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 150)
    few = effective_rho(a[0, :79], b[0, :79], "here", method="bootstrap")
    assert not few.applicable and "79 of them; the BCa interval holds from 80 on" in few.reason


def test_samples_that_say_nothing():
    assert "at least 2" in effective_rho(np.ones(1), np.ones(1), "here").reason
    assert "all 3 samples are 1" in effective_rho(np.ones(3), np.ones(3), "here").reason
    assert "sample 1 is nan" in effective_rho(np.array([1.0, math.nan]), np.ones(2), "here").reason
    with pytest.raises(InputError, match="frobenius: shape"):
        effective_rho(np.ones(2), np.ones(3), "here")
    with pytest.raises(InputError, match="method: 'percentile'"):
        effective_rho(np.ones(2), np.ones(2), "here", method="percentile")
