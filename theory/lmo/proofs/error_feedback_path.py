"""Proofs of the pathwise steps of Theorem 2: drift, momentum error and average at the virtual iterate."""

from __future__ import annotations

import theory.lmo.error_feedback_axioms  # noqa: F401  (registers the schemas)
from theory.lmo import error_feedback_path
from theory.lmo.momentum_error import lag_sum
from theory.lmo.proofs import average, delay, descent, momentum_error
from theory.proof import (
    Induction,
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

alpha, eta, tau, k, L, E0 = symbols("alpha eta tau k L E0")
w, w_before, bias, delta, weighted = symbols("lag_norm lag_norm_before delay_bias delta delta_mean_weighted")
gap, change, extra, d0 = symbols("start_gap_norm start_change extra first_direction_norm")
v_lag, v_start, v_change, v_bias = vectors("lag start_zero start_change bias")
b = 1 - alpha

DELAY = Proof(
    error_feedback_path.DELAY,
    (
        Step(
            "lemma",
            (axiom("smoothness", "bias"), definition("drift")),
            statement(error_feedback_path.DELAY),
        ),
    ),
)

FIRST = (
    Step(
        "first error",
        (
            *map(definition, ("lag", "error", "momentum", "bias", "noise of step 1", "noise of step 0")),
            *map(definition, ("start at x_0", "start change")),
            axiom("momentum_of_the_first_gradient"),
        ),
        eq(v_lag, b**2 * v_start + b * v_change + alpha * v_bias),
    ),
    Step(
        "first error in norms",
        ("first error",),
        with_terms(w, start=b**2 * E0, shift=b * change, delay=alpha * bias),
        NormOf(),
    ),
    Step(
        "from x_0 to y_1",
        (axiom("first_virtual_iterate"),),
        eq(gap, extra * eta * d0),
        NormOf(),
    ),
    Step(
        "change from x_0 to y_1",
        (
            axiom("smoothness", "start_change"),
            "from x_0 to y_1",
            axiom("lmo_norm_at_zero"),
            axiom("delay_beyond_one"),
        ),
        le(change, L * eta * (tau - 1)),
    ),
    Step(
        "first error in numbers",
        ("first error in norms", "change from x_0 to y_1", DELAY, definition("weighted drift")),
        with_terms(w, start=b**2 * E0, shift=b * L * eta * (tau - 1), delay=L * eta * weighted),
    ),
)

MOMENTUM_ERROR = Proof(
    error_feedback_path.MOMENTUM_ERROR,
    (
        *momentum_error.RECURSION,
        descent.VIRTUAL,
        descent.LENGTH_AT_Y,
        delay.AT_MOST_ETA,
        *momentum_error.CHANGE[2:],
        Step(
            "recursion in numbers",
            ("recursion in norms", "change over one step", DELAY),
            with_terms(w, before=b * w_before, lag=b * L * eta, delay=alpha * L * eta * delta),
        ),
        *FIRST,
        Step(
            "unrolled",
            ("first error in numbers", "recursion in numbers", definition("weighted drift")),
            with_terms(
                w,
                start=b ** (k + 1) * E0,
                start_shift=b**k * L * eta * (tau - 1),
                momentum_lag=L * eta * lag_sum(k - 1),
                delay=L * eta * weighted,
            ),
            Induction(
                {"lag_norm_before": "lag_norm", "delta_mean_weighted_before": "delta_mean_weighted"},
                ("first error in numbers",),
                ("delta",),
                first=1,
            ),
        ),
        momentum_error.ERROR,
        Step(
            "lemma",
            ("unrolled", "error and noise"),
            statement(error_feedback_path.MOMENTUM_ERROR),
            cases=from_one(),
        ),
    ),
)

AVERAGE = Proof(
    error_feedback_path.AVERAGE,
    (Step("sum", (descent.PROOF_AT_Y,), statement(error_feedback_path.AVERAGE), average.OVER_RUN),),
)
