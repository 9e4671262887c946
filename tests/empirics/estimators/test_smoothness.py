"""Smoothness along a path and at a point: against transcriptions and against constants that are known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.estimators.model_norm import EuclideanNorm, ModelNorm, model_norm
from empirics.estimators.smoothness import Window, directional
from empirics.estimators.upper_smoothness import upper_smoothness
from empirics.estimators.weights import combine, flatten
from empirics.norms import NORMS, get_norm
from empirics.problems.logistic import logistic
from empirics.problems.matrix_least_squares import least_squares
from empirics.problems.mlp import mlp
from empirics.problems.noisy_quadratic import quadratic


def points(problem, norm, steps, length):
    """A path of LMO steps, and gradients."""
    xs = [problem.start()]
    for _ in range(steps):
        _, g = problem.value_and_gradient(xs[-1])
        xs.append(combine([(1.0, xs[-1]), (-length, norm.direction(g))]))
    return xs, [problem.value_and_gradient(x)[1] for x in xs]


@pytest.mark.parametrize("name", NORMS)
def test_the_window_takes_all_pairs(name):
    problem, numpy_norm = least_squares(3, 4, seed=1), get_norm(name)
    norm = model_norm(name, problem.start())
    xs, gs = points(problem, norm, 7, 0.1)
    window = Window(norm, 3)
    for x, g in zip(xs, gs, strict=True):
        window.add(x, g)
    X, G = (np.array([v["X"].numpy() for v in vs]) for vs in (xs, gs))

    def ratio(i, j):
        return numpy_norm.dual(G[j] - G[i]) / numpy_norm.norm(X[j] - X[i])

    for j in range(1, 8):
        assert window.worst[j] == pytest.approx(max(ratio(i, j) for i in range(max(0, j - 3), j)), rel=1e-10)
        assert window.consecutive[j] == pytest.approx(ratio(j - 1, j), rel=1e-10)
    assert window.worst[0] is None and window.consecutive[0] is None
    found = window.constant()
    assert found.value == found.low == max(window.worst[1:]) and found.high == math.inf and found.n == 7
    assert found.value <= problem.problem.L(name) * (1 + 1e-12)


@pytest.mark.parametrize("name", NORMS)
def test_aligned_steps_attain_the_constant(name):
    """Along the maximising direction the ratio is L itself: nothing is lost by the estimator."""
    problem = least_squares(3, 4, seed=2)
    norm = model_norm(name, problem.start())
    x = problem.start()
    best = upper_smoothness(lambda v: problem.hessian_product(x, v), norm, x, 1e-9, starts=12, most_climb=3000)
    y = combine([(1.0, x), (0.3, best.direction)])
    gx, gy = (problem.value_and_gradient(p)[1] for p in (x, y))
    L = problem.problem.L(name)
    assert problem.problem.L_is_exact(name)
    assert directional(norm, x, y, gx, gy) == pytest.approx(L, rel=1e-4)
    assert best.value == pytest.approx(L, rel=1e-4) and best.value <= L * (1 + 1e-12) <= best.upper * (1 + 1e-12)


def test_no_step_gives_no_number():
    problem = least_squares(2, 2)
    norm = model_norm("spectral", problem.start())
    x = {"X": torch.ones(2, 2, dtype=torch.float64)}
    y = {"X": x["X"] * (1 + 1e-15)}
    _, g = problem.value_and_gradient(x)
    assert directional(norm, x, x, g, g) is None and directional(norm, x, y, g, g) is None
    window = Window(norm, 2)
    window.add(x, g)
    window.add(x, g)
    found = window.constant()
    assert not found.applicable and "no two different points among 2" in found.reason
    with pytest.raises(InputError, match="gradient at point 2: not finite in 'X'"):
        window.add(x, {"X": g["X"] * math.nan})
    with pytest.raises(InputError, match="window: 0"):
        Window(norm, 0)


def dense(product, like):
    d = sum(v.numel() for v in like.values())
    (name,) = like
    shape = like[name].shape
    eye = torch.eye(d, dtype=torch.float64)
    return torch.stack([flatten(product({name: e.reshape(shape)})) for e in eye], dim=1).numpy()


@pytest.mark.parametrize("H", [np.diag([-5.0, 1.0, 2.0]), np.diag([3.0, -3.0, 1.0]), -np.eye(3), np.zeros((3, 3))])
@pytest.mark.parametrize("name", ["sign", "frobenius"])
@pytest.mark.parametrize("seed", range(3))
def test_negative_tied_and_zero_curvature(H, name, seed):
    """Sign: max over vertices of sum |H v| by enumeration; Frobenius: the largest modulus."""
    H_torch = torch.from_numpy(H)
    like = {"x": torch.zeros(3, dtype=torch.float64)}
    found = upper_smoothness(lambda v: {"x": H_torch @ v["x"]}, model_norm(name, like), like, 1e-6, seed=seed)
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    truth = np.abs(vertices @ H).sum(axis=1).max() if name == "sign" else np.abs(np.linalg.eigvalsh(H)).max()
    assert found.converged and found.value == pytest.approx(truth, rel=1e-9, abs=1e-14)
    assert truth <= found.upper * (1 + 1e-12) + 1e-14


def test_equal_to_a_naive_power_iteration():
    """The sign geometry from the same start: v <- sign(H v), value |H v|_1, written with arrays."""
    g = np.random.default_rng(4).standard_normal((9, 6))
    H = g.T @ g
    like = {"x": torch.zeros(6, dtype=torch.float64)}
    found = upper_smoothness(lambda v: {"x": torch.from_numpy(H) @ v["x"]}, model_norm("sign", like), like, starts=1)
    v, values = np.sign(np.linalg.eigh(H)[1][:, -1]), []
    for _ in range(20):
        values.append(np.abs(H @ v).sum())
        v = np.sign(H @ v)
    assert found.value == pytest.approx(max(values), rel=1e-12)
    assert all(b >= a * (1 - 1e-12) for a, b in itertools.pairwise(values))  # it never falls


def test_the_bracket_holds_on_a_perceptron_in_the_layers_norm():
    problem = mlp(samples=16, features=2, hidden=4, outputs=2)
    x = problem.start()
    norm = model_norm("layers", x)
    assert isinstance(norm, ModelNorm)
    found = upper_smoothness(lambda v: problem.hessian_product(x, v), norm, x)
    v = found.direction
    assert norm.norm(v) == pytest.approx(1.0, rel=1e-9)
    assert norm.dual(problem.hessian_product(x, v)) == pytest.approx(found.value, rel=1e-12)  # attained
    assert found.converged and found.value <= found.upper
    for seed in range(50):  # no random direction does better
        draws = torch.Generator().manual_seed(seed)
        u = {n: torch.randn(p.shape, generator=draws, dtype=torch.float64) for n, p in x.items()}
        assert norm.dual(problem.hessian_product(x, u)) <= found.value * norm.norm(u)
    constant = found.constant("start")
    assert (constant.low, constant.high, constant.level) == (found.value, found.upper, 0.99)


def test_too_few_products_are_said_so():
    problem = least_squares()
    x = problem.start()
    norm = model_norm("spectral", x)
    found = upper_smoothness(lambda v: problem.hessian_product(x, v), norm, x, 1e-6, 3, 2, most_climb=4)
    assert not found.converged and found.products == 3 + 2 * 4
    assert "not converged after 11 products" in found.constant("start").note
    with pytest.raises(InputError, match="starts: 0"):
        upper_smoothness(lambda v: v, norm, x, starts=0)
    with pytest.raises(InputError, match="not finite in 'X'"):
        upper_smoothness(lambda v: {"X": v["X"] / 0}, norm, x)


@pytest.mark.parametrize("problem", [quadratic(6), logistic(40, 5)], ids=["quadratic", "logistic"])
@pytest.mark.parametrize("name", ["sign", "frobenius"])
def test_what_is_known_is_not_exceeded(problem, name):
    x = problem.start()
    norm = model_norm(name, x)
    found = upper_smoothness(lambda v: problem.hessian_product(x, v), norm, x)
    known = problem.known(name)["L"]
    assert found.value <= known.high * (1 + 1e-12)
    if known.how == "exact":
        assert found.value == pytest.approx(known.value, rel=1e-3)


def test_euclidean_norm_is_the_norm_of_everything_together():
    x = {"a": torch.full((2, 2), 1e200, dtype=torch.float64), "b": torch.zeros(3, dtype=torch.float64)}
    norm = model_norm("frobenius", x)
    assert isinstance(norm, EuclideanNorm) and norm.norm(x) == pytest.approx(2e200)  # no square overflows
    g = {"a": torch.ones(2, 2, dtype=torch.float64), "b": torch.ones(3, dtype=torch.float64)}
    assert norm.dual(g) == pytest.approx(math.sqrt(7)) and norm.rho(g) == 1.0
    d = norm.direction(g)
    assert norm.norm(d) == pytest.approx(1.0)
    zero = {"a": torch.zeros(2)}
    assert torch.equal(norm.direction(zero)["a"], zero["a"]) and norm.norm({}) == 0.0


@pytest.mark.parametrize("name", ["sign", "layers", "frobenius"])
def test_the_direction_attains_the_dual_norm(name):
    g = {"W": torch.randn(3, 4, dtype=torch.float64), "b": torch.randn(5, dtype=torch.float64)}
    norm = model_norm(name, g)
    d = norm.direction(g)
    assert norm.norm(d) == pytest.approx(1.0, rel=1e-9)
    assert sum(float((g[n] * d[n]).sum()) for n in g) == pytest.approx(norm.dual(g), rel=1e-9)


def test_norms_that_do_not_fit_are_refused():
    x = {"W": torch.zeros(2, 2), "b": torch.zeros(2)}
    with pytest.raises(InputError, match=r"norm: 'spectral' for 'b' of shape \(2,\); allowed are sign, frobenius"):
        model_norm("spectral", x)
    with pytest.raises(InputError, match="norm: 'nuclear'; allowed are spectral, sign"):
        model_norm("nuclear", x)
