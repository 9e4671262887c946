"""Every number of the three editions against a transcription from the whole path, on steps of unequal length by an
oracle that is no LMO: r_lo about 0.8, r_hi 1.2, with and without error feedback and Nesterov's direction."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from empirics.budget import budget
from empirics.budget_editions import Editions
from empirics.least_squares_budget import constants_of_setting, facts_of_setting
from empirics.least_squares_run import NAME, recorder_of
from empirics.lmo_path import Setting
from empirics.norms import get_norm
from empirics.pathwise import discounted
from empirics.problems.matrix_least_squares import random_problem
from theory.registry import get_bound

PROBLEM = random_problem(3, 4, seed=2)
NORM = get_norm("spectral")
# Sums of a few dozen float64 numbers of size 1 to 100.
CLOSE = 1e-11
FORMS = ("", "-shifted", "-median", "-momentum")
INEXACT = [f"delayed-lmo-inexact{nesterov}{form}" for nesterov in ("", "-nesterov") for form in FORMS]
CORRECTED = [(3, "extrapolate"), (3, "telescoped"), (1, "extrapolate")]


def polar(matrix: np.ndarray) -> np.ndarray:
    u, _, v = np.linalg.svd(matrix, full_matrices=False)
    return u @ v


def run(tau=2, K=18, sigma=0.3, correction="none", form="extrapolate", nesterov=False, flip=None, reference=None):
    """A path written out, and what the recorder makes of it. Directions are turned and up to 1.2 long; at step `flip`
    it points uphill."""
    s = Setting("inexact", tau, 0.1, 0.3, K, sigma, correction, form, nesterov=nesterov)
    rng, a, N = np.random.default_rng(5), s.alpha, s.updates
    noise, m0 = PROBLEM.noise(sigma, N, 3), rng.standard_normal(PROBLEM.shape)
    recorder = recorder_of(PROBLEM, s, m0, reference=reference)
    x, m, U, taken, called, d = [np.ones(PROBLEM.shape)], [m0], [], [], [], []
    c, lag = (0.0, 1) if correction == "none" else (float(tau), 1) if form == "extrapolate" else (1.0, tau)
    tensors = [{NAME: torch.from_numpy(x[0])}]
    for k in range(N):
        at = max(k - tau, 0)
        taken.append(x[at])
        g = PROBLEM.grad(x[at]) + noise[k]
        m.append((1 - a) * m[k] + a * g)
        called.append((1 - a) * m[k + 1] + a * g if nesterov else m[k + 1])
        turned = polar(called[k] + 0.3 * rng.standard_normal(PROBLEM.shape))
        d.append((-1.0 if k == flip else 1.0) * [1.2, 0.9, 1.0][k % 3] * turned)
        U.append(-s.eta * d[k])
        x.append(x[k] + U[k] + c * (U[k] - U[max(k - lag, 0)]))
        tensors.append({NAME: torch.from_numpy(x[k + 1])})
        others = ({NAME: torch.from_numpy(vector)} for vector in (g, U[k], m[k + 1]))
        recorder.observe(k, tensors[k], tensors[k + 1], tensors[at], *others)
    recorder.flush()
    past = [sum((U[max(i, 0)] for i in range(k - lag, k)), np.zeros(PROBLEM.shape)) for k in range(N + 1)]
    y = np.array([x[k] - c * past[k] if k else x[0] for k in range(N + 1)])
    path = SimpleNamespace(s=s, x=np.array(x), y=y, m=np.array(m), taken=np.array(taken), called=np.array(called))
    path.d, path.noise, path.first, path.recorder = np.array(d), noise, N - K, recorder
    path.reference = 0 if reference is None else reference
    return path


def transcribed(p) -> dict[str, float]:
    """The averages and extremes that the editions are made of, from their definitions."""
    s, grad, first, N, b = p.s, PROBLEM.grad, p.first, p.s.updates, 1 - p.s.alpha
    z, z_next, taken, x = p.y[first:N], p.y[first + 1 :], p.taken[first:], p.x[first:N]
    g, step = grad(z), z_next - z
    size = NORM.norm(step) ** 2
    nu = discounted(p.noise, s.alpha, s.alpha)
    segment = PROBLEM.f(z_next) - PROBLEM.f(z) - (g * step).sum((1, 2))
    uses = [(z, z_next), (z, taken)] + ([(z, x)] if first else [(taken[:-1], taken[1:])])
    ratios = [*(2 * segment / size), *((grad(z_next) - g) * step).sum((1, 2)) / size]
    for one, other in uses:
        gap = NORM.norm(other - one)
        ratios += list(NORM.dual(grad(other) - grad(one))[gap > 1e-9] / gap[gap > 1e-9])
    bias, change = NORM.dual(grad(taken) - g), NORM.dual(g[:-1] - g[1:])
    moved = NORM.dual(grad(taken[:-1]) - grad(taken[1:]))
    E0, at_start = float(NORM.dual(p.m[0] - grad(p.x[0]))), float(NORM.dual(grad(p.x[0]) - grad(p.y[first])))
    sums = {"lag": [], "delay": [], "shifted_lag": [], "start": [], "reference": []}
    at = x[np.maximum(np.arange(s.K) - p.reference, 0)]
    for i in range(s.K):
        k = first + i
        sums["lag"].append(sum(b ** (i - j + 1) * change[j - 1] for j in range(1, i + 1)))
        sums["shifted_lag"].append(sum(b ** (i - j + 1) * moved[j - 1] for j in range(1, i + 1)))
        sums["delay"].append(s.alpha * sum(b ** (i - j) * bias[j] for j in range(i + 1)))
        n = max(p.reference - s.tau, 0)
        held = sums["shifted_lag"][i - n] * b**n if i >= n else 0.0
        apart = [(s.alpha if n else 1.0) * NORM.dual(grad(taken[i - j]) - grad(at[i])) for j in range(min(n, i) + 1)]
        sums["reference"].append(held + sum(b**j * apart[j] for j in range(min(max(n, 1), i + 1))))
        sums["start"].append(b ** (k + 1) * E0 + b**k * at_start * first)
    called, noise = p.called[first:], nu[first:]
    if s.nesterov:
        noise = b * noise + s.alpha * p.noise[first:]
    along = (called * p.d[first:]).sum((1, 2)) / NORM.dual(called)
    return {
        **{name: float(np.mean(values)) for name, values in sums.items()},
        "K": s.K, "eta": s.eta, "alpha": s.alpha, "tau": s.tau, "E0": E0, "rho": math.sqrt(3),
        "gap": float(PROBLEM.f(z[0]) - PROBLEM.f(z_next[-1])), "segment": float(segment.mean()) / s.eta,
        "noise": float(NORM.dual(noise).mean()), "bias": float(bias.mean()),
        "error": float(NORM.dual(called - g).mean()), "shifted_error": float(NORM.dual(called - grad(taken)).mean()),
        "reference_error": float(NORM.dual(called - grad(at)).mean()), "s": p.reference,
        "reference_bias": float(NORM.dual(grad(taken) - grad(at)).mean()),
        "return": float(NORM.dual(grad(x) - g).mean()), "L": max(ratios), "f_last": float(PROBLEM.f(z_next[-1])),
        "f_start": float(PROBLEM.f(p.y[first])), "sigma": math.sqrt((p.noise[first:] ** 2).sum((1, 2)).mean()),
        "r_lo": min(1.0, along.min()), "r_hi": max(1.0, NORM.norm(p.d[first:]).max()),
        "dbar": float(NORM.norm(z - taken).mean()) / s.eta,
    }  # fmt: skip


def expected_terms(theorem: str, v: dict[str, float]) -> dict[str, float]:
    """(1/r_lo) of what the objective won and lost, and each error as often as the theorem counts it."""
    inexact, nesterov = "inexact" in theorem, "nesterov" in theorem
    r_lo, q = (v["r_lo"], v["r_hi"] / v["r_lo"]) if inexact else (1.0, 1.0)
    at_z = q if theorem.endswith(("-momentum", "-shifted", "-median")) else 1 + q
    at_taken, at_reference = float(theorem.endswith("-shifted")), float(theorem.endswith("-median"))
    other = at_taken + at_reference
    b = 1 - v["alpha"] if nesterov else 1.0
    terms = {
        "initial": v["gap"] / (v["eta"] * v["K"] * r_lo),
        "step": v["segment"] / r_lo,
        "momentum_lag": at_z * b * v["lag"] + at_taken * b * v["shifted_lag"],
        "delay": at_z * (b * v["delay"] + (1 - b) * v["bias"]),
        "noise": (at_z + other) * v["noise"],
        "start": (at_z + other) * b * v["start"],
    }
    if at_reference:
        terms["reference"] = b * v["reference"] + (1 - b) * v["reference_bias"]
    return terms | ({"return": v["return"]} if theorem == "error-feedback-at-x" else {})


def check_editions(theorem: str, editions: dict, v: dict[str, float]) -> None:
    expected = expected_terms(theorem, v)
    assert editions["measured"]["terms"] == pytest.approx(expected, rel=CLOSE)
    assert editions["measured"]["value"] == pytest.approx(sum(expected.values()), rel=CLOSE)
    bound = get_bound(theorem)
    for name, L, sigma, f_star in (
        ("trajectory", v["L"], v["sigma"], v["f_last"]),
        ("worst-case", PROBLEM.L(), 0.3, PROBLEM.f_star),
    ):
        gap = v["f_start"] - f_star
        given = {**v, "L": L, "sigma": sigma, "Delta0": gap, "Delta1": gap}
        of = {symbol: given[symbol] for symbol in bound.symbols}
        assert editions[name]["value"] == pytest.approx(float(bound.evaluate(**of)), rel=CLOSE), name
        assert editions[name]["terms"] == pytest.approx(dict(bound.evaluate_terms(**of)), rel=CLOSE), name


@pytest.mark.parametrize(
    ("theorem", "s"),
    [(name, s) for name in INEXACT for s in ((0, 2, 3, 7) if name.endswith("-median") else (None,))],
)
def test_editions_of_an_inexact_oracle_are_those_of_the_path(theorem, s):
    path = run(nesterov="nesterov" in theorem, reference=s)
    v = transcribed(path)
    assert 0.7 < v["r_lo"] < 0.9 and v["r_hi"] == pytest.approx(1.2)
    found = budget(theorem, path.recorder, facts_of_setting(path.s), constants_of_setting(PROBLEM, path.s))
    assert found["status"] == "complete" and found["violations"] == 0 and not found["not_recorded"]
    check_editions(theorem, found["editions"], v)
    terms, q = found["editions"]["measured"]["terms"], v["r_hi"] / v["r_lo"]
    at_z = q if theorem.endswith(("-momentum", "-shifted", "-median")) else 1 + q
    error = at_z * v["error"] + (v["shifted_error"] if theorem.endswith("-shifted") else 0.0)
    error += v["reference_error"] if theorem.endswith("-median") else 0.0
    levels = [level["value"] for level in found["waterfall"]]
    assert levels[1] == pytest.approx(terms["initial"] + terms["step"] + error, rel=CLOSE)
    assert levels[0] <= levels[1] <= levels[2]
    named = {c["name"]: c["value"] for c in found["constants"]}
    assert (named["r_lo"], named["r_hi"]) == pytest.approx((v["r_lo"], v["r_hi"]), rel=CLOSE)


@pytest.mark.parametrize("theorem", [f"delayed-lmo{form}" for form in FORMS])
def test_editions_are_those_of_the_path(theorem):
    """The oracle is inexact here as well, which the recorder does not mind: the theorem's rows do."""
    path = run(reference=4 if theorem.endswith("-median") else None)
    v = transcribed(path)
    found = budget(theorem, path.recorder, facts_of_setting(path.s), constants_of_setting(PROBLEM, path.s))
    check_editions(theorem, found["editions"], v)
    assert {"momentum-error: a step is at most eta", "delay: lmo_norm"} & {
        i["place"] for i in found["inequalities"] if i["violations"]
    }


