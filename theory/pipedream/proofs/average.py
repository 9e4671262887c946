"""Proof of the averaged descent: the sum over a run telescopes, f is bounded below."""

from __future__ import annotations

from sympy import Expr, Integer

import theory.pipedream.axioms  # noqa: F401  (registers the schemas)
from theory.inequality import Inequality
from theory.pipedream import steps
from theory.pipedream.parts import K, L, S, gamma
from theory.pipedream.proofs import descent
from theory.proof import Averaged, Expected, Proof, Step, axiom, definition, ge, statement, symbols, with_terms

MEANS = {
    f"E_{name}": f"mean_{name}"
    for name in "grad_square taken_square apart_square update_square expected_square martingale_square "
    "window_squares drift_squares martingale_squares".split()
}
first, last, f_star = symbols("E_f_first E_f_last f_star")
grad, taken, apart, update = symbols("mean_grad_square mean_taken_square mean_apart_square mean_update_square")


def over_a_run(method: str) -> Averaged:
    """The sum over a run of a method whose step size is constant."""
    telescoping = (("E_f_now", "E_f_next", "E_f_first", "E_f_last"),)
    return Averaged(MEANS, telescoping, axioms=(method, "finite-sum"))


def _proof(theorem: Inequality, one_step: Proof, stages: Expr, method: str) -> Proof:
    summed = Step(
        "descent summed",
        (one_step,),
        with_terms(
            grad,
            initial=2 * stages * (first - last) / (gamma * K),
            taken=-taken,
            apart=L**2 * apart,
            curvature=gamma * L * stages * update,
        ),
        over_a_run(method),
    )
    bounded = Step(
        "last objective", (axiom("lower_bound"),), ge(last, f_star), Expected(), mutant=ge(last, f_star + last / 20)
    )
    end = Step("lemma", ("descent summed", "last objective", definition("first gap")), statement(theorem))
    return Proof(theorem, (summed, bounded, end))


PROOF = _proof(steps.AVERAGE, descent.PROOF, S, "block-sgd")
EXACT = _proof(steps.EXACT_AVERAGE, descent.EXACT_PROOF, Integer(1), "delayed-gd")
FULL = _proof(steps.FULL_AVERAGE, descent.FULL, Integer(1), "pipedream")
