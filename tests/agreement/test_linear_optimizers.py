"""Stationary variance and stability limits of every linear optimizer: the real code against the exact theory.

No sampling: the response of the real run to one unit of noise is summed up (`empirics.impulse`), and the growth of
the run is that of its slowest modes. Both must equal the theory to round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from empirics.errors import InputError
from empirics.impulse import Impulse, growth_per_step, impulse
from pipeline.optim.delayed import Delayed
from pipeline.optim.error_feedback import ErrorFeedback
from pipeline.optim.lmo import LMO
from theory.quadratic import QuadraticMethod
from theory.quadratic import variance as theorem_v

#: Relative. Sums of a few thousand float64 numbers, the Lyapunov equation and its condition: measured up to 1e-13.
ROUND_OFF = 1e-10

Base = Callable[[list[torch.nn.Parameter]], Optimizer]


def sgd(momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False, lr: float = 1.0) -> Base:
    return lambda ps: SGD(ps, lr=lr, momentum=momentum, dampening=dampening, nesterov=nesterov, foreach=False)


#: name -> (the optimizer with lr = 1, the theory's description)
OPTIMIZERS: dict[str, tuple[Base, QuadraticMethod]] = {
    "SGD": (sgd(), QuadraticMethod()),
    "heavy ball .5": (sgd(0.5), QuadraticMethod(beta=0.5)),
    "heavy ball .9": (sgd(0.9), QuadraticMethod(beta=0.9)),
    "EMA .6": (sgd(0.6, 0.6), QuadraticMethod(beta=0.6, dampening=0.6)),
    "EMA .9": (sgd(0.9, 0.9), QuadraticMethod(beta=0.9, dampening=0.9)),
    "Nesterov .9": (sgd(0.9, nesterov=True), QuadraticMethod(beta=0.9, nesterov=True)),
    # torch's Nesterov with its step scaled by 1 - beta is the exponential average's
    "EMA-Nesterov .6": (sgd(0.6, nesterov=True, lr=0.4), QuadraticMethod(beta=0.6, dampening=0.6, nesterov=True)),
    # with the orthogonalisation left out, see the fixture
    "LMO .9": (
        lambda ps: LMO(ps, lr=1.0, alpha=0.1, norm="sign", nesterov=True),
        QuadraticMethod(beta=0.9, dampening=0.9, nesterov=True, start="zero"),
    ),
    "Muon .9": (
        lambda ps: torch.optim.Muon(ps, lr=1.0, momentum=0.9, nesterov=True, weight_decay=0.0),
        QuadraticMethod(beta=0.9, dampening=0.9, nesterov=True, start="zero"),
    ),
}
CORRECTIONS: dict[str, dict[str, str]] = {
    "plain": {},
    "extrapolate": dict(correction="error-feedback"),
    "telescoped": dict(correction="error-feedback", form="telescoped"),
}
SHARES = np.array([0.1, 0.3, 0.6])  # of the stability limit


@pytest.fixture(autouse=True)
def linear_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Muon and LMO without the step that is not linear: the direction is the averaged gradient itself."""
    monkeypatch.setattr("pipeline.optim.lmo.lmo_direction", lambda m, *rest: m)
    monkeypatch.setattr("torch.optim._muon._zeropower_via_newtonschulz", lambda update, *rest: update)


def wrapped(base: Base, method: QuadraticMethod, delay: int | None = None) -> Callable[..., Delayed]:
    """The real code for a method; delay: another one than the correction is for."""

    def make(ps: list[torch.nn.Parameter]) -> Delayed:
        own = base(ps)
        if method.correction == "error-feedback":
            own = ErrorFeedback(own, method.tau, method.form, method.coefficient)
        return Delayed(own, method.tau if delay is None else delay)

    return make


def variances(method: QuadraticMethod, h: np.ndarray) -> np.ndarray:
    return np.array([method.stationary_variance(1.0, value, 1.0) for value in h])


def steps_for(method: QuadraticMethod, h: np.ndarray) -> int:
    """After these the slowest mode's energy is 1e-17 of what it was; 100 more for what is no exponential yet."""
    return 100 + int(-17 * np.log(10) / (2 * np.log(np.max(method.spectral_radius(h)))))


def response(base: Base, method: QuadraticMethod, h: np.ndarray, **options) -> Impulse:
    return impulse(wrapped(base, method), h, steps_for(method, h), **options)


