"""Proofs of Theorem 2: at y for any delay, at y and at x for delay 1."""

from __future__ import annotations

import theory.lmo.error_feedback_axioms  # noqa: F401  (registers the schemas)
from theory.lmo import error_feedback
from theory.lmo.momentum_error import lag_sum
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delayed, noise
from theory.lmo.proofs import error_feedback_path as path
from theory.proof import (
    Averaged,
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
    with_terms,
)

alpha, eta, tau, k, K, L, E0, dbar, Delta1 = symbols("alpha eta tau k K L E0 dbar Delta1")
error, mean_error, mean_grad, E_noise = symbols("E_error_norm E_mean_error_norm E_mean_grad_norm E_noise_norm")
weighted, before, delta, mean_weighted = symbols(
    "E_delta_mean_weighted E_delta_mean_weighted_before E_delta E_mean_weighted"
)
w_start, w_end, f_first, f_last = symbols("E_weighted_start E_weighted_end E_f_first E_f_last")
at_x, at_y, back, back_gap, d_before = symbols(
    "grad_norm_at_x grad_norm return_change return_gap_norm direction_norm_before"
)
mean_at_x, mean_at_y, E_mean_at_x = symbols("mean_grad_norm_at_x mean_grad_norm E_mean_grad_norm_at_x")
b = 1 - alpha
SHIFT = L * eta * (tau - 1)
HALF = L * eta / 2

DRIFT = (
    Step(
        "expected weighted drift",
        (definition("weighted drift"),),
        eq(weighted, b * before + alpha * delta),
        Expected(),
    ),
    Step(
        "weighted drift over the run",
        ("expected weighted drift",),
        eq(alpha * mean_weighted + b * (w_end - w_start) / K, alpha * dbar),
        Averaged(
            {"E_delta_mean_weighted": "E_mean_weighted", "E_delta": "dbar"},
            telescoping=(
                ("E_delta_mean_weighted_before", "E_delta_mean_weighted", "E_weighted_start", "E_weighted_end"),
            ),
            first=1,
        ),
    ),
    Step(
        "average drift",
        ("weighted drift over the run", definition("no drift at the start")),
        le(mean_weighted, dbar),
    ),
)
ERROR = (
    Step(
        "expected error",
        (path.MOMENTUM_ERROR,),
        with_terms(
            error,
            start=b ** (k + 1) * E0,
            start_shift=b**k * SHIFT,
            momentum_lag=L * eta * lag_sum(k - 1),
            delay=L * eta * weighted,
            noise=E_noise,
        ),
        Expected(),
        cases=from_one(),
    ),
    *noise.STEPS,
    Step(
        "expected error, limits",
        ("expected error", "expected noise, limit"),
        with_terms(error, start=b**k * (b * E0 + SHIFT), momentum_lag=LAG, delay=L * eta * weighted, noise=NOISE),
        cases=from_one(),
    ),
    Step(
        "average error",
        ("expected error, limits",),
        with_terms(
            mean_error,
            start=b * (1 - b**K) / alpha * (b * E0 + SHIFT) / K,
            momentum_lag=LAG,
            delay=L * eta * mean_weighted,
            noise=NOISE,
        ),
        Averaged(
            {"E_error_norm": "E_mean_error_norm", "E_delta_mean_weighted": "E_mean_weighted"},
            sums={b**k: b * (1 - b**K) / alpha},
            first=1,
        ),
    ),
    Step(
        "average error, limit",
        ("average error", axiom("delay_beyond_one"), "average drift"),
        with_terms(
            mean_error,
            start=START * b,
            start_shift=SHIFT * b / (alpha * K),
            momentum_lag=LAG,
            delay=L * eta * dbar,
            noise=NOISE,
        ),
    ),
)

ANY_DELAY = Proof(
    error_feedback.BOUND_ANY_DELAY,
    (
        *DRIFT,
        *ERROR,
        Step(
            "expected average",
            (path.AVERAGE,),
            with_terms(mean_grad, initial=(f_first - f_last) / (eta * K), step=HALF, error=2 * mean_error),
            Expected(),
        ),
        delayed.FLOOR,
        Step(
            "average in expectation",
            ("expected average", "expected lower bound", definition("initial gap at y")),
            with_terms(mean_grad, initial=Delta1 / (eta * K), step=HALF, error=2 * mean_error),
        ),
        Step(
            "theorem",
            ("average in expectation", "average error, limit"),
            statement(error_feedback.BOUND_ANY_DELAY, mean_grad),
        ),
    ),
    left=mean_grad,
)

AT_Y = Proof(
    error_feedback.BOUND,
    (
        Step(
            "theorem",
            (ANY_DELAY, axiom("delay_one"), axiom("start_at_x")),
            statement(error_feedback.BOUND, mean_grad),
        ),
    ),
    left=mean_grad,
)

AT_X = Proof(
    error_feedback.BOUND_AT_X,
    (
        Step(
            "gradient at x",
            (definition("return change"),),
            le(at_x, at_y + back),
            NormOf(vector="grad_at_x"),
        ),
        Step(
            "from y to x",
            (axiom("back_to_the_weights"),),
            eq(back_gap, tau * eta * d_before),
            NormOf(),
        ),
        Step(
            "direction before",
            (axiom("lmo_norm"),),
            le(d_before, 1),
            Instance("direction before"),
        ),
        Step(
            "return",
            (
                "gradient at x",
                axiom("smoothness", "return_change"),
                "from y to x",
                "direction before",
                axiom("delay_one"),
            ),
            with_terms(at_x, at_y=at_y, back=L * eta),
        ),
        Step(
            "average at x",
            ("return",),
            with_terms(mean_at_x, at_y=mean_at_y, back=L * eta),
            Averaged({"grad_norm": "mean_grad_norm", "grad_norm_at_x": "mean_grad_norm_at_x"}, first=1),
        ),
        Step(
            "expected average at x",
            ("average at x",),
            with_terms(E_mean_at_x, at_y=mean_grad, back=L * eta),
            Expected(),
        ),
        Step(
            "theorem",
            ("expected average at x", AT_Y),
            statement(error_feedback.BOUND_AT_X, E_mean_at_x),
        ),
    ),
    left=E_mean_at_x,
)
