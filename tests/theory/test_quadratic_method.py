"""Moments on a quadratic: against a literal transcription, exactly, start-up and torch's first step
included.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from theory.errors import InputError
from theory.quadratic import QuadraticMethod

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
        literal(tau, beta, dampening, correction, form, eta, lam, 0.0, s * np.eye(steps)[i])
        for i in range(steps)
    ]
    np.testing.assert_allclose(mean, noise_free, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(variance, np.sum(np.square(responses), axis=0), rtol=1e-11, atol=1e-15)
    assert mean.shape == variance.shape == (steps + 1,) and variance[0] == 0


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