@pytest.mark.parametrize(("tau", "form"), CORRECTED)
def test_editions_at_the_virtual_iterate_are_those_of_the_path(tau, form):
    path = run(tau, correction="error-feedback", form=form)
    v, constants = transcribed(path), constants_of_setting(PROBLEM, path.s)
    for theorem in ("error-feedback", "error-feedback-at-x") if tau == 1 else ("error-feedback-any-delay",):
        run_of = Editions(get_bound(theorem), path.recorder, facts_of_setting(path.s), constants)
        check_editions(theorem, run_of.editions(), v)


def test_an_old_step_is_the_one_that_the_place_of_the_gradient_moves_by():
    path = run(tau=3)
    steps = NORM.norm(np.diff(path.x, axis=0))
    k = np.arange(1, path.s.K)
    found = path.recorder.rows.column("stale_step_norm")
    assert math.isnan(found[0])
    np.testing.assert_allclose(found[1:], steps[np.maximum(k - 1 - 3, 0)], rtol=1e-12)
    assert len(set(np.round(steps, 6))) > 2


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_step_uphill_has_no_r_lo(nesterov):
    path = run(nesterov=nesterov, flip=5)
    name = f"delayed-lmo-inexact{'-nesterov' * nesterov}"
    found = budget(name, path.recorder, facts_of_setting(path.s), constants_of_setting(PROBLEM, path.s))
    assert found["status"] == "not applicable" and "editions" not in found
    assert "r_lo is -" in found["reasons"][0] and "at step 5" in found["reasons"][0]


def test_a_part_of_the_objective_has_no_theorem_in_expectation():
    path = run(nesterov=False)
    facts, constants = facts_of_setting(path.s), constants_of_setting(PROBLEM, path.s)
    whole = budget("delayed-lmo-inexact", path.recorder, facts, constants)
    part = budget("delayed-lmo-inexact", path.recorder, replace(facts, whole=False), constants)
    assert part["inequalities"] == whole["inequalities"]
    for name in ("trajectory", "worst-case"):
        assert part["editions"][name]["value"] is None and "unbiased" in part["editions"][name]["reason"]
        assert part["editions"][name]["kind"] == "not applicable"
    assert part["editions"]["measured"] == whole["editions"]["measured"]
    assert [level["value"] is None for level in part["waterfall"]] == [False, False, False, True, True]
    finite = budget("delayed-lmo", path.recorder, replace(facts, whole=False), constants)["waterfall"][3]
    assert finite["level"] == "trajectory constants, finite sums" and finite["value"] is None
