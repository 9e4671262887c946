"""Proofs of Theorems 1m and 1i at the reference s steps back for Nesterov's direction c_k = (1-a) m_{k+1} + a g_k.

Its law of ages is that of the momentum with probability 1-a, and age tau with probability a:
    c_k - grad f(x_{(k-s)+}) - q_k = (1-a) w^s_k + a (grad f(x_{(k-tau)+}) - grad f(x_{(k-s)+})),
    E|A - s| = (1-a) h(s) + a |s - tau|.
"""

from __future__ import annotations

import theory.lmo.nesterov_axioms  # noqa: F401  (registers the schemas)
from theory.bound import Bound
from theory.lmo.age import NESTEROV
from theory.lmo.inexact import INEXACT_NESTEROV
from theory.lmo.inexact_axioms import longest, r_hi, r_lo
from theory.lmo.nesterov import NESTEROV_BOUNDS
from theory.lmo.parts import INITIAL
from theory.lmo.proofs import inexact, median, nesterov
from theory.lmo.proofs.nesterov_error import LEFT, SUMS
from theory.proof import (
    Averaged,
    Expected,
    NormOf,
    Proof,
    Step,
    axiom,
    definition,
    eq,
    le,
    split_reference,
    statement,
    symbols,
    vectors,
    with_terms,
)

alpha, eta, K, L, E0 = symbols("alpha eta K L E0")
X, C, R, lag, noise = symbols(
    "reference_norm called_norm called_reference_error_norm called_reference_lag_norm called_noise_norm"
)
E_R, mean_R, E_noise, E_mean_error = symbols(
    "E_called_reference_error_norm E_mean_called_reference_error_norm E_called_noise_norm E_mean_called_error_norm"
)
v_lag, v_w, v_bias = vectors("called_reference_lag reference_lag reference_bias")
b = 1 - alpha
DISTANCE = L * eta * NESTEROV.distance()

AGAINST = Step(
    "oracle's argument against the gradient at the reference",
    (definition("called reference error"),),
    le(X, C + R),
    NormOf(vector="grad_reference"),
)
ERROR = (
    Step(
        "called reference lag",
        (
            axiom("nesterov"),
            *map(definition, ("called reference lag", "called reference error", "called noise")),
            *map(definition, ("reference lag", "reference error", "reference bias")),
        ),
        eq(v_lag, b * v_w + alpha * v_bias),
    ),
    Step(
        "called reference lag in norms",
        ("called reference lag",),
        le(lag, b * median.w + alpha * median.bias),
        NormOf(),
    ),
    Step(
        "called reference error and noise",
        (definition("called reference lag"),),
        le(R, lag + noise),
        NormOf(vector="called_reference_error"),
    ),
    Step(
        "called reference error",
        (
            "called reference lag in norms",
            "called reference error and noise",
            "reference lag unrolled",
            "bias of the reference",
        ),
        with_terms(R, start=LEFT * E0, reference=DISTANCE, noise=noise),
        cases=split_reference(),
    ),
    Step(
        "expected called reference error",
        ("called reference error",),
        with_terms(E_R, start=LEFT * E0, reference=DISTANCE, noise=E_noise),
        Expected(),
        cases=split_reference(),
    ),
    Step(
        "expected called reference error, limit",
        ("expected called reference error", "expected called noise"),
        with_terms(E_R, start=LEFT * E0, reference=DISTANCE, noise=NESTEROV.noise),
        cases=split_reference(),
    ),
    Step(
        "average called reference error",
        ("expected called reference error, limit",),
        with_terms(mean_R, start=NESTEROV.start * (1 - b**K), reference=DISTANCE, noise=NESTEROV.noise),
        Averaged({"E_called_reference_error_norm": "E_mean_called_reference_error_norm"}, sums=SUMS),
        cases=split_reference(),
    ),
    Step(
        "average called reference error, limit",
        ("average called reference error",),
        with_terms(mean_R, start=NESTEROV.start, reference=DISTANCE, noise=NESTEROV.noise),
        cases=split_reference(),
    ),
)
AT_REFERENCE = (*median.SHIFTED_LAG, *median.BIAS, *median.RECURSION, *ERROR)


def _proof(bound: Bound) -> Proof:
    exact = "lmo" in bound.assumptions
    path = nesterov.EXACT_PATH if exact else nesterov.INEXACT_PATH
    error = nesterov.EXACT_ERROR if exact else nesterov.INEXACT_ERROR
    lo, hi, at_most = (median.ONE, median.ONE, eta) if exact else (r_lo, r_hi, longest)
    known = {step.name for step in error}
    later = [step for step in AT_REFERENCE if step.name not in known]
    errors = {"called_error_norm": hi, "called_reference_error_norm": lo}
    but_one = with_terms(
        median.E_mean_norm,
        initial=INITIAL / lo,
        step=L * eta * hi**2 / (2 * lo),
        error=hi / lo * E_mean_error,
        start=NESTEROV.start,
        reference=DISTANCE.subs(eta, at_most),
        noise=NESTEROV.noise,
    )
    premises = ("average in expectation", "average called reference error, limit")
    last = ("average but for the error", "average called error, limit")
    steps = (
        *path,
        *inexact.averaged("reference_norm", (AGAINST,), errors, lo, hi),
        *error,
        *(later if exact else inexact.longer(later)),
        Step(last[0], premises, but_one, cases=split_reference()),
        Step(
            "theorem",
            (*last, *(() if exact else (definition("longest step"),))),
            statement(bound, median.E_mean_norm),
            cases=split_reference(),
        ),
    )
    return Proof(bound, tuple(dict.fromkeys(steps)), left=median.E_mean_norm)


PROOF, INEXACT = _proof(NESTEROV_BOUNDS["-median"]), _proof(INEXACT_NESTEROV["-median"])
