"""Every problem does what the interface says: gradients, Hessians, draws and constants against independent ways."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.estimators.gradient_noise import exact_variance
from empirics.estimators.weights import combine, flatten, inner, minus, unflatten
from empirics.norms import get_norm
from empirics.problems.gpt_corpus import gpt, prefix_entropy
from empirics.problems.logistic import logistic
from empirics.problems.matrix_least_squares import MatrixLeastSquares, NoisyLeastSquares, least_squares, random_problem
from empirics.problems.mlp import mlp
from empirics.problems.noisy_quadratic import quadratic
from empirics.problems.registry import NORM_OF, PROBLEMS, make_problem, options_of

TEXT = bytes((7 * i * i + i) % 256 for i in range(4000))
MADE = {
    "least-squares": lambda: least_squares(3, 4, sigma=0.5),
    "quadratic": lambda: quadratic(spectrum=[3.0, 1.0, 0.1], noise_std=0.3),
    "logistic": lambda: logistic(20, 4),
    "mlp": lambda: mlp(10, 3, 4, 2),
    "gpt": lambda: gpt(TEXT, sequences=4, width=8, context=8),
}


@pytest.fixture(params=MADE)
def problem(request):
    return MADE[request.param]()


def moved(problem, seed=0):
    x, generator = problem.start(), torch.Generator().manual_seed(seed)
    return {n: v + 0.1 * torch.randn(v.shape, generator=generator, dtype=v.dtype) for n, v in x.items()}


def test_gradient_and_hessian_by_differences(problem):
    x, v = moved(problem), moved(problem, 1)
    eps = 1e-6
    up, down = (combine([(1.0, x), (s * eps, v)]) for s in (1, -1))
    f, g = problem.value_and_gradient(x)
    assert f == pytest.approx(problem.value(x), rel=1e-13)
    assert (problem.value(up) - problem.value(down)) / (2 * eps) == pytest.approx(inner(g, v), rel=1e-6)
    quotient = flatten(minus(problem.value_and_gradient(up)[1], problem.value_and_gradient(down)[1])) / (2 * eps)
    product = flatten(problem.hessian_product(x, v))
    torch.testing.assert_close(product, quotient, rtol=0, atol=1e-6 * float(product.abs().max()))
    w = moved(problem, 2)
    assert inner(w, problem.hessian_product(x, v)) == pytest.approx(inner(v, problem.hessian_product(x, w)), rel=1e-8)


def test_draws_are_unbiased(problem):
    x = moved(problem)
    _, g = problem.value_and_gradient(x)
    if problem.samples is None:
        draws = torch.stack([flatten(problem.draw(x, 1, torch.Generator().manual_seed(i))) for i in range(2000)])
        error = problem.known("frobenius")["sigma"].value / math.sqrt(2000)
        assert float((draws.mean(dim=0) - flatten(g)).norm()) < 4 * error
        with pytest.raises(InputError, match="samples cannot be counted"):
            problem.sample_gradient(x, 0)
        return
    samples = [problem.sample_gradient(x, i) for i in range(problem.samples)]
    mean = combine([(1 / len(samples), s) for s in samples])
    torch.testing.assert_close(flatten(mean), flatten(g), rtol=1e-10, atol=1e-13)
    one = problem.draw(x, 1, torch.Generator().manual_seed(3))
    assert min(float((flatten(one) - flatten(s)).norm()) for s in samples) < 1e-12
    several = torch.stack([flatten(problem.draw(x, 3, torch.Generator().manual_seed(i))) for i in range(300)])
    spread = float(((several - flatten(g)) ** 2).sum(dim=1).mean())
    assert spread == pytest.approx(exact_variance(samples) / 3, rel=0.25)
    for bad in (-1, len(samples)):
        with pytest.raises(InputError, match=f"sample: {bad}; allowed is an integer from 0"):
            problem.sample_gradient(x, bad)


def test_floor_convexity_and_repetition(problem):
    x, y = problem.start(), moved(problem)
    assert problem.floor[0] <= min(problem.value(x), problem.value(y))
    if problem.convexity:
        f, g = problem.value_and_gradient(x)
        gap = minus(y, x)
        assert problem.value(y) >= f + inner(g, gap) + problem.convexity / 2 * inner(gap, gap) - 1e-12
    assert all(torch.equal(v, problem.start()[n]) for n, v in x.items())
    assert problem.value(x) == problem.value(x)
    with pytest.raises(InputError, match="batch: 0; allowed is an integer >= 1"):
        problem.draw(x, 0, torch.Generator())


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 4), (2, 5)])
def test_least_squares_constants_in_every_geometry(rows, cols):
    """The dense Hessian, its eigenvalues, and L of the sign geometry by all sign matrices."""
    problem = random_problem(rows, cols, seed=4)
    x = {"X": torch.zeros(rows, cols, dtype=torch.float64)}
    noisy = NoisyLeastSquares(problem)
    columns = [flatten(noisy.hessian_product(x, unflatten(e, x))) for e in torch.eye(rows * cols, dtype=torch.float64)]
    H = torch.stack(columns).numpy()
    np.testing.assert_allclose(H, problem.hessian, rtol=1e-12, atol=1e-15)
    eigenvalues = np.linalg.eigvalsh(H)
    assert problem.L("frobenius") == pytest.approx(eigenvalues[-1], rel=1e-12)
    assert noisy.convexity == pytest.approx(eigenvalues[0], rel=1e-9)
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=rows * cols)))
    signs = np.abs(vertices @ H).sum(axis=1).max()
    if problem.L_is_exact("sign"):
        assert problem.L("sign") == pytest.approx(signs, rel=1e-12)


def test_sign_bound_beyond_enumeration_holds_and_is_sharper_than_the_sums():
    problem = random_problem(4, 4, seed=1)
    H = problem.hessian
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=16)))
    truth = np.abs(vertices @ H).sum(axis=1).max()
    sums = np.abs(problem.P).sum() * np.abs(problem.Q).sum()
    assert not problem.L_is_exact("sign") and truth <= problem.L("sign") * (1 + 1e-12)
    assert problem.L("sign") <= sums * (1 + 1e-12)
    larger = random_problem(12, 16)  # many signs: the sums give away a quarter
    assert larger.L("sign") < 0.8 * np.abs(larger.P).sum() * np.abs(larger.Q).sum()
    positive = MatrixLeastSquares(np.ones((4, 4)) + np.eye(4), np.ones((4, 4)) + np.eye(4), np.zeros((4, 4)))
    found = positive.L("sign")
    assert positive.L_is_exact("sign")
    assert found == pytest.approx(np.abs(positive.P @ np.ones((4, 4)) @ positive.Q).sum(), rel=1e-12)


def test_noise_of_least_squares_is_exact_and_rho_is_what_it_claims():
    problem = least_squares(3, 4, sigma=0.5)
    x = problem.start()
    samples = [problem.sample_gradient(x, i) for i in range(problem.samples)]
    assert problem.samples == 16 and exact_variance(samples) == pytest.approx(0.25, rel=1e-12)
    known = problem.known("spectral")
    assert known["sigma"].value == 0.5 and known["sigma"].how == known["L"].how == "exact"
    assert problem.problem.rho() == get_norm("spectral").rho(3, 4)
    assert least_squares(5, 5).known("sign")["L"].how == "bound"


@pytest.mark.parametrize("name", ["frobenius", "sign"])
def test_logistic_smoothness_is_attained_at_the_start_and_nowhere_exceeded(name):
    problem = logistic(30, 5, ridge=0.02)
    found = problem.known(name)["L"]
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))

    def size(x):
        columns = [flatten(problem.hessian_product(x, unflatten(e, x))) for e in torch.eye(5, dtype=torch.float64)]
        H = torch.stack(columns).numpy()
        return np.abs(vertices @ H).sum(axis=1).max() if name == "sign" else np.linalg.eigvalsh(H)[-1]

    assert found.how == "exact" and found.value == pytest.approx(size(problem.start()), rel=1e-12)
    assert all(size(moved(problem, seed)) < found.value for seed in range(20))
    assert logistic(30, 13).known("sign")["L"].how == "bound"


def test_prefix_entropy_by_hand():
    """Two windows share their first byte and go on differently: ln 2 at that position, nothing elsewhere."""
    inputs, targets = torch.tensor([[1, 2], [1, 3], [4, 5]]), torch.tensor([[2, 9], [3, 9], [5, 9]])
    assert prefix_entropy(inputs, targets) == pytest.approx(2 * math.log(2) / 6, rel=1e-12)
    same = torch.tensor([[1, 2], [1, 2]])
    assert prefix_entropy(same, same) == 0.0
    three = torch.tensor([[7], [7], [7]])
    ends = torch.tensor([[1], [1], [2]])
    counts = Counter([1, 1, 2])
    assert prefix_entropy(three, ends) == pytest.approx(-sum(c / 3 * math.log(c / 3) for c in counts.values()))


def test_the_gpt_cannot_go_below_its_floor():
    """Windows that begin alike: training approaches the floor from above."""
    text = b"ab" * 300 + b"ac" * 300 + b"ad" * 300
    problem = gpt(text, sequences=12, width=8, context=4)
    assert problem.floor[0] > 0.05
    x = problem.start()
    for _ in range(60):
        _, g = problem.value_and_gradient(x)
        x = combine([(1.0, x), (-0.5, g)])
    assert problem.floor[0] < problem.value(x) < 1.0 < problem.value(problem.start())


@pytest.mark.parametrize("t", [1.0, 10.0, 1e4])
def test_no_smoothness_holds_everywhere_for_a_network(t):
    """Curvature t^2 times a constant at weights that grow with t: GPT (docs/budget.md) and perceptron have no L."""
    network = MADE["gpt"]()
    x = {name: 0 * v if "norm" in name else v for name, v in network.start().items()}  # gains and biases 0
    x["layers.2.head.weight"] = torch.zeros(256, 8, dtype=torch.float64)
    x["layers.2.head.weight"][:2, 0] = torch.tensor([t, -t], dtype=torch.float64)
    along = {name: torch.zeros_like(v) for name, v in x.items()}
    along["layers.2.norm.bias"][0] = 1.0
    assert inner(along, network.hessian_product(x, along)) == pytest.approx(2 * t**2 / 256, rel=1e-9)

    network = MADE["mlp"]()
    x = {name: torch.zeros_like(v) for name, v in network.start().items()}  # tanh(0) = 0, tanh'(0) = 1
    x["layers.2.weight"][0, 0] = t
    along = {name: torch.zeros_like(v) for name, v in x.items()}
    along["layers.0.bias"][0] = 1.0
    assert inner(along, network.hessian_product(x, along)) == pytest.approx(t**2, rel=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_by_name(name, tmp_path):
    corpus = tmp_path / "text"
    corpus.write_bytes(TEXT)
    given = {"gpt": {"corpus": str(corpus), "sequences": "2"}, "quadratic": {"spectrum": "10,9.99,1"}}.get(name, {})
    problem = make_problem(name, given)
    assert problem.name == name and NORM_OF[name] and set(given) <= set(options_of(name))
    if name == "quadratic":
        assert problem.quadratic.curvatures == (10.0, 9.99, 1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_problem("rosenbrock"), "problem: 'rosenbrock'; allowed are least-squares, quadratic"),
        (lambda: make_problem("mlp", {"depth": "2"}), "option 'depth' of mlp: unknown; allowed are samples"),
        (lambda: make_problem("mlp", {"hidden": "2.5"}), "option hidden of mlp: '2.5'; allowed is an integer"),
        (lambda: make_problem("mlp", {"hidden": "99999"}), "an integer from 1 to 4096"),
        (lambda: make_problem("mlp", {"hidden": "0"}), "option hidden of mlp: '0'; allowed is an integer from 1"),
        (lambda: mlp(hidden=0), "samples, features, hidden, outputs"),
        (lambda: make_problem("logistic", {"ridge": "x"}), "option ridge of logistic: 'x'; allowed is a number"),
        (lambda: make_problem("logistic", {"ridge": "nan"}), "ridge"),
        (lambda: make_problem("quadratic", {"spectrum": "1,x"}), "spectrum: '1,x'"),
        (lambda: make_problem("quadratic", {"spectrum": "1,-1"}), "curvatures"),
        (lambda: make_problem("quadratic", {"condition": "0.5"}), "condition"),
        (lambda: make_problem("least-squares", {"terms": "20"}), "terms: 20"),
        (lambda: make_problem("least-squares", {"sigma": "-1"}), "sigma"),
        (lambda: gpt(TEXT, sequences=0), "sequences: 0"),
        (lambda: quadratic().known("spectral"), "norm: 'spectral'; allowed are sign"),
        (lambda: logistic().known("nuclear"), "norm: 'nuclear'"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises(InputError, match=said):
        call()
