"""Proof of Theorem 1m, momentum's own norm: one error instead of two in the descent step."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import momentum
from theory.lmo.proofs import delayed, descent
from theory.proof import Averaged, Expected, Proof, Step, definition, statement, symbols, with_terms

f_now, f_next, f_first, f_last, f_star = symbols("f_now f_next f_first f_last f_star")
eta, K, L, Delta0 = symbols("eta K L Delta0")
M, E, mean_M, mean_E = symbols("momentum_norm error_norm mean_momentum_norm mean_error_norm")
E_first, E_last, E_mean_M, E_mean_E = symbols("E_f_first E_f_last E_mean_momentum_norm E_mean_error_norm")
HALF = L * eta / 2

STEPS = (
    *descent.STEPS,
    Step(
        "descent by the momentum",
        ("descent along the direction", "progress along the direction"),
        with_terms(f_next, objective=f_now, momentum=-eta * M, error=eta * E, step=L * eta**2 / 2),
    ),
    Step(
        "sum",
        ("descent by the momentum",),
        with_terms(mean_M, initial=(f_first - f_last) / (eta * K), step=HALF, error=mean_E),
        Averaged(
            {"momentum_norm": "mean_momentum_norm", "error_norm": "mean_error_norm"},
            telescoping=(("f_now", "f_next", "f_first", "f_last"),),
        ),
    ),
    Step(
        "expected sum",
        ("sum",),
        with_terms(E_mean_M, initial=(E_first - E_last) / (eta * K), step=HALF, error=E_mean_E),
        Expected(),
    ),
    delayed.FLOOR,
    Step(
        "average in expectation",
        ("expected sum", "expected lower bound", definition("initial gap")),
        with_terms(E_mean_M, initial=Delta0 / (eta * K), step=HALF, error=E_mean_E),
    ),
    *delayed.EXPECTED_ERROR,
    Step("theorem", ("average in expectation", "average error, limit"), statement(momentum.BOUND, E_mean_M)),
)

PROOF = Proof(momentum.BOUND, STEPS, left=E_mean_M)
