"""Proof of Theorem 1m: the momentum against the gradient s steps back, for every s >= 0.

m_{k+1} against grad f(x_{(k-s)+}) is (1-alpha) times m_k against the same gradient, which is s - 1 steps back there,
plus alpha times the gradient taken against it, at most |s - tau| steps apart. So the lag E|A - s| is handed on from
(k-1, s-1) to (k, s) where s > tau; where s <= tau it is the shifted lag and tau - s steps more.
"""

from __future__ import annotations

from sympy import Abs, Integer

import theory.lmo.reference_axioms  # noqa: F401  (registers the schemas)
from theory.lmo import median
from theory.lmo.age import CLASSICAL
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delay, delayed, descent, inexact, shifted
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
    split_along,
    split_between,
    split_reference,
    statement,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, tau, s, k, K, L, E0 = symbols("alpha eta tau s k K L E0")
X, M, R, noise, E_noise = symbols("reference_norm momentum_norm reference_error_norm noise_norm E_noise_norm")
E_R, mean_R, E_mean_norm = symbols("E_reference_error_norm E_mean_reference_error_norm E_mean_reference_norm")
w, w_before, bias, gap, age = symbols(
    "reference_lag_norm reference_lag_norm_before reference_bias reference_gap_norm reference_age"
)
shifted_lag = symbols("shifted_lag_norm")[0]
v_lag, v_before, v_bias, v_shifted, v_start = vectors(
    "reference_lag reference_lag_before reference_bias shifted_lag start"
)
b = 1 - alpha
AWAY = L * eta * Abs(s - tau)
DISTANCE = L * eta * CLASSICAL.distance()

ONE = Integer(1)

AGAINST = Step(
    "momentum against the gradient at the reference",
    (definition("reference error"),),
    le(X, M + R),
    NormOf(vector="grad_reference"),
)
_NAMES = [step.name for step in shifted.RECURSION]
SHIFTED_LAG = shifted.RECURSION[: _NAMES.index("shifted unrolled") + 1]
BIAS = (
    *delay.STEPS[2:5],
    Step(
        "to the reference",
        ("j steps",),
        le(gap, eta * age),
        Instance("walk to the reference"),
    ),
    Step(
        "bias of the reference",
        (axiom("smoothness", "reference_bias"), "to the reference", axiom("steps_to_the_reference")),
        le(bias, AWAY),
        cases=split_between(),
    ),
)
RECURSION = (
    Step(
        "reference lag by the shifted one",
        tuple(
            map(definition, ("reference lag", "reference error", "reference bias", "shifted lag", "shifted error"))
        ),
        eq(v_lag, v_shifted + v_bias),
    ),
    Step(
        "reference lag by the shifted one in norms",
        ("reference lag by the shifted one",),
        le(w, shifted_lag + bias),
        NormOf(),
    ),
    Step(
        "reference lag at most",
        ("reference lag by the shifted one in norms", "shifted unrolled", "bias of the reference"),
        with_terms(w, start=b ** (k + 1) * E0, momentum_lag=LAG, reference=AWAY),
        cases=split_reference(),
    ),
    Step(
        "reference recursion",
        tuple(
            map(
                definition,
                (
                    "reference lag",
                    "reference lag before",
                    "reference error",
                    "reference error before",
                    "reference bias",
                    "momentum",
                    "noise",
                ),
            )
        ),
        eq(v_lag, b * v_before + alpha * v_bias),
    ),
    Step(
        "reference recursion in norms",
        ("reference recursion",),
        le(w, b * w_before + alpha * bias),
        NormOf(),
    ),
    Step(
        "reference recursion in numbers",
        ("reference recursion in norms", "bias of the reference"),
        with_terms(w, before=b * w_before, reference=alpha * AWAY),
        cases=split_reference(),
    ),
    Step(
        "first reference lag",
        (
            *map(definition, ("reference lag", "reference error", "momentum", "first noise", "start")),
            axiom("first_gradient"),
            definition("first reference"),
        ),
        eq(v_lag, b * v_start),
    ),
    Step("first reference lag in norms", ("first reference lag",), eq(w, b * E0), NormOf()),
    Step(
        "reference lag unrolled",
        ("first reference lag in norms", "reference lag at most", "reference recursion in numbers"),
        with_terms(w, start=b ** (k + 1) * E0, reference=DISTANCE),
        Induction(
            {"reference_lag_norm_before": "reference_lag_norm"},
            ("first reference lag in norms",),
            cases=split_along(),
            along=("s",),
        ),
    ),
)
ERROR = (
    Step(
        "reference error and noise",
        (definition("reference lag"),),
        le(R, w + noise),
        NormOf(vector="reference_error"),
    ),
    Step(
        "reference error",
        ("reference lag unrolled", "reference error and noise"),
        with_terms(R, start=b ** (k + 1) * E0, reference=DISTANCE, noise=noise),
        cases=split_reference(),
    ),
    Step(
        "expected reference error",
        ("reference error",),
        with_terms(E_R, start=b ** (k + 1) * E0, reference=DISTANCE, noise=E_noise),
        Expected(),
        cases=split_reference(),
    ),
    Step(
        "expected reference error, limit",
        ("expected reference error", "expected noise, limit"),
        with_terms(E_R, start=b ** (k + 1) * E0, reference=DISTANCE, noise=NOISE),
        cases=split_reference(),
    ),
    Step(
        "average reference error",
        ("expected reference error, limit",),
        with_terms(mean_R, start=START * (1 - b**K), reference=DISTANCE, noise=NOISE),
        Averaged(
            {"E_reference_error_norm": "E_mean_reference_error_norm"}, sums={b ** (k + 1): b * (1 - b**K) / alpha}
        ),
        cases=split_reference(),
    ),
    Step(
        "average reference error, limit",
        ("average reference error",),
        with_terms(mean_R, start=START, reference=DISTANCE, noise=NOISE),
        cases=split_reference(),
    ),
)
STEPS = (
    *descent.STEPS,
    *inexact.averaged("reference_norm", (AGAINST,), {"error_norm": ONE, "reference_error_norm": ONE}, ONE, ONE),
    *delayed.EXPECTED_ERROR,
    *SHIFTED_LAG,
    *BIAS,
    *RECURSION,
    *ERROR,
    Step(
        "theorem",
        ("average in expectation", "average error, limit", "average reference error, limit"),
        statement(median.BOUND, E_mean_norm),
        cases=split_reference(),
    ),
)

PROOF = Proof(median.BOUND, STEPS, left=E_mean_norm)
