"""Proof of Lemma C: the recursion of the momentum's error without its noise, in norms, unrolled by induction."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import momentum_error
from theory.lmo.momentum_error import delay_sum, lag_sum
from theory.lmo.proofs import delay, descent
from theory.proof import (
    Induction,
    Instance,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    le,
    split,
    split_all,
    statement,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, tau, k, L, E0 = symbols("alpha eta tau k L E0")
w, w_before, change, bias = symbols("lag_norm lag_norm_before grad_change delay_bias")
error, noise = symbols("error_norm noise_norm")
before = symbols("step_norm_before")[0]
v_lag, v_before, v_change, v_bias, v_start = vectors("lag lag_before change bias start")
b = 1 - alpha
LESS = b * v_before + b * v_change + alpha * v_bias

RECURSION = (
    Step(
        "recursion",
        tuple(map(definition, ("lag", "lag before", "error", "error before", "momentum", "noise", "change", "bias"))),
        eq(v_lag, LESS),
    ),
    Step(
        "recursion in norms",
        ("recursion",),
        le(w, b * w_before + b * change + alpha * bias),
        NormOf(),
    ),
)
CHANGE = (
    descent.LENGTH,
    delay.AT_MOST_ETA,
    Step(
        "the step before",
        ("a step is at most eta",),
        le(before, eta),
        Instance("step before"),
    ),
    Step(
        "change over one step",
        (axiom("smoothness", "change"), "the step before"),
        le(change, L * eta),
    ),
)
ERROR = Step(
    "error and noise",
    (definition("lag"),),
    le(error, w + noise),
    NormOf(vector="error"),
)

STEPS = (
    *RECURSION,
    *CHANGE,
    Step(
        "recursion in numbers",
        ("recursion in norms", "change over one step", delay.PROOF),
        with_terms(w, before=b * w_before, lag=b * L * eta, delay=alpha * delay.PROOF.conclusion.right),
    ),
    Step(
        "first error",
        (
            *map(definition, ("lag", "error", "momentum", "first noise", "start")),
            axiom("first_gradient"),
        ),
        eq(v_lag, b * v_start),
    ),
    Step("first error in norms", ("first error",), eq(w, b * E0), NormOf()),
    Step(
        "unrolled",
        ("first error in norms", "recursion in numbers"),
        with_terms(
            w,
            start=b ** (k + 1) * E0,
            momentum_lag=L * eta * lag_sum(k),
            delay=L * eta * delay_sum(k),
        ),
        Induction({"lag_norm_before": "lag_norm"}, ("first error in norms",), cases=split()),
    ),
    ERROR,
    Step("lemma", ("unrolled", "error and noise"), statement(momentum_error.INEQUALITY), cases=split_all()),
)

PROOF = Proof(momentum_error.INEQUALITY, STEPS)
