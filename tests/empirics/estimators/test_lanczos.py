"""Both ends of the spectrum: against dense eigenvalues, for hard spectra, and with an honest convergence flag."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.estimators.initial_gap import minimise
from empirics.estimators.lanczos import extreme_eigenvalues
from empirics.estimators.weights import flatten, unflatten
from empirics.problems.mlp import mlp


def operator(H):
    H = torch.as_tensor(np.asarray(H, dtype=float))
    return lambda v: {"x": H @ v["x"]}


def like(d):
    return {"x": torch.zeros(d, dtype=torch.float64)}


def wishart(seed, d=50, n=60):
    g = np.random.default_rng(seed).standard_normal((n, d))
    return g.T @ g / n


def random_orthogonal(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def naive_lanczos(H, q, steps):
    """The three-term recursion written out, without reorthogonalisation."""
    q, before, beta, alphas, betas = q / np.linalg.norm(q), np.zeros_like(q), 0.0, [], []
    for _ in range(steps):
        w = H @ q - beta * before
        alphas.append(q @ w)
        w = w - alphas[-1] * q
        beta = np.linalg.norm(w)
        betas.append(beta)
        before, q = q, w / beta
    return np.diag(alphas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1)


def test_equal_to_the_recursion_from_the_same_start():
    H = wishart(0)
    start = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).numpy()
    theta = np.linalg.eigvalsh(naive_lanczos(H, start, 8))
    found = extreme_eigenvalues(operator(H), like(50), "both", 1e-12, 8, seed=5)
    assert (found.top, found.bottom) == pytest.approx((theta[-1], theta[0]), rel=1e-10)
    assert not found.converged and found.products == 8


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "H",
    [np.diag([10.0, 9.99, 1.0]), np.diag([10.0, *np.ones(30)]), wishart(0), wishart(1) - 1.0 * np.eye(50)],
    ids=["close", "spike", "wishart", "indefinite"],
)
def test_within_the_tolerance_or_not_converged(H, seed, tolerance):
    truth = np.linalg.eigvalsh(H)
    found = extreme_eigenvalues(operator(H), like(len(H)), "top", tolerance, 20, seed)
    assert found.top <= truth[-1] * (1 + 1e-12)
    if found.converged:
        assert found.residuals[-1] <= tolerance * max(abs(truth))
        assert found.top == pytest.approx(truth[-1], abs=tolerance * max(abs(truth)))
    else:
        assert found.products == 20 and found.residuals[-1] > 0
    # The residual's promise holds whether converged or not.
    assert np.abs(truth - found.top).min() <= found.residuals[-1] + 1e-12 * max(abs(truth))


def test_the_cap_of_20_products_is_not_always_enough():
    found = [extreme_eigenvalues(operator(wishart(0)), like(50), "top", 1e-6, 20, seed) for seed in range(4)]
    assert not any(one.converged for one in found)


def test_sampling_noise_is_not_iteration_error():
    """Each batch's Hessian is fixed and converges; between batches the top eigenvalue spreads, and lies above that of
    the mean Hessian on average (the largest eigenvalue is convex)."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 20))
    tops, residuals = [], []
    for batch in np.split(rows, 20):
        found = extreme_eigenvalues(operator(batch.T @ batch / 20), like(20), "top", 1e-6, 20)
        tops.append(found.top)
        residuals.append(found.residuals[-1])
        assert found.converged
    whole = np.linalg.eigvalsh(rows.T @ rows / 400)[-1]
    assert np.mean(tops) > 1.2 * whole
    assert np.std(tops) > 1e3 * max(residuals)


