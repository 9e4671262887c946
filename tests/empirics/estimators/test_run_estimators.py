"""What is measured along a run, on runs of the real optimizer: equal to the paths' own arrays, and to known truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from empirics.errors import InputError
from empirics.estimators.delay_bias import DelayBias, delay_bias
from empirics.estimators.hessian_lipschitz import along_path, hessian_change
from empirics.estimators.lmo_inexactness import LmoInexactness
from empirics.estimators.model_norm import ModelNorm, model_norm
from empirics.estimators.momentum_lag import PARTS, MomentumLag, momentum_error
from empirics.estimators.start_error import start_error
from empirics.estimators.trajectory import Trajectory, over_runs, paired_over_runs
from empirics.estimators.update_drift import UpdateDrift, dbar
from empirics.estimators.weights import combine
from empirics.lmo_path import Setting, record
from empirics.norms import get_norm
from empirics.pathwise import realised
from empirics.problems.matrix_least_squares import least_squares, random_problem
from empirics.problems.mlp import mlp
from pipeline.optim.lmo import LMO, lmo_direction

SETTINGS = [
    Setting("plain", 2, 0.05, 0.3, 12, sigma=0.2),
    Setting("sign", 1, 0.05, 0.3, 12, sigma=0.2, norm="sign"),
    Setting("corrected", 1, 0.05, 0.3, 12, sigma=0.2, correction="error-feedback"),
    Setting("telescoped", 3, 0.05, 0.3, 12, sigma=0.2, correction="error-feedback", form="telescoped"),
]


def path_of(setting):
    problem = random_problem(3, 4, seed=1)
    return record(problem, setting, problem.noise(setting.sigma, setting.updates, 0))


def weights(array):
    return {"X": torch.from_numpy(np.ascontiguousarray(array))}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_streams_equal_the_arrays_of_the_path(setting):
    path = path_of(setting)
    problem, values = path.problem, realised(path)
    norm = model_norm(setting.norm, weights(path.x[0]))
    first = setting.updates - setting.K
    run, drift, bias = Trajectory(norm), UpdateDrift(norm, setting.eta, setting.alpha), DelayBias(norm)
    for k in range(first, setting.updates):
        at, taken = path.y[k], path.taken[k]
        run.add(float(problem.f(at)), weights(problem.grad(at)))
        drift.add(weights(at), weights(taken))
        bias.add(weights(problem.grad(taken)), weights(problem.grad(at)))
        error = momentum_error(norm, weights(path.m[k]), weights(problem.grad(at)))
        assert error == pytest.approx(values["error_norm"][k - first], rel=1e-10)
    np.testing.assert_allclose(run.f, values["f_now"], rtol=1e-12)
    np.testing.assert_allclose(run.grad_norm, values["grad_norm"], rtol=1e-10)
    assert run.mean_grad_norm == pytest.approx(values["mean_grad_norm"], rel=1e-10)
    np.testing.assert_allclose(bias.bias, values["delay_bias"], rtol=1e-9, atol=1e-12)
    if first:
        np.testing.assert_allclose(drift.delta, values["delta"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(drift.weighted, values["delta_mean_weighted"], rtol=1e-9, atol=1e-12)
        assert drift.dbar == pytest.approx(values["dbar"], rel=1e-10)
    else:
        assert max(drift.delta) <= setting.tau * (1 + 1e-9)  # at most tau steps away, a known truth
        assert max(bias.bias) <= problem.L(setting.norm) * setting.eta * setting.tau * (1 + 1e-9)  # lemma B


@pytest.mark.parametrize("setting", SETTINGS[:2], ids=lambda s: s.name)
def test_momentum_error_is_the_sum_of_its_parts(setting):
    path = path_of(setting)
    problem, a = path.problem, setting.alpha
    norm = model_norm(setting.norm, weights(path.x[0]))
    stream = MomentumLag(norm, a, weights(path.m0))
    for k in range(setting.updates):
        now, stale = problem.grad(path.x[k]), problem.grad(path.taken[k])
        stream.add(weights(now), weights(stale), weights(stale + path.noise[k]))
        np.testing.assert_allclose(stream.error["X"].numpy(), path.m[k] - now, rtol=0, atol=1e-12)
        # Each part by its own sum, not by a recursion.
        discount = (1 - a) ** np.arange(k, -1, -1)[:, None, None]
        noise = (a * discount * path.noise[: k + 1]).sum(axis=0)
        numpy_norm = get_norm(setting.norm)
        assert stream.parts["noise"][k] == pytest.approx(numpy_norm.dual(noise), rel=1e-10)
        start = (1 - a) ** (k + 1) * (path.m0 - problem.grad(path.x[0]))
        assert stream.parts["start"][k] == pytest.approx(numpy_norm.dual(start), rel=1e-10)
        assert stream.total[k] <= sum(stream.parts[name][k] for name in PARTS) * (1 + 1e-12)
    L, eta, tau = problem.L(setting.norm), setting.eta, setting.tau
    assert max(stream.parts["lag"]) <= L * eta * (1 - a) / a * (1 + 1e-9)
    assert max(stream.parts["delay"]) <= L * eta * tau * (1 + 1e-9)
    with pytest.raises(InputError, match="alpha: 2"):
        MomentumLag(norm, 2, weights(path.m0))


def test_a_synchronous_run_has_neither_bias_nor_drift():
    path = path_of(Setting("sync", 0, 0.05, 0.3, 5))
    norm = model_norm("spectral", weights(path.x[0]))
    drift, bias = UpdateDrift(norm, 0.05, 0.3), DelayBias(norm)
    for k in range(5):
        drift.add(weights(path.x[k]), weights(path.taken[k]))
        bias.add(*(weights(path.problem.grad(x[k])) for x in (path.taken, path.x)))
    assert drift.dbar == 0.0 and bias.bias == [0.0] * 5 and bias.share == [0.0] * 5
    zero = weights(np.zeros((2, 2)))
    bias.add(zero, zero)
    assert bias.share[-1] is None  # no share of nothing
    assert delay_bias(norm, zero, zero) == 0.0


def test_start_error_exact_by_enumeration_and_by_draws():
    problem = least_squares(3, 4, sigma=0.7)
    norm = model_norm("spectral", problem.start())
    zero = start_error(problem, norm)
    assert zero.how == "exact"
    assert zero.value == pytest.approx(get_norm("spectral").dual(problem.problem.grad(np.zeros((3, 4)))), rel=1e-12)
    every = start_error(problem, norm, "gradient")
    assert every.how == "exact" and every.value <= norm.rho(problem.start()) * 0.7  # E0 <= rho sigma
    noise = problem.problem.noise_matrices(0.7, 4, 0)
    signs = np.array([[2.0 * ((i >> j) & 1) - 1 for j in range(4)] for i in range(16)])
    naive = get_norm("spectral").dual(np.einsum("ij,jab->iab", signs, noise)).mean()
    assert every.value == pytest.approx(naive, rel=1e-12)
    drawn = start_error(problem, norm, "gradient", batch=2, draws=400)
    pairs = (signs[:, None] + signs[None]).reshape(-1, 4) / 2
    truth = get_norm("spectral").dual(np.einsum("ij,jab->iab", pairs, noise)).mean()
    assert drawn.how == "estimated" and drawn.covers(truth)
    with pytest.raises(InputError, match="momentum_start: 'random'"):
        start_error(problem, norm, "random")


def test_start_error_covers_at_its_level():
    problem = least_squares(2, 3, sigma=1.0)
    norm = model_norm("frobenius", problem.start())
    signs = np.array([[2.0 * ((i >> j) & 1) - 1 for j in range(4)] for i in range(16)])
    noise = problem.problem.noise_matrices(1.0, 4, 0)
    pairs = (signs[:, None] + signs[None]).reshape(-1, 4) / 2
    truth = get_norm("frobenius").dual(np.einsum("ij,jab->iab", pairs, noise)).mean()
    hits = [start_error(problem, norm, "gradient", 2, 24, seed).covers(truth) for seed in range(100)]
    assert np.mean(hits) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 100)


@pytest.mark.parametrize("polar", ["exact", "newton-schulz"])
def test_inexactness_equals_what_the_optimizer_measured(polar):
    generator = torch.Generator().manual_seed(0)
    W = torch.nn.Parameter(torch.randn(4, 6, generator=generator))
    b = torch.nn.Parameter(torch.randn(5, generator=generator))
    groups = [
        {"params": [("W", W)], "norm": "spectral", "polar": polar},
        {"params": [("b", b)], "norm": "sign", "weight": 0.5},
    ]
    optimizer = LMO(groups, lr=0.1, alpha=0.5, measure=True)
    norm = ModelNorm.of_optimizer(optimizer.param_groups, {id(W): "W", id(b): "b"})
    stream = LmoInexactness(norm)
    assert all(not c.applicable for c in stream.constants().values())
    for _ in range(5):
        for p in (W, b):
            p.grad = torch.randn(p.shape, generator=generator)
        optimizer.step()
        m = {name: optimizer.state[p]["momentum"] for name, p in (("W", W), ("b", b))}
        stream.add(m, {"W": lmo_direction(m["W"], "spectral", polar), "b": lmo_direction(m["b"], "sign")})
    measured = optimizer.measured()
    found = stream.constants()
    assert found["r_lo"].value == pytest.approx(min(v.r_lo for v in measured.values()), rel=1e-6)
    assert found["r_hi"].value == pytest.approx(max(v.r_hi for v in measured.values()), rel=1e-6)
    assert found["r_lo"].n == 5 and found["r_lo"].how == "exact"
    if polar == "exact":
        assert found["r_lo"].value == pytest.approx(1.0, abs=1e-6) == found["r_hi"].value
    else:
        assert found["r_lo"].value < 0.99 and "'W'" in found["r_lo"].where


def test_a_direction_that_is_no_oracle_is_said_so():
    norm = ModelNorm({"x": ("frobenius", 1.0)})
    stream, m = LmoInexactness(norm), {"x": torch.ones(2, 2)}
    stream.add(m, {"x": -m["x"]})
    assert "no oracle at all" in stream.constants()["r_lo"].reason
    with pytest.raises(InputError, match="step 1: momentum or direction of 'x' is not finite"):
        stream.add(m, {"x": m["x"] * math.nan})


class Cubic:
    """f = sum_i c_i x_i^3/6 with Hessian diag(c x): M in the sign geometry is sum |c|, in Frobenius max |c|."""

    name, samples, convexity, floor = "cubic", None, 0.0, None
    c = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)

    def start(self):
        return {"x": torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64)}

    def value(self, x):
        return float((self.c * x["x"] ** 3).sum()) / 6

    def value_and_gradient(self, x):
        return self.value(x), {"x": self.c * x["x"] ** 2 / 2}

    def hessian_product(self, x, v):
        return {"x": self.c * x["x"] * v["x"]}


def test_hessian_lipschitz_on_a_cubic_is_exact():
    problem, x = Cubic(), Cubic().start()
    for name, direction, truth in (("sign", [1.0, -1.0, 1.0], 3.5), ("frobenius", [0.0, 1.0, 0.0], 2.0)):
        norm = model_norm(name, x)
        y = {"x": x["x"] + 0.1 * torch.tensor(direction, dtype=torch.float64)}
        found = hessian_change(problem, norm, x, y)
        assert (found.change, found.remainder) == pytest.approx((truth, truth), rel=1e-9)
        path = along_path(problem, norm, [x, y, x])
        assert path.value == pytest.approx(truth, rel=1e-9) and path.high == math.inf and path.n == 2
    assert hessian_change(problem, norm, x, x) is None
    assert "no two different" in along_path(problem, norm, [x, x]).reason


def test_hessian_lipschitz_on_a_perceptron_tends_to_the_third_derivative():
    problem = mlp(samples=8, features=2, hidden=3, outputs=1)
    x = problem.start()
    norm = model_norm("frobenius", x)
    v = norm.direction({n: torch.ones_like(p) for n, p in x.items()})
    long, short = (hessian_change(problem, norm, x, combine([(1.0, x), (t, v)])) for t in (1e-1, 1e-3))
    eps = 1e-4
    up, down = (problem.hessian_product(combine([(1.0, x), (s * eps, v)]), v) for s in (1, -1))
    third = norm.dual(combine([(1 / (2 * eps), up), (-1 / (2 * eps), down)]))
    assert short.change == pytest.approx(third, rel=1e-2) and short.remainder == pytest.approx(third, rel=1e-2)
    assert abs(short.change - third) < abs(long.change - third)


def test_a_quadratic_has_none_and_says_what_round_off_could_make():
    problem = least_squares(3, 4)
    norm = model_norm("spectral", problem.start())
    x = {"X": torch.ones(3, 4, dtype=torch.float64)}
    y = {"X": x["X"] + 0.01}
    found = along_path(problem, norm, [x, y])
    assert found.value == 0.0 and "0 is not excluded" in found.note


def test_over_runs_names_a_diverged_run_and_needs_two():
    assert over_runs("dbar", [1.0, 1.2, 0.9]).value == pytest.approx(3.1 / 3)
    assert over_runs("dbar", [1.0, math.inf]).reason == "run 1 of 2 diverged: inf"
    assert "at least 2" in dbar([1.0]).reason
    assert "all 2 samples are 1" in dbar([1.0, 1.0]).reason
    pairs = paired_over_runs("gap", [1.0, 2.0, 3.0], [0.5, 1.4, 2.6])
    assert pairs.value == pytest.approx(0.5) and pairs.high - pairs.low < 1.0
    assert "2 and 3 runs" in paired_over_runs("gap", [1.0, 2.0], [1.0, 2.0, 3.0]).reason
    assert "diverged" in paired_over_runs("gap", [1.0, math.nan], [1.0, 2.0]).reason
    with pytest.raises(InputError, match="gradient at step 0: not finite in 'X'"):
        Trajectory(model_norm("spectral", weights(np.ones((2, 2))))).add(1.0, weights(np.full((2, 2), math.nan)))
    with pytest.raises(InputError, match="dbar: no step"):
        UpdateDrift(model_norm("frobenius", {}), 0.1, 0.5).dbar  # noqa: B018
    with pytest.raises(InputError, match="eta, alpha: 0"):
        UpdateDrift(model_norm("frobenius", {}), 0, 0.5)


def test_dbar_over_seeds_covers_93_to_97_percent():
    """Normalised SGD with tau = 1 on |x|^2/2, all seeds at once: 30 steps, so that a run's average is nearly normal
    (after 6 steps its skewness is 1.7, and 10 seeds cover only 89 %)."""
    rng = np.random.default_rng(0)
    runs, eta, alpha, steps = 24_000, 0.1, 0.5, 30
    x = before = np.ones((runs, 4))
    m, last, total = np.zeros_like(x), None, np.zeros(runs)
    for _ in range(steps):
        m = (1 - alpha) * m + alpha * (before + rng.standard_normal(x.shape))
        d = m / np.linalg.norm(m, axis=1, keepdims=True)
        if last is not None:
            total += np.linalg.norm(d - last, axis=1)
        before, x, last = x, x - eta * d, d
    values = total / (steps - 1)
    truth = values[16_000:].mean()
    hits = np.mean([dbar(group).covers(truth) for group in values[:16_000].reshape(2000, 8)])
    assert 0.93 <= hits <= 0.97, hits
