"""Lemma C for Nesterov's direction c_k = (1-a) m_{k+1} + a g_k, from that of m_{k+1}.

With w_k the momentum's lag and q_k the noise of c_k
    c_k - grad f(x_k) - q_k = (1-a) w_k + a (grad f(x_{(k-tau)+}) - grad f(x_k)),
    c_k - grad f(x_{(k-tau)+}) - q_k = (1-a) w'_k.
"""

from __future__ import annotations

from collections.abc import Sequence

import theory.lmo.nesterov_axioms  # noqa: F401  (registers the schemas)
from theory.lmo.age import NESTEROV
from theory.lmo.momentum_error import delay_sum, lag_sum
from theory.lmo.parts import DELAY
from theory.lmo.proofs import delay, momentum_error, nesterov_noise, shifted
from theory.proof import (
    Averaged,
    Expected,
    NormOf,
    Step,
    axiom,
    definition,
    eq,
    le,
    split_all,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, tau, k, K, L, E0 = symbols("alpha eta tau k K L E0")
error, lag, w, bias, noise = symbols("called_error_norm called_lag_norm lag_norm delay_bias called_noise_norm")
S, S_lag, S_w = symbols("called_shifted_error_norm called_shifted_lag_norm shifted_lag_norm")
E_error, E_noise, E_mean = symbols("E_called_error_norm E_called_noise_norm E_mean_called_error_norm")
E_S, E_mean_S = symbols("E_called_shifted_error_norm E_mean_called_shifted_error_norm")
v_lag, v_w, v_bias, v_S_lag, v_S_w = vectors("called_lag lag bias called_shifted_lag shifted_lag")
b = 1 - alpha
LEFT = b ** (k + 2)  # what the direction keeps of m_0
SUMS = {LEFT: b**2 * (1 - b**K) / alpha}


def until(steps: Sequence[Step], name: str) -> tuple[Step, ...]:
    """Steps up to that of a name."""
    return tuple(steps[: 1 + [step.name for step in steps].index(name)])


LAG = until(momentum_error.STEPS, "unrolled")
SHIFTED_LAG = until(shifted.RECURSION, "shifted unrolled")

AT_X = (
    Step(
        "called lag",
        (axiom("nesterov"), *map(definition, ("called lag", "called error", "called noise", "lag", "error", "bias"))),
        eq(v_lag, b * v_w + alpha * v_bias),
    ),
    Step(
        "called lag in norms",
        ("called lag",),
        le(lag, b * w + alpha * bias),
        NormOf(),
    ),
    Step(
        "called error and noise",
        (definition("called lag"),),
        le(error, lag + noise),
        NormOf(vector="called_error"),
    ),
    Step(
        "called error",
        ("called lag in norms", "called error and noise", "unrolled", delay.PROOF),
        with_terms(
            error,
            start=LEFT * E0,
            momentum_lag=L * eta * b * lag_sum(k),
            delay=b * L * eta * delay_sum(k) + alpha * delay.PROOF.conclusion.right,
            noise=noise,
        ),
        cases=split_all(),
    ),
    Step(
        "expected called error",
        ("called error",),
        with_terms(
            E_error,
            start=LEFT * E0,
            momentum_lag=L * eta * b * lag_sum(k),
            delay=b * L * eta * delay_sum(k) + alpha * delay.PROOF.conclusion.right,
            noise=E_noise,
        ),
        Expected(),
        cases=split_all(),
    ),
    Step(
        "expected called error, limits",
        ("expected called error", "expected called noise"),
        with_terms(E_error, start=LEFT * E0, momentum_lag=NESTEROV.lag, delay=DELAY, noise=NESTEROV.noise),
        cases=split_all(),
    ),
    Step(
        "average called error",
        ("expected called error, limits",),
        with_terms(
            E_mean, start=NESTEROV.start * (1 - b**K), momentum_lag=NESTEROV.lag, delay=DELAY, noise=NESTEROV.noise
        ),
        Averaged({"E_called_error_norm": "E_mean_called_error_norm"}, sums=SUMS),
    ),
    Step(
        "average called error, limit",
        ("average called error",),
        with_terms(E_mean, start=NESTEROV.start, momentum_lag=NESTEROV.lag, delay=DELAY, noise=NESTEROV.noise),
    ),
)
SHIFTED = (
    Step(
        "called shifted lag",
        (
            axiom("nesterov"),
            *map(definition, ("called shifted lag", "called shifted error", "called noise")),
            *map(definition, ("shifted lag", "shifted error")),
        ),
        eq(v_S_lag, b * v_S_w),
    ),
    Step(
        "called shifted lag in norms",
        ("called shifted lag",),
        eq(S_lag, b * S_w),
        NormOf(),
    ),
    Step(
        "called shifted error and noise",
        (definition("called shifted lag"),),
        le(S, S_lag + noise),
        NormOf(vector="called_shifted_error"),
    ),
    Step(
        "called shifted error",
        ("called shifted lag in norms", "called shifted error and noise", "shifted unrolled"),
        with_terms(S, start=LEFT * E0, momentum_lag=L * eta * b * lag_sum(k), noise=noise),
    ),
    Step(
        "expected called shifted error",
        ("called shifted error",),
        with_terms(E_S, start=LEFT * E0, momentum_lag=L * eta * b * lag_sum(k), noise=E_noise),
        Expected(),
    ),
    Step(
        "expected called shifted error, limits",
        ("expected called shifted error", "expected called noise"),
        with_terms(E_S, start=LEFT * E0, momentum_lag=NESTEROV.lag, noise=NESTEROV.noise),
    ),
    Step(
        "average called shifted error",
        ("expected called shifted error, limits",),
        with_terms(E_mean_S, start=NESTEROV.start * (1 - b**K), momentum_lag=NESTEROV.lag, noise=NESTEROV.noise),
        Averaged({"E_called_shifted_error_norm": "E_mean_called_shifted_error_norm"}, sums=SUMS),
    ),
    Step(
        "average called shifted error, limit",
        ("average called shifted error",),
        with_terms(E_mean_S, start=NESTEROV.start, momentum_lag=NESTEROV.lag, noise=NESTEROV.noise),
    ),
)
NOISE = nesterov_noise.STEPS
