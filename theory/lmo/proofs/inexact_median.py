"""Proof of Theorem 1i at the reference s steps back: that of Theorem 1m with the longest step of an inexact oracle."""

from __future__ import annotations

from theory.lmo.inexact import INEXACT
from theory.lmo.inexact_axioms import longest, r_hi, r_lo
from theory.lmo.parts import INITIAL, NOISE, START
from theory.lmo.proofs import delay, inexact, median
from theory.proof import Proof, Step, definition, split_reference, statement, symbols, with_terms

L, eta, mean_E = symbols("L eta E_mean_error_norm")

_KNOWN = {step.name for step in (*inexact.EXPECTED_ERROR, *delay.STEPS)}
_LATER = (*median.SHIFTED_LAG, *median.BIAS, *median.RECURSION, *median.ERROR)

STEPS = (
    *inexact.PATH,
    *inexact.averaged("reference_norm", (median.AGAINST,), {"error_norm": r_hi, "reference_error_norm": r_lo}),
    *inexact.EXPECTED_ERROR,
    *inexact.longer([step for step in _LATER if step.name not in _KNOWN]),
    Step(
        "average but for the error",
        ("average in expectation", "average reference error, limit"),
        with_terms(
            median.E_mean_norm,
            initial=INITIAL / r_lo,
            step=L * eta * r_hi**2 / (2 * r_lo),
            error=r_hi / r_lo * mean_E,
            start=START,
            reference=median.DISTANCE.subs(eta, longest),
            noise=NOISE,
        ),
        cases=split_reference(),
    ),
    Step(
        "theorem",
        ("average but for the error", "average error, limit", definition("longest step")),
        statement(INEXACT["-median"], median.E_mean_norm),
        cases=split_reference(),
    ),
)

PROOF = Proof(INEXACT["-median"], STEPS, left=median.E_mean_norm)
