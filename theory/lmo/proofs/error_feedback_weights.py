"""Proof of Theorem 2s: at delay 1 the gradients are taken at the weights, and the momentum is near to them.

Its error against the gradient at x_{k-1} is (1-alpha) times that one step before, at y_{k-1}, and the change from
y_{k-1} to x_{k-1}, which are one update apart.
"""

from __future__ import annotations

import theory.lmo.error_feedback_axioms  # noqa: F401  (registers the schemas)
from theory.feedback.at_weights import BOUND
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import descent, error_feedback, shifted
from theory.lmo.proofs import error_feedback_path as path
from theory.proof import (
    Averaged,
    Everywhere,
    Expected,
    Instance,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    from_one,
    le,
    statement,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, tau, k, K, L, E0, dbar, Delta1 = symbols("alpha eta tau k K L E0 dbar Delta1")
lag, lag_before, w, S, noise = symbols("lag_norm lag_norm_before shifted_lag_norm shifted_error_norm noise_norm")
weighted, weighted_before = symbols("delta_mean_weighted delta_mean_weighted_before")
back, back_before = symbols("return_change return_before")
E_S, E_noise, E_mean_S, E_mean_E, E_mean_T = symbols(
    "E_shifted_error_norm E_noise_norm E_mean_shifted_error_norm E_mean_error_norm E_mean_taken_norm"
)
E_weighted, E_before, E_delta, mean_weighted = symbols(
    "E_delta_mean_weighted E_delta_mean_weighted_before E_delta E_mean_weighted"
)
v_w, v_lag_before, v_back, v_start = vectors("shifted_lag lag_before return_before start_zero")
b = 1 - alpha
_RETURN = {step.name: step for step in error_feedback.AT_X.steps}
_SHIFTED = {step.name: step for step in (*shifted.PATH, *shifted.RECURSION)}

BEFORE = (
    Step(
        "lag, limit",
        ("unrolled",),
        with_terms(
            lag,
            start=b ** (k + 1) * E0,
            start_shift=b**k * L * eta * (tau - 1),
            momentum_lag=LAG,
            delay=L * eta * weighted,
        ),
        cases=from_one(),
    ),
    Step(
        "lag at delay 1",
        ("lag, limit", axiom("delay_one")),
        with_terms(lag, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=L * eta * weighted),
    ),
    Step(
        "lag before",
        ("lag at delay 1",),
        with_terms(lag_before, start=b**k * E0, momentum_lag=LAG, delay=L * eta * weighted_before),
        Instance("lag before"),
    ),
    _RETURN["from y to x"],
    _RETURN["direction before"],
    Step(
        "return",
        (axiom("smoothness", "return_change"), "from y to x", "direction before", axiom("delay_one")),
        le(back, L * eta),
    ),
    Step(
        "return before",
        ("return",),
        le(back_before, L * eta),
        Instance("return before"),
    ),
)
AT_EVERY_STEP = (
    Step(
        "shifted lag",
        tuple(
            map(
                definition,
                ("shifted lag", "shifted error", "lag before", "error before", "momentum", "noise", "return before"),
            )
        ),
        eq(v_w, b * v_lag_before - b * v_back),
    ),
    Step(
        "shifted lag in norms",
        ("shifted lag",),
        le(w, b * lag_before + b * back_before),
        NormOf(),
    ),
    Step(
        "shifted lag in numbers",
        ("shifted lag in norms", "lag before", "return before"),
        with_terms(w, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=L * eta * b * weighted_before),
    ),
    Step(
        "first shifted lag",
        (
            *map(definition, ("shifted lag", "shifted error", "momentum", "noise of step 1", "noise of step 0")),
            definition("start at x_0"),
            axiom("momentum_of_the_first_gradient"),
            axiom("second_gradient_at_x_0"),
        ),
        eq(v_w, b**2 * v_start),
    ),
    Step(
        "first shifted lag in norms",
        ("first shifted lag",),
        eq(w, b**2 * E0),
        NormOf(),
    ),
    Step(
        "shifted lag at every step",
        ("first shifted lag in norms", "shifted lag in numbers"),
        with_terms(w, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=L * eta * b * weighted_before),
        Everywhere(first=1),
    ),
    _SHIFTED["shifted error and noise"],
    Step(
        "shifted error",
        ("shifted lag at every step", "shifted error and noise"),
        with_terms(S, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=L * eta * b * weighted_before, noise=noise),
    ),
)
AVERAGE = (
    Step(
        "expected shifted error",
        ("shifted error",),
        with_terms(E_S, start=b ** (k + 1) * E0, momentum_lag=LAG, delay=L * eta * b * E_before, noise=E_noise),
        Expected(),
    ),
    Step(
        "expected shifted error, limits",
        ("expected shifted error", "expected noise, limit", "expected weighted drift"),
        with_terms(
            E_S,
            start=b ** (k + 1) * E0,
            momentum_lag=LAG,
            delay=L * eta * (E_weighted - alpha * E_delta),
            noise=NOISE,
        ),
    ),
    Step(
        "average shifted error",
        ("expected shifted error, limits",),
        with_terms(
            E_mean_S,
            start=START * b * (1 - b**K),
            momentum_lag=LAG,
            delay=L * eta * (mean_weighted - alpha * dbar),
            noise=NOISE,
        ),
        Averaged(
            {
                "E_shifted_error_norm": "E_mean_shifted_error_norm",
                "E_delta_mean_weighted": "E_mean_weighted",
                "E_delta": "dbar",
            },
            sums={b ** (k + 1): b**2 * (1 - b**K) / alpha},
            first=1,
        ),
    ),
    Step(
        "average shifted error, limit",
        ("average shifted error", "average drift"),
        with_terms(E_mean_S, start=START * b, momentum_lag=LAG, delay=L * eta * b * dbar, noise=NOISE),
    ),
)
_UNROLLED = path.MOMENTUM_ERROR.steps[:-2]
_DESCENT = tuple(step for step in descent.STEPS_AT_Y if step not in _UNROLLED)
PROOF = Proof(
    BOUND,
    (
        *_UNROLLED,
        *BEFORE,
        *AT_EVERY_STEP,
        *_DESCENT,
        *(_SHIFTED[name] for name in ("momentum against the gradient taken", "descent by the gradient taken")),
        *(_SHIFTED[name] for name in ("sum", "expected sum", "expected lower bound")),
        Step(
            "average in expectation",
            ("expected sum", "expected lower bound", definition("initial gap at y")),
            with_terms(E_mean_T, initial=Delta1 / (eta * K), step=L * eta / 2, error=E_mean_E, shifted=E_mean_S),
        ),
        *error_feedback.DRIFT,
        *error_feedback.ERROR,
        *AVERAGE,
        Step(
            "theorem",
            (
                "average in expectation",
                "average error, limit",
                "average shifted error, limit",
                axiom("delay_one"),
                axiom("start_at_x"),
            ),
            statement(BOUND, E_mean_T),
        ),
    ),
    left=E_mean_T,
)
