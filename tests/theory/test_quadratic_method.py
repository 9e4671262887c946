"""Moments on a quadratic: against a literal transcription, exactly, start-up and torch's first step
included.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from theory.errors import InputError
from theory.quadratic import QuadraticMethod
from theory.quadratic.state_space import recursion

SETTINGS = [
    (tau, beta, dampening, correction, form)
    for tau in (0, 1, 2, 4)
    for beta, dampening in ((0.0, 0.0), (0.9, 0.9), (0.9, 0.0), (0.6, 0.3), (0.0, 0.5))
    for correction, form in (
        ("none", "extrapolate"),
        ("error-feedback", "extrapolate"),
        ("error-feedback", "telescoped"),
    )
    if tau or correction == "none"
]


def literal(tau, beta, dampening, correction, form, eta, lam, x0, noises) -> np.ndarray:
    """torch.optim.SGD(momentum=beta, dampening=dampening) fed with delayed gradients, step by step, one path.

    noises: what is added to each gradient. The momentum buffer starts as the first gradient, undamped; with
    beta = 0 torch uses the gradient itself.
    """
    x, updates, buffer = [x0], [], None
    for k, noise in enumerate(noises):
        g = lam * x[max(k - tau, 0)] + noise
        if beta:
            buffer = g if buffer is None else beta * buffer + (1 - dampening) * g
            g = buffer
        updates.append(-eta * g)
        step = updates[k]
        if correction != "none" and k > 0:
            c, lag = (tau, 1) if form == "extrapolate" else (1, tau)
            step = step + c * (updates[k] - updates[max(k - lag, 0)])
        x.append(x[k] + step)
    return np.array(x)


@pytest.mark.parametrize("tau, beta, dampening, correction, form", SETTINGS)
def test_moments_are_exact(tau, beta, dampening, correction, form):
    """x_k is linear in the noises: the mean is the noise-free path, the variance the sum of squared
    responses.
    """
    eta, lam, s, x0, steps = 0.15, 0.7, 0.4, 1.3, 14
    method = QuadraticMethod(tau, beta, dampening, correction, form)
    mean, variance = method.predict(eta, lam, s, x0, steps)
    noise_free = literal(tau, beta, dampening, correction, form, eta, lam, x0, np.zeros(steps))
    responses = [
        literal(tau, beta, dampening, correction, form, eta, lam, 0.0, s * np.eye(steps)[i]) for i in range(steps)
    ]
    np.testing.assert_allclose(mean, noise_free, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(variance, np.sum(np.square(responses), axis=0), rtol=1e-11, atol=1e-15)
    assert mean.shape == variance.shape == (steps + 1,) and variance[0] == 0


RIVALS = [
    dict(tau=tau, beta=beta, dampening=dampening, nesterov=nesterov, start=start, **correction)
    for tau in (0, 1, 2, 3)
    for beta, dampening in ((0.0, 0.0), (0.9, 0.9), (0.8, 0.0))
    for nesterov, start in ((False, "gradient"), (False, "zero"), (True, "gradient"), (True, "zero"))
    for correction in (
        dict(correction="none"),
        dict(correction="error-feedback"),
        dict(correction="error-feedback", form="telescoped"),
        dict(correction="gradient-extrapolation"),
        dict(correction="gradient-extrapolation", coefficient=0.7),
        dict(correction="weight-prediction"),
        dict(correction="weight-prediction", coefficient=1.3),
    )
    if (tau or correction["correction"] == "none")
    and (nesterov or start == "zero" or correction["correction"] not in ("none", "error-feedback"))
]


def literal_rival(method: QuadraticMethod, eta, lam, x0, noises) -> np.ndarray:
    """The recursion of the method's docstring, step by step, one path; nothing of it is a matrix."""
    tau, beta, c, gain = method.tau, method.beta, method.c, method.gain
    x, updates, gradients, m = [x0], [], [], 0.0
    for k, noise in enumerate(noises):
        point = x[max(k - tau, 0)]
        if method.correction == "weight-prediction" and k - tau - 1 >= 0:
            point = point + c * updates[k - tau - 1]
        gradients.append(lam * point + noise)
        g = gradients[k]
        if method.correction == "gradient-extrapolation":
            g = g + c * (g - gradients[max(k - 1, 0)])
        if beta:
            m = g if k == 0 and method.start == "gradient" else beta * m + gain * g
        else:
            m = g
        updates.append(-eta * (beta * m + gain * g if method.nesterov and beta else m))
        step = updates[k]
        if method.correction == "error-feedback":
            step = step + c * (step - updates[max(k - (1 if method.form == "extrapolate" else tau), 0)])
        x.append(x[k] + step)
    return np.array(x)


