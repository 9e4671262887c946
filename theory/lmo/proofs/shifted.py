"""Proof of Theorem 1s: the momentum against the gradient where it was taken; that error has no delay."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import shifted
from theory.lmo.momentum_error import lag_sum
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delay, delayed, descent
from theory.proof import (
    Averaged,
    Expected,
    Induction,
    Instance,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    le,
    statement,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, k, K, L, E0, Delta0 = symbols("alpha eta k K L E0 Delta0")
f_now, f_next, f_first, f_last = symbols("f_now f_next f_first f_last")
M, E, T, S = symbols("momentum_norm error_norm taken_norm shifted_error_norm")
mean_E, mean_T, mean_S = symbols("mean_error_norm mean_taken_norm mean_shifted_error_norm")
E_mean_E, E_mean_T, E_mean_S = symbols("E_mean_error_norm E_mean_taken_norm E_mean_shifted_error_norm")
E_S, E_noise, E_first, E_last = symbols("E_shifted_error_norm E_noise_norm E_f_first E_f_last")
w, w_before, change, moved, stale = symbols(
    "shifted_lag_norm shifted_lag_norm_before taken_change taken_step_norm stale_step_norm"
)
noise = symbols("noise_norm")[0]
v_lag, v_before, v_change, v_start = vectors("shifted_lag shifted_lag_before taken_change start")
b = 1 - alpha
HALF = L * eta / 2

PATH = (
    *descent.STEPS,
    Step(
        "momentum against the gradient taken",
        (definition("shifted error"),),
        le(T, M + S),
        NormOf(vector="grad_taken"),
    ),
    Step(
        "descent by the gradient taken",
        ("descent along the direction", "progress along the direction", "momentum against the gradient taken"),
        with_terms(f_next, objective=f_now, taken=-eta * T, error=eta * E, shifted=eta * S, step=L * eta**2 / 2),
    ),
    Step(
        "sum",
        ("descent by the gradient taken",),
        with_terms(mean_T, initial=(f_first - f_last) / (eta * K), step=HALF, error=mean_E, shifted=mean_S),
        Averaged(
            {
                "taken_norm": "mean_taken_norm",
                "error_norm": "mean_error_norm",
                "shifted_error_norm": "mean_shifted_error_norm",
            },
            telescoping=(("f_now", "f_next", "f_first", "f_last"),),
        ),
    ),
    Step(
        "expected sum",
        ("sum",),
        with_terms(E_mean_T, initial=(E_first - E_last) / (eta * K), step=HALF, error=E_mean_E, shifted=E_mean_S),
        Expected(),
    ),
    delayed.FLOOR,
    Step(
        "average in expectation",
        ("expected sum", "expected lower bound", definition("initial gap")),
        with_terms(E_mean_T, initial=Delta0 / (eta * K), step=HALF, error=E_mean_E, shifted=E_mean_S),
    ),
)

RECURSION = (
    Step(
        "shifted recursion",
        tuple(
            map(
                definition,
                (
                    "shifted lag",
                    "shifted lag before",
                    "shifted error",
                    "shifted error before",
                    "momentum",
                    "noise",
                    "taken change",
                ),
            )
        ),
        eq(v_lag, b * v_before + b * v_change),
    ),
    Step(
        "shifted recursion in norms",
        ("shifted recursion",),
        le(w, b * w_before + b * change),
        NormOf(),
    ),
    delay.AT_MOST_ETA,
    Step(
        "an old step",
        ("a step is at most eta",),
        le(stale, eta),
        Instance("an old step"),
    ),
    Step(
        "change where it is taken",
        (axiom("smoothness", "taken_change"), axiom("taken_one_step_on"), "an old step"),
        le(change, L * eta),
    ),
    Step(
        "shifted recursion in numbers",
        ("shifted recursion in norms", "change where it is taken"),
        with_terms(w, before=b * w_before, lag=b * L * eta),
    ),
    Step(
        "first shifted error",
        (
            *map(definition, ("shifted lag", "shifted error", "momentum", "first noise", "start")),
            axiom("first_gradient"),
        ),
        eq(v_lag, b * v_start),
    ),
    Step(
        "first shifted error in norms",
        ("first shifted error",),
        eq(w, b * E0),
        NormOf(),
    ),
    Step(
        "shifted unrolled",
        ("first shifted error in norms", "shifted recursion in numbers"),
        with_terms(w, start=b ** (k + 1) * E0, momentum_lag=L * eta * lag_sum(k)),
        Induction({"shifted_lag_norm_before": "shifted_lag_norm"}, ("first shifted error in norms",)),
    ),
    Step(
        "shifted error and noise",
        (definition("shifted lag"),),
        le(S, w + noise),
        NormOf(vector="shifted_error"),
    ),
    Step(
        "shifted error",
        ("shifted unrolled", "shifted error and noise"),
        with_terms(S, start=b ** (k + 1) * E0, momentum_lag=L * eta * lag_sum(k), noise=noise),
    ),
    Step(
        "expected shifted error",
        ("shifted error",),
        with_terms(E_S, start=b ** (k + 1) * E0, momentum_lag=L * eta * lag_sum(k), noise=E_noise),
        Expected(),
    ),
    Step(
        "expected shifted error, limits",
        ("expected shifted error", "expected noise, limit"),
        with_terms(E_S, start=b ** (k + 1) * E0, momentum_lag=LAG, noise=NOISE),
    ),
    Step(
        "average shifted error",
        ("expected shifted error, limits",),
        with_terms(E_mean_S, start=START * (1 - b**K), momentum_lag=LAG, noise=NOISE),
        Averaged({"E_shifted_error_norm": "E_mean_shifted_error_norm"}, sums={b ** (k + 1): b * (1 - b**K) / alpha}),
    ),
    Step(
        "average shifted error, limit",
        ("average shifted error",),
        with_terms(E_mean_S, start=START, momentum_lag=LAG, noise=NOISE),
    ),
)

STEPS = (
    *PATH,
    *delayed.EXPECTED_ERROR,
    *RECURSION,
    Step(
        "theorem",
        ("average in expectation", "average error, limit", "average shifted error, limit"),
        statement(shifted.BOUND, E_mean_T),
    ),
)

PROOF = Proof(shifted.BOUND, STEPS, left=E_mean_T)
