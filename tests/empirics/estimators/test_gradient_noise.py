"""Noise of the gradient: the batch-size law by enumeration, unbiasedness and coverage over seeds, honest refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from empirics.errors import InputError
from empirics.estimators.gradient_noise import (
    LEAST_BATCHES,
    LEAST_KNOWN,
    Covariance,
    MomentumNoise,
    batch_factor,
    dual_noise,
    exact_variance,
    known_mean_sigma,
    noise_scale,
    per_sample_variance,
    squared_gradient,
    stack,
)
from empirics.estimators.lanczos import extreme_eigenvalues
from empirics.estimators.model_norm import model_norm
from empirics.estimators.weights import combine, minus
from empirics.problems.gpt_corpus import gpt
from empirics.problems.matrix_least_squares import least_squares

POPULATION = np.random.default_rng(0).standard_normal((6, 3)) @ np.diag([1.0, 2.0, 0.5])
V = float(((POPULATION - POPULATION.mean(axis=0)) ** 2).sum(axis=1).mean())


def test_the_law_for_independent_draws_by_enumeration():
    for batch in (1, 2, 3):
        means = np.array([POPULATION[list(rows)].mean(axis=0) for rows in itertools.product(range(6), repeat=batch)])
        variance = ((means - POPULATION.mean(axis=0)) ** 2).sum(axis=1).mean()
        assert variance == pytest.approx(V * batch_factor(batch), rel=1e-12)


def test_the_law_without_replacement_by_enumeration():
    for batch in (1, 2, 3, 5):
        means = np.array([POPULATION[list(rows)].mean(axis=0) for rows in itertools.combinations(range(6), batch)])
        variance = ((means - POPULATION.mean(axis=0)) ** 2).sum(axis=1).mean()
        assert variance == pytest.approx(V * batch_factor(batch, "without-replacement", 6), rel=1e-12)


def test_the_law_of_an_epoch_by_enumeration():
    for batch in (1, 2, 3):
        spreads = []
        for order in itertools.permutations(range(6)):
            means = POPULATION[list(order)].reshape(6 // batch, batch, 3).mean(axis=1)
            spreads.append(((means - means.mean(axis=0)) ** 2).sum() / (len(means) - 1))
        assert np.mean(spreads) == pytest.approx(V * batch_factor(batch, "epoch", 6), rel=1e-12)


def test_variance_equals_its_formula():
    g = np.random.default_rng(1).standard_normal((8, 4))
    found = per_sample_variance(g, 3)
    assert found.value == pytest.approx(3 * np.var(g, axis=0, ddof=1).sum(), rel=1e-12)
    assert "fewer than 32 batches" in found.note
    # The jackknife of the logarithm written out: the statistic without each batch in turn.
    out = [math.log(3 * np.var(np.delete(g, i, axis=0), axis=0, ddof=1).sum()) for i in range(8)]
    pseudo = 8 * math.log(found.value) - 7 * np.array(out)
    freedom = 8 / (stats.kurtosis(pseudo, fisher=False) - 1)
    assert 1 < freedom < 7
    half = stats.t.ppf(0.975, freedom) * stats.sem(pseudo)
    assert (found.low, found.high) == pytest.approx((found.value * math.exp(-half), found.value * math.exp(half)))


S2, D, SEEDS = 4.0, 10, 200


def batches(rng, batch, n, mean, draws):
    """Gradients [seeds, n, D] of batches at a point with that true gradient; per-sample variance S2 a coordinate."""
    if draws == "independent":
        return mean + math.sqrt(S2 / batch) * rng.standard_normal((SEEDS, n, D))
    population = rng.standard_normal((64, D))
    population = mean + (population - population.mean(axis=0)) / population.std(axis=0) * math.sqrt(S2)
    rows = rng.permuted(np.broadcast_to(np.arange(64), (SEEDS, n, 64)), axis=2)[..., :batch]
    return population[rows].mean(axis=2)


@pytest.mark.parametrize("draws", ["independent", "without-replacement"])
@pytest.mark.parametrize("mean", [0.0, 3.0], ids=["minimum", "far"])
@pytest.mark.parametrize("batch", [1, 2, 4, 16])
def test_one_variance_for_every_batch_size(batch, mean, draws):
    rng = np.random.default_rng([batch, int(mean), len(draws)])
    g = batches(rng, batch, 20, mean, draws)
    found = [per_sample_variance(one, batch, draws, 64) for one in g]
    values = np.array([f.value for f in found])
    # Four standard errors, as there are 32 such comparisons; a factor B would be 16 times off.
    assert abs(values.mean() - S2 * D) < 4 * values.std() / math.sqrt(SEEDS)
    coverage = np.mean([f.covers(S2 * D) for f in found])
    assert coverage > 0.95 - 3 * math.sqrt(0.95 * 0.05 / SEEDS)
    squares = [squared_gradient(one) for one in g]
    truth = mean**2 * D
    estimates = np.array([s.value for s in squares])
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / math.sqrt(SEEDS)
    assert np.mean([s.covers(truth) for s in squares]) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / SEEDS)
    negative = [s for s in squares if s.value < 0]
    if mean == 0.0:
        assert len(negative) > SEEDS / 4
        assert all("negative" in s.note and s.low <= s.value <= s.high for s in negative)
    else:
        assert not negative


def test_intervals_cover_93_to_97_percent():
    rng = np.random.default_rng(7)
    g = rng.standard_normal((1500, 32, D)) * 2.0 + 1.0
    hits = {"variance": 0, "gradient": 0, "sigma": 0}
    for one in g:
        hits["variance"] += per_sample_variance(one, 1).covers(S2 * D)
        hits["gradient"] += squared_gradient(one).covers(D)
        hits["sigma"] += known_mean_sigma(((one - 1.0) ** 2).sum(axis=1), "here").covers(math.sqrt(S2 * D))
    assert all(0.93 <= count / 1500 <= 0.97 for count in hits.values()), hits


SPECTRUM = 1 / np.arange(1, 41)
#: law -> (draws of a shape [repeats, n] as vectors with mean 0, E ||n||^2)
LAWS = {
    "normal in 1": (lambda r, s: r.standard_normal((*s, 1)), 1.0),
    "normal in 2": (lambda r, s: r.standard_normal((*s, 2)), 2.0),
    "normal in 50": (lambda r, s: r.standard_normal((*s, 50)), 50.0),
    "normal, spectrum 1/i^2": (lambda r, s: r.standard_normal((*s, 40)) * SPECTRUM, (SPECTRUM**2).sum()),
    "uniform": (lambda r, s: r.uniform(-1, 1, (*s, 1)), 1 / 3),
    "exponential": (lambda r, s: r.exponential(size=(*s, 1)) - 1, 1.0),
    "Laplace": (lambda r, s: r.laplace(size=(*s, 1)), 2.0),
    "normal of exponential size": (
        lambda r, s: r.standard_normal((*s, 20)) * np.sqrt(r.exponential(size=(*s, 1))),
        20.0,
    ),
}


@pytest.mark.parametrize("law", list(LAWS))
def test_intervals_of_v_and_sigma_cover_under_every_law(law):
    """From the numbers that are claimed on, within 2 %, with three standard errors of 1500 repeats for the worst."""
    draw, truth = LAWS[law]
    rng, error = np.random.default_rng(11), 3 * math.sqrt(0.95 * 0.05 / 1500)
    for measure, n, of in (
        (lambda g: per_sample_variance(g + 3.0, 1), LEAST_BATCHES, truth),
        (lambda g: known_mean_sigma((g**2).sum(axis=1), "here"), LEAST_KNOWN, math.sqrt(truth)),
    ):
        found = [measure(g) for g in draw(rng, (1500, n))]
        assert not any("fewer" in f.note for f in found)
        hits = np.mean([f.covers(of) for f in found])
        assert 0.93 - error <= hits <= 0.97 + error, (law, n, hits)


def test_too_few_batches_are_marked_and_do_cover_too_seldom():
    """The mark is no empty word: below the least numbers the worst law is covered too seldom."""
    g = np.random.default_rng(12).exponential(size=(1500, 10, 1))
    found = [per_sample_variance(one, 1) for one in g]
    assert all("fewer than 32 batches, so the interval may cover too seldom" in f.note for f in found)
    assert np.mean([f.covers(1.0) for f in found]) < 0.91
    squares = (g[:, :, 0] - 1) ** 2
    found = [known_mean_sigma(s, "here") for s in squares]
    assert all("fewer than 64 batches" in f.note for f in found)
    assert np.mean([f.covers(1.0) for f in found]) < 0.85


def test_correlated_batches_break_the_law_and_an_epoch_says_so():
    """Batches of one epoch under the wrong law are biased; under their own they are not, without an interval."""
    rng = np.random.default_rng(3)
    population = rng.standard_normal((32, D)) * 2.0
    v = float(((population - population.mean(axis=0)) ** 2).sum(axis=1).mean())
    values = {"epoch": [], "without-replacement": []}
    for _ in range(400):
        g = population[rng.permutation(32)].reshape(4, 8, D).mean(axis=1)
        for draws in values:
            values[draws].append(per_sample_variance(g, 8, draws, 32).value)
    mean, error = np.mean(values["epoch"]), np.std(values["epoch"]) / 20
    assert abs(mean - v) < 3 * error
    assert np.mean(values["without-replacement"]) - v > 10 * error
    found = per_sample_variance(g, 8, "epoch", 32)
    assert found.low is None and "not independent" in found.note


def test_noise_scale_is_a_ratio_of_means_or_not_defined():
    rng = np.random.default_rng(5)
    far = [noise_scale(3.0 + rng.standard_normal((40, D)), 4) for _ in range(200)]  # v = 4 D, |G|^2 = 9 D
    assert all(r.defined for r in far)
    assert np.mean([r.low <= 4 / 9 <= r.high for r in far]) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 200)
    at_minimum = [noise_scale(rng.standard_normal((40, D)), 4) for _ in range(50)]
    assert np.mean([r.defined for r in at_minimum]) < 0.2
    assert all(r.value is None and "covers 0" in r.note for r in at_minimum if not r.defined)


def test_exact_variance_and_sigma_of_least_squares():
    problem = least_squares(3, 4, sigma=0.7)
    x = problem.start()
    samples = [problem.sample_gradient(x, i) for i in range(problem.samples)]
    _, g = problem.value_and_gradient(x)
    assert exact_variance(samples) == pytest.approx(0.49, rel=1e-12)
    squares = sum((minus(s, g)["X"] ** 2).sum().item() for s in samples) / len(samples)
    assert squares == pytest.approx(0.49, rel=1e-12)
    norm = model_norm("spectral", x)
    noises = [minus(s, g) for s in samples]
    duals = [norm.dual(n) for n in noises]
    assert dual_noise(norm, noises, "here").value == pytest.approx(np.mean(duals), rel=1e-12)
    assert np.mean(duals) <= norm.rho(x) * 0.7


def test_covariance_of_a_gpt_is_exact_by_enumeration():
    problem = gpt(bytes((7 * i * i + i) % 256 for i in range(4000)), sequences=5, width=8, context=8)
    x = problem.start()
    samples = [problem.sample_gradient(x, i) for i in range(5)]
    found = Covariance.of(samples)
    assert found.trace == pytest.approx(exact_variance(samples), rel=1e-10)
    assert found.trace == pytest.approx(problem.objective.sequence_variance(x), rel=1e-8)
    rows = stack(samples)
    directions = np.random.default_rng(0).standard_normal((3, rows.shape[1]))
    dense = np.cov(rows.T, bias=True)
    np.testing.assert_allclose(found.along(torch.from_numpy(directions)), np.diag(directions @ dense @ directions.T))
    top = extreme_eigenvalues(found.product, x, "top", 1e-6)
    centred = rows - rows.mean(axis=0)
    assert top.converged and top.top == pytest.approx(np.linalg.eigvalsh(centred @ centred.T)[-1] / 5, rel=1e-5)


def test_dual_noise_never_grows_with_the_batch_and_stays_below_rho_sigma():
    problem = least_squares(2, 3, sigma=1.0, terms=2)
    x = problem.start()
    _, g = problem.value_and_gradient(x)
    norm = model_norm("spectral", x)
    noises = [minus(problem.sample_gradient(x, i), g) for i in range(4)]
    means = []
    for batch in (1, 2, 3, 4):  # all draws with replacement
        draws = itertools.product(noises, repeat=batch)
        means.append(np.mean([norm.dual(combine([(1 / batch, n) for n in draw])) for draw in draws]))
        assert means[-1] <= norm.rho(x) / math.sqrt(batch) * (1 + 1e-12)
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(means))


def test_momentum_noise_equals_its_sum():
    problem = least_squares(2, 3, sigma=1.0)
    x = problem.start()
    _, g = problem.value_and_gradient(x)
    generator = torch.Generator().manual_seed(0)
    noises = [minus(problem.draw(x, 1, generator), g) for _ in range(6)]
    norm = model_norm("spectral", x)
    stream = MomentumNoise(norm, 0.3)
    for k, n in enumerate(noises):
        stream.add(n)
        direct = combine([(0.3 * 0.7 ** (k - i), noises[i]) for i in range(k + 1)])
        assert stream.noise_norm[k] == pytest.approx(norm.dual(direct), rel=1e-12)


@pytest.mark.parametrize(
    ("gradients", "reason"),
    [
        (np.ones((1, 3)), "1 batch"),
        (np.ones((5, 3)), "all 5 gradients are equal"),
        (np.array([[1.0, 2.0], [math.nan, 1.0], [0.0, 0.0]]), "batch 1 is not finite"),
        (np.random.default_rng(0).standard_normal((2, 3)), "at least 3"),
    ],
)
def test_samples_that_say_nothing(gradients, reason):
    found = per_sample_variance(gradients, 1)
    assert not found.applicable and reason in found.reason and "\n" not in found.reason
    assert found.value is None and found.low is None


def test_other_means_that_say_nothing():
    assert "1 sample" in squared_gradient(np.ones((3, 2))).reason
    assert "all 2 samples are" in squared_gradient(np.ones((4, 2))).reason
    assert "all 3 samples" in known_mean_sigma(np.ones(3), "here").reason
    assert "at least 3" in known_mean_sigma(np.arange(2.0), "here").reason


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: batch_factor(0), "batch: 0"),
        (lambda: batch_factor(True), "batch: True"),
        (lambda: batch_factor(2, "shuffled"), "draws: 'shuffled'; allowed are independent"),
        (lambda: batch_factor(4, "without-replacement", 4), "population: 4 for batches of 4"),
        (lambda: batch_factor(4, "epoch"), "population: None"),
        (lambda: per_sample_variance(np.ones(3), 1), "gradients: shape"),
        (lambda: MomentumNoise(model_norm("frobenius", {}), 0.0), "alpha: 0.0"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_stack_keeps_order():
    gradients = [{"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3.0]])}] * 2
    assert stack(gradients).tolist() == [[1.0, 2.0, 3.0]] * 2
