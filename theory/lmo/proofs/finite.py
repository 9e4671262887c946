"""Proof of Theorem 1 with its finite sums: Lemma C averaged as it stands, Jensen for the noise over the run."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import finite
from theory.lmo.momentum_error import delay_sum, lag_sum
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delayed, noise
from theory.proof import (
    Averaged,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    split_all,
    split_run,
    split_sum,
    statement,
    symbols,
    with_terms,
)

alpha, eta, tau, k, K, L, E0 = symbols("alpha eta tau k K L E0")
error, mean_error, mean_grad, E_noise = symbols("E_error_norm E_mean_error_norm E_mean_grad_norm E_noise_norm")
age, mean_age, root, mean_root, mean_growth = symbols(
    "delay_age mean_delay_age noise_growth_root mean_noise_growth_root mean_noise_growth"
)
b = 1 - alpha
GROWTH = 1 - b**2 * (1 - b ** (2 * K)) / (alpha * (2 - alpha) * K)
AGE = finite.BOUND.terms["delay"] / (2 * L * eta)

STEPS = (
    delayed.EXPECTED_ERROR[0],
    *noise.STEPS[:-1],
    Step(
        "expected noise by growth",
        ("expected noise", definition("noise growth"), definition("root of noise growth")),
        with_terms(E_noise, noise=NOISE * root),
    ),
    Step(
        "expected error by parts",
        ("expected error", "expected noise by growth", definition("delay age")),
        with_terms(
            error,
            start=b ** (k + 1) * E0,
            momentum_lag=L * eta * lag_sum(k),
            delay=L * eta * age,
            noise=NOISE * root,
        ),
        cases=split_all(),
    ),
    Step(
        "average error",
        ("expected error by parts",),
        with_terms(
            mean_error,
            start=START * (1 - b**K),
            momentum_lag=LAG * (1 - (1 - b**K) / (alpha * K)),
            delay=L * eta * mean_age,
            noise=NOISE * mean_root,
        ),
        Averaged(
            {
                "E_error_norm": "E_mean_error_norm",
                "delay_age": "mean_delay_age",
                "noise_growth_root": "mean_noise_growth_root",
            },
            sums={b ** (k + 1): b * (1 - b**K) / alpha},
        ),
    ),
    Step(
        "average age",
        (definition("delay age"),),
        eq(mean_age, AGE),
        Averaged({"delay_age": "mean_delay_age"}, sums={delay_sum(k): AGE * K}, cases=split_sum()),
        cases=split_run(),
    ),
    Step(
        "average growth",
        (definition("noise growth"),),
        eq(mean_growth, GROWTH),
        Averaged(
            {"noise_growth": "mean_noise_growth"},
            sums={b ** (2 * k + 2): b**2 * (1 - b ** (2 * K)) / (alpha * (2 - alpha))},
        ),
    ),
    Step(
        "average error in numbers",
        ("average error", "average age"),
        with_terms(
            mean_error,
            start=START * (1 - b**K),
            momentum_lag=LAG * (1 - (1 - b**K) / (alpha * K)),
            delay=L * eta * AGE,
            noise=NOISE * mean_root,
        ),
        cases=split_run(),
    ),
    *delayed.EXPECTED_AVERAGE,
    Step(
        "theorem",
        ("average in expectation", "average error in numbers", axiom("jensen_over_run"), "average growth"),
        statement(finite.BOUND, mean_grad),
        cases=split_run(),
    ),
)

PROOF = Proof(finite.BOUND, STEPS, left=mean_grad)
