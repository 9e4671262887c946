"""Proof of Theorem 1: the average over a run, and Lemma C in expectation, its finite sums replaced by their limits."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import delayed
from theory.lmo.momentum_error import delay_sum, lag_sum
from theory.lmo.parts import DELAY, LAG, NOISE, START
from theory.lmo.proofs import average, momentum_error, noise
from theory.proof import Averaged, Expected, Proof, Step, axiom, definition, split_all, statement, symbols, with_terms

alpha, eta, tau, k, K, L, E0, Delta0 = symbols("alpha eta tau k K L E0 Delta0")
error, mean_error, mean_grad, E_noise = symbols("E_error_norm E_mean_error_norm E_mean_grad_norm E_noise_norm")
f_first, f_last = symbols("E_f_first E_f_last")
b = 1 - alpha

EXPECTED_ERROR = (
    Step(
        "expected error",
        (momentum_error.PROOF,),
        with_terms(
            error,
            start=b ** (k + 1) * E0,
            momentum_lag=L * eta * lag_sum(k),
            delay=L * eta * delay_sum(k),
            noise=E_noise,
        ),
        Expected(),
        cases=split_all(),
    ),
    *noise.STEPS,
    Step(
        "expected error, limits",
        ("expected error", "expected noise, limit"),
        with_terms(error, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=DELAY, noise=NOISE),
        cases=split_all(),
    ),
    Step(
        "average error",
        ("expected error, limits",),
        with_terms(mean_error, start=START * (1 - b**K), momentum_lag=LAG, delay=DELAY, noise=NOISE),
        Averaged({"E_error_norm": "E_mean_error_norm"}, sums={b ** (k + 1): b * (1 - b**K) / alpha}),
    ),
    Step(
        "average error, limit",
        ("average error",),
        with_terms(mean_error, start=START, momentum_lag=LAG, delay=DELAY, noise=NOISE),
    ),
)
FLOOR = Step(
    "expected lower bound",
    (axiom("lower_bound"),),
    with_terms(-f_last, floor=-symbols("f_star")[0]),
    Expected(),
)
EXPECTED_AVERAGE = (
    Step(
        "expected average",
        (average.PROOF,),
        with_terms(mean_grad, initial=(f_first - f_last) / (eta * K), step=L * eta / 2, error=2 * mean_error),
        Expected(),
    ),
    FLOOR,
    Step(
        "average in expectation",
        ("expected average", "expected lower bound", definition("initial gap")),
        with_terms(mean_grad, initial=Delta0 / (eta * K), step=L * eta / 2, error=2 * mean_error),
    ),
)

STEPS = (
    *EXPECTED_ERROR,
    *EXPECTED_AVERAGE,
    Step(
        "theorem",
        ("average in expectation", "average error, limit"),
        statement(delayed.BOUND, mean_grad),
    ),
)

PROOF = Proof(delayed.BOUND, STEPS, left=mean_grad)
