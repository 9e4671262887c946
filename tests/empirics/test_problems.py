"""The constants of the problems are what they claim, by independent ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.norms import NORMS, get_norm
from empirics.problems.matrix_least_squares import MatrixLeastSquares, random_problem, scalar_problem
from empirics.problems.noisy_quadratic import NoisyQuadratic


def test_gradient_against_autograd():
    problem = random_problem(3, 4, seed=2)
    X = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    A, B, Y = (torch.from_numpy(m) for m in (problem.A, problem.B, problem.Y))
    loss = ((A @ X @ B - Y) ** 2).sum() / 2
    loss.backward()
    assert problem.f(X.detach().numpy()) == pytest.approx(float(loss.detach()), rel=1e-13)
    np.testing.assert_allclose(problem.grad(X.detach().numpy()), X.grad.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", NORMS)
def test_duality_and_rho(name):
    norm = get_norm(name)
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((200, 3, 4)), rng.standard_normal((200, 3, 4))
    inner = (x * v).sum(axis=(-2, -1))
    assert (inner <= norm.norm(x) * norm.dual(v) * (1 + 1e-12)).all()
    frobenius = np.sqrt((v**2).sum(axis=(-2, -1)))
    assert (norm.dual(v) <= norm.rho(3, 4) * frobenius * (1 + 1e-12)).all()


def test_spectral_smoothness_is_attained_and_never_exceeded():
    problem = random_problem(3, 4, seed=1)
    norm, L = get_norm("spectral"), problem.L()
    assert L == pytest.approx(1.0)
    up, _, vp = np.linalg.svd(problem.P)
    uq, _, vq = np.linalg.svd(problem.Q)
    D = vp[:3].T @ np.eye(3, 4) @ uq.T  # aligns the singular vectors of P and Q
    assert norm.norm(D) == pytest.approx(1.0)
    assert norm.dual(problem.P @ D @ problem.Q) == pytest.approx(L, rel=1e-12)
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((500, 3, 4))
    changes = norm.dual(problem.P @ directions @ problem.Q) / norm.norm(directions)
    assert changes.max() <= L * (1 + 1e-12)
    assert changes.max() > 0.5 * L


@pytest.mark.parametrize("name", ["sign", "frobenius"])
def test_other_smoothness_constants_are_bounds(name):
    problem = random_problem(2, 2, seed=3)
    norm = get_norm(name)
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=4))).reshape(-1, 2, 2)
    D = np.concatenate([vertices, np.random.default_rng(0).standard_normal((500, 2, 2))])
    assert (norm.dual(problem.P @ D @ problem.Q) <= problem.L(name) * norm.norm(D) * (1 + 1e-12)).all()


def test_minimum_by_gradient_and_by_perturbation():
    problem = random_problem(3, 4, seed=5)
    X = np.linalg.lstsq(np.kron(problem.A, problem.B.T), problem.Y.ravel(), rcond=None)[0].reshape(3, 4)
    assert problem.f(X) == pytest.approx(problem.f_star, rel=1e-12)
    assert problem.f_star > 0
    assert np.abs(problem.grad(X)).max() < 1e-12


def test_noise_level_is_exact():
    problem = random_problem(3, 4)
    M = problem.noise_matrices(0.7, 4, 1)
    assert (M**2).sum() == pytest.approx(0.49, rel=1e-13)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    n = np.einsum("sj,jab->sab", signs, M)
    assert np.abs(n.mean(axis=0)).max() < 1e-15
    assert (n**2).sum(axis=(-2, -1)).mean() == pytest.approx(0.49, rel=1e-12)
    assert get_norm("spectral").dual(M[0]) == pytest.approx(problem.rho() * np.sqrt((M[0] ** 2).sum()))
    again = problem.noise(0.7, 5, 1)
    assert np.array_equal(again, problem.noise(0.7, 5, 1))
    assert not np.array_equal(again, problem.noise(0.7, 5, 2))


def test_noisy_quadratic_gradient_moments():
    problem = NoisyQuadratic((0.5, 2.0), 0.3, 1.5)
    x = problem.start(40_000)
    g = problem.gradient(x, torch.Generator().manual_seed(0))
    error = 0.3 / 40_000**0.5
    assert np.abs(g.mean(dim=0).numpy() - np.array([0.75, 3.0])).max() < 5 * error
    assert np.abs(g.std(dim=0).numpy() - 0.3).max() < 5 * error


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: MatrixLeastSquares(np.eye(2), np.eye(3), np.eye(2)), "Y"),
        (lambda: MatrixLeastSquares(np.full((2, 2), np.nan), np.eye(2), np.eye(2)), "A"),
        (lambda: MatrixLeastSquares(np.zeros((2, 2)), np.eye(2), np.eye(2)), "zero matrix"),
        (lambda: scalar_problem(0.0), "L"),
        (lambda: random_problem(0, 3), "rows"),
        (lambda: random_problem(2, 3).noise_matrices(-1.0, 1, 0), "sigma"),
        (lambda: get_norm("nuclear"), "spectral, sign, frobenius"),
        (lambda: NoisyQuadratic((), 1.0), "curvatures"),
        (lambda: NoisyQuadratic((0.0,), 1.0), "curvatures"),
        (lambda: NoisyQuadratic((1.0,), -1.0), "noise_std"),
        (lambda: NoisyQuadratic((1.0,), 1.0, float("nan")), "x0"),
    ],
)
def test_bad_input(build, field):
    with pytest.raises(InputError, match=field):
        build()