def others(method: QuadraticMethod) -> dict[str, QuadraticMethod]:
    """What a mistake of one in tau, another lag or another coefficient would make of it."""
    found = {"tau + 1": replace(method, tau=method.tau + 1)}
    if method.tau > 1 or method.correction == "none":
        found["tau - 1"] = replace(method, tau=method.tau - 1)
    if method.correction != "none":
        found["c"] = replace(method, coefficient=1.1 * method.c)
        found["no correction"] = replace(method, correction="none")
        if method.tau > 1:
            other = "telescoped" if method.form == "extrapolate" else "extrapolate"
            found["lag"] = replace(method, form=other, coefficient=method.c)
    return found


@pytest.mark.parametrize("tau", [1, 2, 3])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_stationary_variance_is_that_of_the_theory(name, correction, tau):
    base, plain = OPTIMIZERS[name]
    method = replace(plain, tau=tau, **CORRECTIONS[correction])
    h = SHARES * method.stability_limit()
    seen = response(base, method, h)
    assert seen.truncation().max() < 1e-13
    assert seen.error(variances(method, h)) < ROUND_OFF
    for what, wrong in others(method).items():  # the negative controls: seen at ten million times the tolerance
        stable = wrong.spectral_radius(h) < 1
        ratio = seen.variance()[stable] / variances(wrong, h[stable])
        assert stable.any() and np.abs(ratio - 1).max() > 1e-3, what


@pytest.mark.parametrize("name", ["SGD", "EMA .9", "Nesterov .9"])
@pytest.mark.parametrize("coefficient", [0.3, 1.7])
def test_any_coefficient_and_the_path_under_it(name, coefficient):
    """c of one's own; and y = x - c U, the weights that weight prediction would hold."""
    base, plain = OPTIMIZERS[name]
    method = replace(plain, tau=2, correction="error-feedback", coefficient=coefficient)
    h = SHARES * method.stability_limit()
    assert response(base, method, h).error(variances(method, h)) < ROUND_OFF
    rival = replace(method, correction="weight-prediction")
    under = response(base, method, h, watch=Delayed.virtual_parameters)
    assert under.error(variances(rival, h)) < ROUND_OFF
    assert under.error(variances(method, h)) > 1e-2


@pytest.mark.mutation
def test_a_delay_of_another_length_is_seen():
    """The real code off by one: a correction for tau behind a delay of tau + 1, and of tau - 1."""
    for name in ("SGD", "EMA .9"):
        base, plain = OPTIMIZERS[name]
        method = replace(plain, tau=2, correction="error-feedback")
        h = SHARES * method.stability_limit() / 2  # stable behind the longer delay, too
        for delay in (1, 3):
            off = impulse(wrapped(base, method, delay), h, 2 * steps_for(method, h))
            assert off.error(variances(method, h)) > 1e-2, (name, delay)
            own = replace(method, tau=delay, coefficient=method.c)
            assert off.error(variances(own, h)) < ROUND_OFF, (name, delay)


def excess(beta: float, nesterov: bool) -> float:
    """(Var of error feedback - Var of plain delay)/(h eta s^2/(2 lam)) of the real code at tau = 1, as h -> 0."""
    base = sgd(beta, nesterov=True, lr=1 - beta) if nesterov else sgd(beta, beta)
    plain = QuadraticMethod(1, beta, beta, nesterov=nesterov)
    h = np.array([4e-2, 2e-2, 1e-2])
    both = [response(base, method, h).variance() for method in (replace(plain, correction="error-feedback"), plain)]
    D = (both[0] - both[1]) / (1 / (2 * h)) / h  # eta = s = 1, lam = h; and terms of order h and h^2 go
    first = 2 * D[1:] - D[:-1]
    return float((4 * first[1] - first[0]) / 3)


@pytest.mark.parametrize(
    "nesterov, break_even, term",
    [(False, 0.6, theorem_v.q), (True, 0.739593373273056, theorem_v.Q_NESTEROV)],
    ids=["EMA", "EMA-Nesterov"],
)
def test_error_feedback_breaks_even(nesterov, break_even, term):
    """At tau = 1 the noise that the correction adds costs what the delay costs at beta = .6 (Nesterov .7396): below
    it the variance is higher than without correction, above it lower.
    """
    below, at, above = (excess(beta, nesterov) for beta in (break_even - 0.05, break_even, break_even + 0.05))
    assert abs(at) < 1e-3  # what is left is of order h^3
    assert below > 0.1 and above < -0.1
    for beta, seen in ((break_even - 0.05, below), (break_even + 0.05, above)):
        stated = float(4 * term.subs(theorem_v.beta, beta) - 1)  # D of error feedback minus D of plain delay
        assert seen == pytest.approx(stated, abs=1e-3)


