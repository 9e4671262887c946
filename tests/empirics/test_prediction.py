"""The delay gap from the local quadratic model: exact where the problem is one, a report on a network."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from empirics.constants import Constant, not_applicable
from empirics.errors import InputError
from empirics.estimators.spectral_measure import spectral_measure
from empirics.local_quadratic import _later_coefficients, measure_local
from empirics.monte_carlo import optimizer_of
from empirics.prediction import GapPrediction, gap_report, predict_gap, predictions, three_arms
from empirics.problems.replicas import perceptron, quadratic_sum
from empirics.replica_runs import draw_rows, run_replicas, settle
from empirics.statistics import student_interval
from theory.quadratic import QuadraticMethod

CURVATURES = torch.tensor([-0.05, 0.1, 0.3, 0.5, 1.0], dtype=torch.float64)
QUADRATIC = quadratic_sum(CURVATURES, 0.5)
LOCAL = measure_local(QUADRATIC, QUADRATIC.start)


def matrix(problem, w) -> np.ndarray:
    """The Hessian, column by column."""
    n = problem.n
    return problem.hessian_product(w.expand(n, -1), torch.eye(n, dtype=torch.float64)).numpy()


def naive_lanczos(H: np.ndarray, v: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Textbook three-term recursion without reorthogonalisation."""
    q, before, beta = v / np.linalg.norm(v), np.zeros_like(v), 0.0
    T = np.zeros((m, m))
    for j in range(m):
        w = H @ q - beta * before
        T[j, j] = q @ w
        w = w - T[j, j] * q
        before, beta = q, float(np.linalg.norm(w))
        if j + 1 < m:
            T[j, j + 1] = T[j + 1, j] = beta
            q = w / beta
    nodes, vectors = np.linalg.eigh(T)
    return nodes, vectors[0] ** 2 * (v @ v)