def test_a_new_batch_in_each_product_is_refused():
    rng = np.random.default_rng(0)

    def resampled(v):
        rows = torch.from_numpy(rng.standard_normal((30, 40)))
        return {"x": rows.T @ (rows @ v["x"]) / 30}

    with pytest.raises(InputError, match="allowed is a symmetric operator that stays the same"):
        extreme_eigenvalues(resampled, like(40), "top", 1e-6)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("H", "signed", "bottom"),
    [
        (np.diag([-5.0, 1.0, 2.0]), -5.0, -5.0),
        (np.diag([3.0, -3.0, 1.0]), 3.0, -3.0),
        (-np.eye(4), -1.0, -1.0),
        (np.array([[2.5]]), 2.5, 2.5),
        (np.array([[-2.5]]), -2.5, -2.5),
        (np.diag([4.0, 4.0, 4.0, 0.0, 0.0]), 4.0, 0.0),
    ],
    ids=["negative", "tie", "minus-one", "1x1", "-1x1", "multiple"],
)
def test_signs_and_ties(H, signed, bottom, seed):
    found = extreme_eigenvalues(operator(H), like(len(H)), "both", 1e-6, seed=seed)
    assert found.converged
    assert found.signed == pytest.approx(signed, rel=1e-12)
    assert found.modulus == pytest.approx(abs(signed), rel=1e-12)
    assert found.bottom == pytest.approx(bottom, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_a_start_that_is_orthogonal_to_the_eigenvector_finds_it(scale):
    U = random_orthogonal(12, 3)
    H = U @ np.diag([7.0, *np.linspace(-1, 1, 11)]) @ U.T
    start = {"x": torch.from_numpy(scale * (U[:, 1] + U[:, 5]))}  # un-normalised too
    found = extreme_eigenvalues(operator(H), like(12), "top", 1e-8, start=start)
    assert found.converged and found.top == pytest.approx(7.0, rel=1e-8)
    assert found.bracket is None  # its bound is for random starts
    assert abs(float(found.vector(-1) @ torch.from_numpy(U[:, 0]))) == pytest.approx(1.0, abs=1e-6)


def test_ritz_values_stand_for_the_spectrum():
    """Vectors are orthonormal and diagonal in H; the weighted values have the start's moments (Gauss quadrature)."""
    H = wishart(2) - 0.5 * np.eye(50)
    found = extreme_eigenvalues(operator(H), like(50), "both", 1e-12, 10)
    V = torch.stack([found.vector(i) for i in range(10)], dim=1).numpy()
    np.testing.assert_allclose(V.T @ V, np.eye(10), atol=1e-12)
    np.testing.assert_allclose(V.T @ H @ V, np.diag(found.values), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(H @ V - V * found.values, axis=0), found.residuals, atol=1e-12)
    q = found.basis[0].numpy()
    assert found.weights.sum() == pytest.approx(1.0, rel=1e-12)
    for power in range(1, 20):  # exact up to degree 2k - 1
        moment = q @ np.linalg.matrix_power(H, power) @ q
        assert found.weights @ found.values**power == pytest.approx(moment, rel=1e-9)


def test_zero_operator_and_zero_start():
    zero = extreme_eigenvalues(operator(np.zeros((3, 3))), like(3), start=like(3))
    assert (zero.signed, zero.converged, zero.products) == (0.0, True, 1)


@pytest.mark.parametrize("place", ["start", "minimum"])
@pytest.mark.parametrize("seed", range(3))
def test_the_perceptron_needs_at_most_40_products(place, seed):
    problem = mlp(seed=seed)
    x = problem.start() if place == "start" else minimise(problem, most_steps=100)[0]
    found = extreme_eigenvalues(lambda v: problem.hessian_product(x, v), x, "top", 1e-3, 40, seed)
    columns = [flatten(problem.hessian_product(x, unflatten(e, x))) for e in torch.eye(163, dtype=torch.float64)]
    truth = float(torch.linalg.eigvalsh(torch.stack(columns))[-1])
    assert found.converged and found.products <= 25
    assert found.top == pytest.approx(truth, rel=1e-3)
    assert found.bracket is not None and found.bracket[0] <= truth <= found.bracket[1]


def test_the_bracket_covers_at_its_level():
    """Few products, so the interval is wide; it must hold the truth in at least 90 % of the seeds at level 0.9."""
    H = np.diag([1.0, 0.98, *np.linspace(-0.5, 0.9, 28)])
    hits, finite = 0, 0
    for seed in range(200):
        found = extreme_eigenvalues(operator(H), like(30), "top", 1e-12, 9, seed, level=0.9)
        low, high = found.bracket
        hits += low <= 1.0 <= high
        finite += np.isfinite(high)
    assert hits >= 180 and finite == 200


@pytest.mark.parametrize(("products", "level"), [(7, 0.5), (12, 0.9), (20, 0.99)])
def test_the_bracket_is_the_bound_written_out(products, level):
    """P(lam_max - theta_max > eps (lam_max - lam_min)) <= 1.648 sqrt(d) exp(-sqrt(eps)(2k - 1)) for each of two ends;
    the spread lam_max - lam_min is at most that of the Ritz values over 1 - 2 eps."""
    H = wishart(3) - 0.7 * np.eye(50)
    found = extreme_eigenvalues(operator(H), like(50), "both", 1e-12, products, level=level)
    assert found.products == products
    missed = (1 - level) / (products * (products + 1))  # over all k these add up to 1 - level
    eps = found.reach / (found.top - found.bottom + 2 * found.reach)
    assert 2 * 1.648 * np.sqrt(50) * np.exp(-np.sqrt(eps) * (2 * products - 1)) == pytest.approx(missed, rel=1e-9)
    assert found.bracket == (found.modulus, max(found.top, -found.bottom) + found.reach)


def test_the_shares_of_all_numbers_of_products_add_up_to_what_may_fail():
    k = np.arange(1, 10**6)
    assert (1 / (k * (k + 1.0))).sum() == pytest.approx(1.0, abs=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_other_end_overtakes_late(seed):
    """1 stands alone and is found at once; -1.02 is the end of a dense band, and for some products looks smaller."""
    H = np.diag([1.0, *np.linspace(-1.02, -0.5, 60)])
    early = extreme_eigenvalues(operator(H), like(61), "top", 1e-2, 60, seed)
    assert early.converged and early.top > -early.bottom  # here one could stop, and would be wrong
    found = extreme_eigenvalues(operator(H), like(61), "magnitude", 1e-2, 60, seed)
    assert found.converged and found.signed == pytest.approx(-1.02, abs=1.02e-2)
    assert found.settled("magnitude") and found.settled("bottom") and found.products > early.products


def test_bad_input():
    H = operator(np.eye(2))
    with pytest.raises(InputError, match="which: 'largest'; allowed are top, bottom, magnitude, both"):
        extreme_eigenvalues(H, like(2), "largest")
    with pytest.raises(InputError, match="tolerance, most_products: 0, 40"):
        extreme_eigenvalues(H, like(2), "top", 0)
    with pytest.raises(InputError, match="level: 1.0"):
        extreme_eigenvalues(H, like(2), level=1.0)
    with pytest.raises(InputError, match="like: no parameter"):
        extreme_eigenvalues(H, {})
    with pytest.raises(InputError, match="start: not finite"):
        extreme_eigenvalues(H, like(2), start={"x": torch.tensor([1.0, float("nan")])})
    with pytest.raises(InputError, match="product 1: not finite in 'x'"):
        extreme_eigenvalues(lambda v: {"x": v["x"] * float("inf")}, like(2))