def assert_turns_at(base: Base, method: QuadraticMethod, limit: float) -> None:
    """1/1000 below the limit the real run decays, above it it grows; the rate is the spectral radius."""
    h = limit * np.array([1 - 1e-3, 1 + 1e-3])
    growth = impulse(wrapped(base, method), h, 1200).growth()
    assert growth[0] < 1 < growth[1]
    np.testing.assert_allclose(growth, method.spectral_radius(h), rtol=1e-9)
    # off by one in tau, another c: other rates
    wrong = [replace(method, tau=method.tau + 1)]
    if method.correction != "none":
        wrong.append(replace(method, coefficient=1.1 * method.c))
    for other in wrong:
        assert np.abs(growth / other.spectral_radius(h) - 1).min() > 1e-6, other


@pytest.mark.parametrize("tau", [1, 2, 3])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_real_code_turns_at_the_limit(name, correction, tau):
    base, plain = OPTIMIZERS[name]
    method = replace(plain, tau=tau, **CORRECTIONS[correction])
    assert_turns_at(base, method, method.stability_limit())


def test_stated_limits():
    """(sqrt 5 - 1)/2 for error feedback without momentum; 1 for delay 1, whatever the momentum; both at tau = 1."""
    assert_turns_at(sgd(), QuadraticMethod(1, correction="error-feedback"), (5**0.5 - 1) / 2)
    for beta in (0.0, 0.5, 0.9, 0.99):
        assert_turns_at(sgd(beta, beta), QuadraticMethod(1, beta, beta), 1.0)
    for beta, stated in ((0.8, 1.79), (0.9, 2.70), (0.95, 4.00), (0.98, 6.59), (0.99, 9.51)):
        method = QuadraticMethod(1, beta, beta, "error-feedback")
        limit = ((1 + 4 / (1 - beta)) ** 0.5 - 1) / 2
        assert limit == pytest.approx(stated, abs=5e-3)
        assert_turns_at(sgd(beta, beta), method, limit)


@pytest.mark.mutation
def test_a_wrong_limit_is_seen():
    """1 % off, or that of another tau or momentum: the run does not turn there."""
    method = QuadraticMethod(1, correction="error-feedback")
    limit = method.stability_limit()
    for wrong in (0.99 * limit, 1.01 * limit, QuadraticMethod(2, correction="error-feedback").stability_limit(), 1.0):
        with pytest.raises(AssertionError):
            assert_turns_at(sgd(), method, wrong)


def test_growth_of_known_paths():
    k = np.arange(400.0)
    spiral = 0.99**k * np.cos(0.3 * k + 1)
    path = np.stack([0.7**k, (-1.01) ** k, spiral, spiral + 0.5**k, np.zeros(400)], axis=1)
    np.testing.assert_allclose(growth_per_step(path), [0.7, 1.01, 0.99, 0.99, 0.0], rtol=1e-12)
    path[-1, 0] = np.inf
    assert growth_per_step(path)[0] == np.inf


def test_impulse_is_exact_and_knows_what_it_left_out():
    """SGD without delay: r_i = -(1-h)^i, h = .1; 40 steps leave (1-h)^80 of the energy."""
    h = np.array([0.1])

    def make(ps: list[torch.nn.Parameter]) -> Delayed:
        return Delayed(SGD(ps, lr=1.0, foreach=False), 0)

    short = impulse(make, h, 40)
    np.testing.assert_allclose(short.response[:, 0], -(0.9 ** np.arange(40)), rtol=1e-12)
    left = 0.9**80 / (1 - 0.9**80)
    assert short.truncation()[0] == pytest.approx(left, rel=1e-9)
    assert short.variance()[0] * (1 + left) == pytest.approx(QuadraticMethod().stationary_variance(1.0, 0.1, 1.0))
    growing = impulse(make, [2.1], 40)
    assert growing.truncation()[0] == np.inf
    for bad, steps in (([], 40), ([0.0], 40), ([float("nan")], 40), ([0.1], 4)):
        with pytest.raises(InputError):
            impulse(make, bad, steps)


def test_what_is_watched_is_a_list_of_tensors():
    def watch(optimizer: Delayed) -> list[Tensor]:
        return [2 * x for x in optimizer.newest()]

    base, method = OPTIMIZERS["SGD"]
    h = np.array([0.2])
    own = impulse(wrapped(base, replace(method, tau=1)), h, 20)
    twice = impulse(wrapped(base, replace(method, tau=1)), h, 20, watch)
    np.testing.assert_array_equal(twice.response, 2 * own.response)