def test_measure_is_the_naive_recursion_and_the_eigendecomposition():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 12))
    H, V = A + A.T, rng.standard_normal((3, 12))
    product = partial(torch.matmul, other=torch.from_numpy(H))
    nodes, weights = spectral_measure(product, torch.from_numpy(V), 4)
    lam, U = np.linalg.eigh(H)
    for r, v in enumerate(V):
        other_nodes, other_weights = naive_lanczos(H, v, 4)
        np.testing.assert_allclose(nodes[r], other_nodes, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(weights[r], other_weights, rtol=1e-8, atol=1e-9)
        for power in range(8):  # exact up to degree 2 m - 1 = 7, and not beyond
            exact = ((U.T @ v) ** 2 * lam**power).sum()
            scale = ((U.T @ v) ** 2 * np.abs(lam) ** power).sum()
            assert abs((weights[r] * nodes[r] ** power).sum() - exact) < 1e-11 * scale
        assert abs((weights[r] * nodes[r] ** 8).sum() / ((U.T @ v) ** 2 * lam**8).sum() - 1) > 1e-6
    nodes, weights = spectral_measure(product, torch.from_numpy(V), 50)
    np.testing.assert_allclose(nodes[0], lam, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(weights[0], (U.T @ V[0]) ** 2, rtol=1e-7, atol=1e-9)


def test_measure_ends_where_the_krylov_space_does():
    """An eigenvector, a zero vector, a matrix with tied eigenvalues."""
    H = torch.diag(torch.tensor([1.0, 1.0, 1.0, 2.0, -3.0], dtype=torch.float64))
    starts = torch.stack(
        [torch.eye(5, dtype=torch.float64)[3], torch.zeros(5, dtype=torch.float64), torch.ones(5).double()]
    )
    nodes, weights = spectral_measure(lambda v: v @ H, starts, 5)
    assert weights[1].sum() == 0
    assert (weights[0] * nodes[0]).sum() == pytest.approx(2.0) and weights[0].sum() == pytest.approx(1.0)
    for node, weight in ((1.0, 3.0), (2.0, 1.0), (-3.0, 1.0)):
        assert weights[2][np.abs(nodes[2] - node) < 1e-8].sum() == pytest.approx(weight)


@pytest.mark.parametrize(
    "method", [*three_arms(2, 0.9).values(), *three_arms(1).values(), QuadraticMethod(3, 0.5, 0.5)]
)
def test_the_model_of_a_quadratic_is_the_exact_theory(method):
    """Whole curve: modes by eigendecomposition and `QuadraticMethod.expected_loss`."""
    problem = quadratic_sum(CURVATURES.abs(), 0.5)
    local = measure_local(problem, problem.start)
    H = matrix(problem, problem.start)
    lam, U = np.linalg.eigh(H)
    x0 = U.T @ problem.start.numpy()
    rows = torch.arange(problem.samples)[:, None]
    c = problem.gradient(problem.start.expand(problem.samples, -1), rows).numpy() - H @ problem.start.numpy()
    C = ((c @ U) ** 2).mean(axis=0)
    expected = method.expected_loss(0.05, lam, np.sqrt(C / 4), x0, 60)
    np.testing.assert_allclose(local.expected_loss(method, 0.05, 60, 4), expected, rtol=1e-10)
    assert local.noise_trace == pytest.approx(C.sum())


def test_real_code_without_noise_follows_the_model_along_negative_curvature():
    quiet = quadratic_sum(CURVATURES, 0.0)
    local = measure_local(quiet, quiet.start)
    assert local.negative_share > 0 and local.sharpness == pytest.approx(1.0)
    rows = draw_rows(quiet, 50, 2, 1, 0)
    for method in (*three_arms(2, 0.9).values(), *three_arms(3).values()):
        run = run_replicas(quiet, quiet.start, partial(optimizer_of, method=method, eta=0.03), rows)
        np.testing.assert_allclose(run.losses[:, 0], local.expected_loss(method, 0.03, 50, 1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tau, beta, eta", [(1, 0.9, 0.05), (3, 0.8, 0.03)])
def test_gap_and_share_of_a_quadratic_are_predicted(tau, beta, eta):
    """At a level of 1 - 1e-4; runs whose delay is one more than predicted are refuted."""
    predict = partial(predict_gap, QUADRATIC, QUADRATIC.start, LOCAL, eta=eta, beta=beta, seeds=1500, level=0.9999)
    cell, later = predict(tau=tau), predict(tau=tau + 1)
    assert cell.covered and cell.gap_ratio == pytest.approx(1.0, abs=0.15)
    assert cell.measured_share.low <= cell.predicted_share.value <= cell.measured_share.high
    assert later.status == "finite" and not replace(later, predicted_gap=cell.predicted_gap).covered


def test_a_network_on_its_way():
    """After thirty full steps the model is good to a few percent: a report, here with wide margins so that a broken
    model shows. With momentum error feedback helps, without it hurts, and the model says so.
    """
    problem = perceptron()
    w = settle(problem, 30, 0.1)
    local = measure_local(problem, w)
    limits = {beta: QuadraticMethod(1, beta).stability_limit() / local.sharpness for beta in (0.0, 0.9)}
    cells = {b: predict_gap(problem, w, local, 1, 0.3 * eta, b, batch=8, seeds=60) for b, eta in limits.items()}
    for cell in cells.values():
        assert cell.kind == "report" and cell.measured_gap.low > 0
        assert 0.6 < cell.gap_ratio < 1.6
        assert cell.predicted_share.value == pytest.approx(cell.measured_share.value, rel=0.3)
        assert cell.predicted_share.low < cell.predicted_share.value < cell.predicted_share.high
    assert cells[0.0].measured_share.high < 0 < cells[0.9].measured_share.low
    broken = replace(local, noise_weights=local.noise_weights / 4)  # half the noise level
    assert predict_gap(problem, w, broken, 1, cells[0.0].eta, batch=8, seeds=60).gap_ratio < 0.6
    data = json.loads(json.dumps(cells[0.9].as_dict()))
    assert data["status"] == "finite" and data["measured_gap"]["n"] == 60


def test_report_over_networks():
    """Eight networks: predicted over measured gaps near 1; diverged cells are counted, not averaged."""
    cells = []
    for seed in range(8):
        problem = perceptron(seed=seed)
        w = settle(problem, 50, 0.1)
        local = measure_local(problem, w)
        eta = 0.2 * QuadraticMethod(1, 0.9).stability_limit() / local.sharpness
        cells.append(predict_gap(problem, w, local, 1, eta, 0.9, batch=8, seeds=60, seed=seed))
    lost = replace(cells[0], status="diverged", measured_gap=None, measured_share=None)
    unstable = replace(cells[0], predicted_gap=not_applicable("gap", "unstable"))
    report = gap_report([*cells, lost, unstable])
    assert report.left_out == {"diverged": 1, "model unstable": 1} and report.used == 8 and report.kind == "report"
    assert 0.6 < report.ratio.low < report.ratio.high < 1.6
    assert report.predicted_share.value == pytest.approx(report.measured_share.value, rel=0.3)
    assert json.loads(json.dumps(report.as_dict()))["ratio"]["n"] == 8
    with pytest.raises(InputError, match="cells: 1 with a prediction and an interval"):
        gap_report(cells[:1])


def test_the_report_of_an_exact_model_is_not_biased_by_small_gaps():
    """True gap as large as its standard error: all cells count, so the intervals cover at their level and the sums have
    the ratio 1. Cells with a significant gap alone would have .83 and .41."""
    rng, n, cells = np.random.default_rng(0), 20, []
    share = Constant("share", 0.5, "estimated", "")
    for _ in range(1500):
        gap = 1 / math.sqrt(n)
        x = rng.standard_normal(n) + gap
        predicted = Constant("gap", gap, "estimated", ""), Constant("recovered", gap / 2, "estimated", ""), share
        taken = student_interval(x / 2 + 0.1 * rng.standard_normal(n))
        measured = student_interval(x), taken
        cells.append(GapPrediction("exact", 1, 0.0, 0.1, 1, 2, n, "finite", *predicted, *measured, mean_gap=x.mean()))
    report = gap_report(cells)
    assert report.used == 1500 and not report.left_out
    assert report.covered == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 1500))
    assert report.ratio.low < 1 < report.ratio.high and report.ratio.high - report.ratio.low < 0.15
    assert report.measured_share.low < 0.5 < report.measured_share.high
    # All the same predictions: their ratio has no spread over cells, and so no interval.
    assert not report.predicted_share.defined and "ratio 0.5" in report.predicted_share.note


def test_runs_without_noise_are_a_number_and_round_off_counts():
    quiet = quadratic_sum(CURVATURES, 0.0)
    cell = predict_gap(quiet, quiet.start, measure_local(quiet, quiet.start), 2, 0.03, 0.9, seeds=4)
    assert cell.status == "no spread" and cell.measured_gap is None and cell.measured_share is None
    assert cell.gap_ratio == pytest.approx(1.0, rel=1e-9) and cell.covered
    shifted = replace(cell.predicted_gap, value=cell.mean_gap * (1 + 1e-6), low=None, high=None)
    assert not replace(cell, predicted_gap=shifted).covered
    with pytest.raises(InputError, match="cells: 0 with"):
        gap_report([cell, cell])


@pytest.mark.parametrize("last", [10, 40])
def test_the_bracket_of_a_prediction_holds_what_more_steps_of_lanczos_say(last):
    """Of a perceptron whose full measure is known from as many steps as it has weights."""
    problem = perceptron(features=2, hidden=4)
    w = settle(problem, 30, 0.1)
    full = measure_local(problem, w, problem.n)
    arms, sizes = three_arms(2, 0.9), []
    eta = 0.5 * arms["delayed"].stability_limit() / full.sharpness
    truth = predictions(full, arms, eta, 4, (1, last))
    assert full.exact == (True, True) and truth[0].high - truth[0].low < 1e-10
    for steps in (2, 3, 5, 8):
        local = measure_local(problem, w, steps)
        found = predictions(local, arms, eta, 4, (1, last))
        for one, true in zip(found[:2], truth[:2], strict=True):
            assert one.low - 1e-12 <= true.value <= one.high + 1e-12, (steps, one, true)
        sizes.append(found[0].high - found[0].low)
        if 2 * steps > 2 * last - 1:
            assert found[0].value == pytest.approx(truth[0].value, rel=1e-9)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0] / 100
    coarse = predictions(measure_local(problem, w, 2), arms, eta, 4, (1, last))[0]
    assert abs(coarse.value / truth[0].value - 1) > 1e-4  # there is something to bracket


def test_coefficients_beyond_a_degree_are_those_of_the_polynomial():
    x = np.cos(np.pi * (np.arange(9) + 0.5) / 9)
    values = np.polynomial.chebyshev.chebval(x, [7.0, 0.0, 3.0, -2.0, 0.0, 0.5])
    assert [_later_coefficients(values, degree) for degree in (2, 3, 4, 6)] == pytest.approx([5.5, 2.5, 0.5, 0.0])
    assert _later_coefficients(np.array([1.0, math.inf]), 1) == math.inf


def test_an_unstable_model_predicts_nothing():
    """Beyond the limit of the delayed method, beyond that of the corrected one alone, and along negative curvature."""
    steep = QUADRATIC.start * 0 + 1.0
    local = measure_local(QUADRATIC, steep)
    eta = 1.05 * QuadraticMethod(1).stability_limit() / local.sharpness
    gap, recovered, share = predictions(local, three_arms(1), eta, 4, (1, 5))
    assert "delayed: unstable at the model's largest curvature, 1" in gap.reason
    assert gap.value is None and recovered.value is None and share.value is None
    limits = {name: method.stability_limit() for name, method in three_arms(1).items()}
    assert limits["corrected"] < limits["delayed"]
    gap, recovered, share = predictions(local, three_arms(1), 1.05 * limits["corrected"], 4, (1, 5))
    assert gap.applicable and gap.reason == ""
    assert recovered.reason.startswith("corrected: unstable") and share.reason == recovered.reason
    hollow = replace(local, nodes=np.array([-5.0]), weights=np.array([1.0]))
    gap = predictions(hollow, three_arms(1), 0.1, 4, (1, 60))[0]
    assert "its expected loss leaves 100 times the first at step" in gap.reason


def test_gradients_of_replicas_are_their_own():
    problem, rng = perceptron(samples=7), torch.Generator().manual_seed(3)
    w = torch.randn(4, problem.n, dtype=torch.float64, generator=rng)
    rows = torch.randint(7, (4, 3), generator=rng)
    g = problem.gradient(w, rows)
    for r in range(4):
        np.testing.assert_allclose(g[r], problem.gradient(w[r : r + 1], rows[r : r + 1])[0], rtol=1e-12)
    each = problem.gradient(w[:1].expand(7, -1), torch.arange(7)[:, None])
    np.testing.assert_allclose(each.mean(dim=0), problem.gradient(w[:1])[0], rtol=1e-12)
    v = torch.randn(4, problem.n, dtype=torch.float64, generator=rng)
    finite = (problem.gradient(w + 1e-6 * v) - problem.gradient(w - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(problem.hessian_product(w, v), finite, rtol=1e-5, atol=1e-7)


def test_a_diverged_run_is_labelled():
    cell = predict_gap(QUADRATIC, QUADRATIC.start, LOCAL, 1, 3.0, seeds=5)
    assert cell.status == "diverged" and cell.measured_gap is None and cell.measured_share is None
    assert "unstable" in cell.predicted_gap.reason
    assert math.isnan(cell.gap_ratio) and not cell.covered


def test_same_seed_same_numbers():
    cells = [predict_gap(QUADRATIC, QUADRATIC.start, LOCAL, 1, 0.1, seeds=5, seed=s) for s in (1, 1, 2)]
    assert cells[0] == cells[1] != cells[2]


def test_bad_input():
    start = QUADRATIC.start
    with pytest.raises(InputError, match="tau: 0"):
        three_arms(0)
    with pytest.raises(InputError, match="window"):
        predict_gap(QUADRATIC, start, LOCAL, 1, 0.1, window=(5, 4))
    with pytest.raises(InputError, match="eta, steps, batch"):
        LOCAL.expected_loss(QuadraticMethod(), -1.0, 3, 1)
    with pytest.raises(InputError, match="steps, seeds, batch: 3, 1, 1"):
        draw_rows(QUADRATIC, 3, 1, 1, 0)
    with pytest.raises(InputError, match="rows: shape"):
        run_replicas(
            QUADRATIC, start, partial(optimizer_of, method=QuadraticMethod(), eta=0.1), torch.zeros(3, 2).long()
        )
    with pytest.raises(InputError, match="vectors, steps"):
        spectral_measure(lambda v: v, torch.zeros(2, 3), 0)
    with pytest.raises(InputError, match="product: not finite"):
        spectral_measure(lambda v: v * math.nan, torch.ones(2, 3), 2)
    with pytest.raises(InputError, match="eta: 1000.0; the run diverges"):
        settle(QUADRATIC, 400, 1e3)
    with pytest.raises(InputError, match="hidden: 0"):
        perceptron(hidden=0)
    with pytest.raises(InputError, match="method: .*start='zero'"):
        optimizer_of(torch.nn.Parameter(torch.zeros(1, 1)), QuadraticMethod(start="zero"), 0.1)