@pytest.mark.parametrize("arguments", RIVALS, ids=lambda a: "-".join(map(str, a.values())))
def test_moments_of_the_rivals_are_exact(arguments):
    """Nesterov momentum, a zero start, extrapolated gradients, predicted weights: as `test_moments_are_exact`."""
    eta, lam, s, x0, steps = 0.1, 0.7, 0.4, 1.3, 14
    method = QuadraticMethod(**arguments)
    mean, variance = method.predict(eta, lam, s, x0, steps)
    noise_free = literal_rival(method, eta, lam, x0, np.zeros(steps))
    responses = [literal_rival(method, eta, lam, 0.0, s * np.eye(steps)[i]) for i in range(steps)]
    np.testing.assert_allclose(mean, noise_free, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(variance, np.sum(np.square(responses), axis=0), rtol=1e-11, atol=1e-15)


@pytest.mark.mutation
def test_rivals_are_told_apart():
    """No two of them have the same mean and variance, but for EMA momentum extrapolated either way."""
    arguments = (0.1, 0.7, 2.0, 1.3, 12)
    base = dict(tau=2, beta=0.9, dampening=0.9)
    paths = [
        np.concatenate(QuadraticMethod(**base, **other).predict(*arguments))
        for other in (
            dict(),
            dict(start="zero"),
            dict(nesterov=True),
            dict(nesterov=True, start="zero"),
            dict(correction="error-feedback"),
            dict(correction="weight-prediction"),
            dict(correction="weight-prediction", coefficient=1.0),
        )
    ]
    for i, j in itertools.combinations(range(len(paths)), 2):
        assert np.max(np.abs(paths[i] - paths[j])) > 1e-3, (i, j)
    same = np.concatenate(QuadraticMethod(**base, correction="gradient-extrapolation").predict(*arguments))
    np.testing.assert_allclose(same, paths[4], rtol=1e-13)


@pytest.mark.parametrize("beta, dampening", [(0.0, 0.0), (0.8, 0.8), (0.8, 0.0)])
@pytest.mark.parametrize("nesterov", [False, True])
def test_corrections_differ_as_stated(beta, dampening, nesterov):
    """Extrapolating gradients or updates: one variance. Predicted weights: a lower one, the same spectrum."""

    def method(correction):
        return QuadraticMethod(2, beta, dampening, correction, nesterov=nesterov)

    updates, gradients, weights = map(method, ("error-feedback", "gradient-extrapolation", "weight-prediction"))
    h = 0.3 * updates.stability_limit()
    own = updates.stationary_variance(h, 1.0, 1.0)
    assert gradients.stationary_variance(h, 1.0, 1.0) == pytest.approx(own, rel=1e-11)
    assert weights.stationary_variance(h, 1.0, 1.0) < 0.9 * own
    for other in (gradients, weights):
        assert other.spectral_radius(h) == pytest.approx(updates.spectral_radius(h), rel=1e-9)
        assert other.stability_limit() == updates.stability_limit()


@pytest.mark.mutation
def test_off_by_one_and_first_step_are_seen():
    """Predictions for tau + 1, another form, or a damped first step part from the path by far more than
    round-off.
    """
    arguments = (0.15, 0.7, 0.0, 1.3, 12)
    base = QuadraticMethod(2, 0.9, 0.9, "error-feedback", "extrapolate").predict(*arguments)[0]
    others = [
        QuadraticMethod(1, 0.9, 0.9, "error-feedback", "extrapolate"),
        QuadraticMethod(3, 0.9, 0.9, "error-feedback", "extrapolate"),
        QuadraticMethod(2, 0.9, 0.9, "error-feedback", "telescoped"),
        QuadraticMethod(2, 0.9, 0.9),
        QuadraticMethod(2, 0.9, 0.8, "error-feedback", "extrapolate"),
    ]
    for other in others:
        assert np.max(np.abs(other.predict(*arguments)[0] - base)) > 1e-3, other
    assert base[1] == pytest.approx(1.3 - 0.15 * 0.7 * 1.3, rel=1e-15)  # the first gradient is not damped


def test_expectation_by_enumeration():
    """Rademacher noise on all 2^8 paths: the same mean, variance and expected loss."""
    method = QuadraticMethod(1, 0.5, 0.5, "error-feedback")
    eta, lam, s, x0, steps = 0.3, 1.1, 0.5, -0.8, 8
    paths = np.array(
        [
            literal(1, 0.5, 0.5, "error-feedback", "extrapolate", eta, lam, x0, s * np.array(signs))
            for signs in itertools.product([-1.0, 1.0], repeat=steps)
        ]
    )
    mean, variance = method.predict(eta, lam, s, x0, steps)
    np.testing.assert_allclose(mean, paths.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(variance, paths.var(axis=0), atol=1e-13)
    loss = method.expected_loss(eta, lam, s, x0, steps)
    np.testing.assert_allclose(loss, (lam * paths**2 / 2).mean(axis=0), atol=1e-13)


def test_modes_are_vectorised():
    method = QuadraticMethod(2, 0.9, 0.9, "error-feedback", "telescoped")
    lam = np.array([[0.1, 0.5, 1.0], [0.2, 0.0, 0.7]])
    s = np.array([0.1, 0.2, 0.3])
    mean, variance = method.predict(0.2, lam, s, 1.5, 20)
    assert mean.shape == variance.shape == (21, 2, 3)
    for i, j in np.ndindex(2, 3):
        one_mean, one_variance = method.predict(0.2, lam[i, j], s[j], 1.5, 20)
        np.testing.assert_allclose(mean[:, i, j], one_mean, rtol=1e-13)
        np.testing.assert_allclose(variance[:, i, j], one_variance, rtol=1e-13)
    total = method.expected_loss(0.2, lam, s, 1.5, 20)
    np.testing.assert_allclose(total, (lam * (mean**2 + variance) / 2).sum(axis=(1, 2)), rtol=1e-13)
    assert method.predict(0.2, lam, s, 1.5, 0)[0].shape == (1, 2, 3)


def test_stationary_variance_is_the_limit():
    method = QuadraticMethod(2, 0.6, 0.6, "error-feedback")
    _, variance = method.predict(0.1, 1.0, 0.7, 0.0, 2000)
    assert variance[-1] == pytest.approx(method.stationary_variance(0.1, 1.0, 0.7), rel=1e-10)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(tau=-1), "tau=-1 is not allowed"),
        (dict(tau=1.0), "tau=1.0 is not allowed"),
        (dict(tau=True), "tau=True"),
        (dict(beta=1.0), r"beta=1.0 is not allowed: beta must be a number in \[0, 1\)"),
        (dict(beta=-0.1), "beta=-0.1"),
        (dict(beta=float("nan")), "beta=nan"),
        (dict(dampening=1.0), "dampening=1.0"),
        (dict(correction="ef"), "correction='ef' is not one of none, error-feedback"),
        (dict(tau=0, correction="weight-prediction"), "tau=0 is not allowed with weight-prediction"),
        (dict(tau=1, correction="gradient-extrapolation", form="telescoped"), "form='telescoped' is not allowed"),
        (dict(start="warm"), "start='warm' is not one of gradient, zero"),
        (dict(nesterov=1), "nesterov=1 is not allowed"),
        (dict(form="taylor"), "form='taylor' is not one of extrapolate, telescoped"),
        (dict(tau=0, correction="error-feedback"), "tau=0 is not allowed with error-feedback"),
        (dict(coefficient=1.0), "coefficient=1.0 is given, but correction is 'none'"),
        (dict(tau=1, correction="error-feedback", coefficient=-1.0), "c=-1"),
    ],
)
def test_bad_methods(arguments, message):
    with pytest.raises(InputError, match=message):
        QuadraticMethod(**arguments)


