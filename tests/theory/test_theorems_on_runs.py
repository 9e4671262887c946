"""The bounds against runs: noise-free, noise enumerated exactly, and the orbit that attains Theorem 1s."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from theory import get_bound

ROUND_OFF = 1e-12  # sums of a few hundred numbers of size 1


def constants(run, f_star: float) -> dict:
    values = run.record()
    return dict(
        L=run.L,
        eta=run.eta,
        alpha=run.alpha,
        tau=run.tau,
        sigma=0.0,
        rho=np.sqrt(len(run.v)),
        Delta0=run.f(run.x[0]) - f_star,
        K=values["K"],
        E0=values["E0"],
    )


def dual(vector) -> float:
    return float(np.abs(vector).sum())


def only(name: str, values: dict) -> dict:
    return {key: values[key] for key in get_bound(name).symbols}


@pytest.mark.parametrize("tau", [0, 1, 2, 4])
def test_noise_free_runs(random_run, tau):
    for seed in range(20):
        run = random_run(seed, tau, sigma=0.0, convex=True)
        given = constants(run, run.f(np.linalg.solve(run.H, -run.v)))
        K = len(run.U)
        at_x = np.mean([dual(run.gradient(run.x[k])) for k in range(K)])
        stale = np.mean([dual(run.gradient(run.x[max(k - tau, 0)])) for k in range(K)])
        own = np.mean([dual(run.m[k + 1]) for k in range(K)])
        finite = get_bound("delayed-lmo-finite").evaluate(**given)
        assert at_x <= finite + ROUND_OFF
        assert finite <= get_bound("delayed-lmo").evaluate(**given) + ROUND_OFF
        assert stale <= get_bound("delayed-lmo-shifted").evaluate(**given) + ROUND_OFF
        assert own <= get_bound("delayed-lmo-momentum").evaluate(**given) + ROUND_OFF


@pytest.mark.parametrize("form", ["extrapolate", "telescoped"])
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_noise_free_runs_with_error_feedback(random_run, form, tau):
    for seed in range(20):
        run = random_run(seed, tau, form, sigma=0.0, convex=True)
        f_star = run.f(np.linalg.solve(run.H, -run.v))
        values = run.record()
        given = constants(run, f_star) | dict(
            dbar=min(np.mean(values["delta"]), 2 * tau), Delta1=run.f(run.virtual(1)) - f_star
        )
        at_y = values["mean_grad_norm"]
        assert (
            at_y
            <= get_bound("error-feedback-any-delay").evaluate(**only("error-feedback-any-delay", given))
            + ROUND_OFF
        )
        if tau == 1:
            at_x = np.mean([dual(run.gradient(run.x[k])) for k in range(1, len(run.U))])
            assert at_y <= get_bound("error-feedback").evaluate(**only("error-feedback", given)) + ROUND_OFF
            assert (
                at_x
                <= get_bound("error-feedback-at-x").evaluate(**only("error-feedback-at-x", given)) + ROUND_OFF
            )


@pytest.mark.parametrize("form", [None, "extrapolate"])
@pytest.mark.parametrize("tau", [1, 2])
def test_expectations_by_enumeration(lmo_run, form, tau):
    """Rademacher noise times a fixed vector, all 2^7 paths: the expectations are exact, sigma is exact."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((2, 2))
    H, v, direction = A @ A.T, rng.standard_normal(2), np.array([0.8, -0.3])
    steps, m0 = 7, np.zeros(2)
    runs = [
        lmo_run(H, v, [0.5, 1.0], m0, np.outer(signs, direction), 0.2, 0.4, tau, form)
        for signs in itertools.product([-1.0, 1.0], repeat=steps)
    ]
    f_star = runs[0].f(np.linalg.solve(H, -v))
    given = constants(runs[0], f_star) | dict(sigma=float(np.linalg.norm(direction)))
    if form is None:
        x_average = np.mean([[dual(r.gradient(r.x[k])) for k in range(steps)] for r in runs])
        stale = np.mean([[dual(r.gradient(r.x[max(k - tau, 0)])) for k in range(steps)] for r in runs])
        own = np.mean([[dual(r.m[k + 1]) for k in range(steps)] for r in runs])
        assert x_average <= get_bound("delayed-lmo-finite").evaluate(**given)
        assert stale <= get_bound("delayed-lmo-shifted").evaluate(**given)
        assert own <= get_bound("delayed-lmo-momentum").evaluate(**given)
        return
    records = [run.record() for run in runs]
    given |= dict(
        K=steps - 1,
        dbar=np.mean([record["delta"] for record in records]),
        Delta1=np.mean([r.f(r.virtual(1)) for r in runs]) - f_star,
    )
    measured = np.mean([record["grad_norm"] for record in records])
    assert measured <= get_bound("error-feedback-any-delay").evaluate(
        **only("error-feedback-any-delay", given)
    )


