"""rho exact, the effective one against its formula and a known truth, and how often its intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.estimators.model_norm import model_norm
from empirics.estimators.norm_ratio import effective_ratio, effective_rho, ratio_of, rho

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
    a, b = samples(np.random.default_rng(0), 9)
    found = effective_rho(a, b, "here", 0.9)
    assert found.value == pytest.approx(a.mean() / math.sqrt((b**2).mean()), rel=1e-13)
    out = [np.delete(a, i).mean() / math.sqrt((np.delete(b, i) ** 2).mean()) for i in range(9)]
    error = math.sqrt(8 / 9 * ((np.array(out) - np.mean(out)) ** 2).sum())
    assert found.high - found.low == pytest.approx(2 * 1.859548037530898 * error, rel=1e-9)  # t quantile .95, 8 degrees


def test_converges_to_the_truth():
    a, b = samples(np.random.default_rng(1), 40_000)
    assert effective_ratio(a, b) == pytest.approx(TRUTH, rel=2e-3)
    assert effective_rho(a, b, "here", level=0.999).covers(TRUTH)


def test_jackknife_covers_from_20_samples():
    a, b = samples(np.random.default_rng(2), 2000, 20)
    hits = np.mean([effective_rho(x, y, "here").covers(TRUTH) for x, y in zip(a, b, strict=True)])
    assert 0.93 <= hits <= 0.97, hits


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