def test_bad_predictions():
    method = QuadraticMethod(1)
    for arguments, message in (
        ((0.0, 1.0, 0.1, 1.0, 5), "eta=0"),
        ((0.1, -1.0, 0.1, 1.0, 5), "lam=-1"),
        ((0.1, 1.0, -0.1, 1.0, 5), "sigma=-0.1"),
        ((0.1, 1.0, 0.1, float("nan"), 5), "f_now=nan|x0=nan"),
        ((0.1, 1.0, 0.1, 1.0, -1), "steps=-1"),
        ((0.1, 1.0, 0.1, 1.0, 1.5), "steps=1.5"),
        ((0.1, [1.0, 2.0], [0.1, 0.1, 0.1], 1.0, 5), "do not broadcast"),
        ((50.0, 1.0, 0.1, 1.0, 2000), "diverges and leaves float64 at step"),
    ):
        with pytest.raises(InputError, match=message):
            method.predict(*arguments)
    with pytest.raises(InputError, match="not stable"):
        method.stationary_variance(1.1, 1.0, 1.0)


@pytest.mark.parametrize("setting", SETTINGS[::3])
@pytest.mark.parametrize("nesterov", [False, True])
def test_sums_of_squared_responses_are_the_covariance_recursion(setting, nesterov):
    """The state's covariance, carried from step to step by A and b, has the variances that `predict` sums."""
    tau, beta, dampening, correction, form = setting
    method = QuadraticMethod(tau, beta, dampening, correction, form, nesterov=nesterov)
    lam, eta, level = np.array([0.2, 1.0]), 0.04, 0.7
    _, variance = method.predict(eta, lam, level, 1.5, 50)
    covariance = np.zeros((2, method.size, method.size))
    for k in range(50):
        A, b = recursion(method, eta * lam, first=k == 0)
        covariance = A @ covariance @ np.swapaxes(A, -1, -2) + (eta * level) ** 2 * np.outer(b, b)
        np.testing.assert_allclose(variance[k + 1], covariance[:, 0, 0], rtol=1e-11)