def orbit(tau: int, eta: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Norm l_1, dual l_inf, n = 2 tau + 1: H_ij = +1 within tau of the diagonal, else -1; w_k flips
    coordinate k.
    """
    n = 2 * tau + 1
    i = np.arange(n)
    H = np.where(np.abs(i[:, None] - i[None, :]) <= tau, 1.0, -1.0)
    w = [np.full(n, eta / 2)]
    for k in range(2 * n):
        following = w[-1].copy()
        following[k % n] *= -1
        w.append(following)
    return H, w


@pytest.mark.parametrize("tau", [0, 1, 2, 3])
def test_theorem_1s_is_attained(tau):
    """alpha = 1, no noise: a period of (4 tau + 2) delayed coordinate steps with dn(grad f) = L eta (tau +
    1/2).
    """
    eta = 0.25
    H, w = orbit(tau, eta)
    period = len(w) - 1
    np.testing.assert_array_equal(w[period], w[0])
    norms = []
    for k in range(period):
        gradient = H @ w[(k - tau) % period]  # L = max |H_ij| = 1
        step = w[k + 1] - w[k]
        i = k % (2 * tau + 1)
        assert np.abs(gradient).max() == np.abs(gradient[i])  # coordinate i is a steepest one
        assert step[i] == -eta * np.sign(gradient[i])  # and the step is the LMO step of the delayed gradient
        norms.append(np.abs(gradient).max())
    measured = np.mean(norms)
    terms = get_bound("delayed-lmo-shifted").evaluate_terms(
        L=1, eta=eta, alpha=1, tau=tau, sigma=0, rho=1, Delta0=0, K=1, E0=0
    )
    assert measured == pytest.approx(terms["step"] + terms["delay"], rel=1e-14)
    if tau:  # a mutated constant or an off-by-one is refuted
        assert measured > terms["step"] + 0.95 * terms["delay"]
        assert measured > terms["step"] + terms["delay"] * (tau - 1) / tau


@pytest.mark.parametrize("tau", [0, 1, 2, 3])
def test_one_dimensional_cycle(lmo_run, tau):
    """Sign descent on x^2/2 averages L eta (1/2 + tau^2/(2 tau + 1)): inside Theorem 1, and a known worst
    case.
    """
    eta, period = 0.1, 2 * (2 * tau + 1)
    best = 0.0
    for offset in np.linspace(0, 1, 41)[1:-1]:
        run = lmo_run(
            np.eye(1), np.zeros(1), [offset * eta], [0.0], np.zeros((40 * period, 1)), eta, 1.0, tau
        )
        best = max(best, np.mean([abs(run.x[k][0]) for k in range(20 * period, 40 * period)]))
    known = eta * (0.5 + tau**2 / (2 * tau + 1))
    assert best == pytest.approx(known, rel=1e-9)
    terms = get_bound("delayed-lmo").evaluate_terms(
        L=1, eta=eta, alpha=1, tau=tau, sigma=0, rho=1, Delta0=0, K=1, E0=0
    )
    assert best <= terms["step"] + terms["delay"] + ROUND_OFF
