"""False theorems whose proofs were once accepted, each by a hole in the checker; every one is refused now."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

import theory.lmo.axioms
import theory.pipedream.axioms  # noqa: F401
from theory.checkers.check import check
from theory.inequality import Inequality
from theory.lmo.parts import LAG, NOISE, START
from theory.lmo.proofs import delay, descent, noise, shifted
from theory.proof import (
    Averaged,
    Induction,
    Integrated,
    Proof,
    ProofError,
    Step,
    axiom,
    le,
    statement,
    symbols,
    with_terms,
)
from theory.sum_rules import Summed

pytest.importorskip("z3", reason="the extra proofs is not installed")

alpha, eta, tau, k, K, L, E0 = symbols("alpha eta tau k K L E0")
grad, direction = symbols("grad_norm direction_norm")
b = 1 - alpha


def claim(left: sp.Expr, *assumptions: str, **terms: sp.Expr) -> Inequality:
    """A false inequality."""
    return Inequality("false", "false", "false", left, terms, assumptions, "nowhere")


def why_not(proof: Proof) -> str:
    result = check(proof)
    assert not result.proved
    return result.reason


# names that a rule takes from the author


@pytest.mark.mutation
def test_the_average_of_one_quantity_is_not_that_of_another():
    """Theorem 1 without its delay: the shifted error's average passed off as the error's."""
    (mean,) = symbols("E_mean_error_norm")
    false = with_terms(mean, start=START * (1 - b**K), momentum_lag=LAG, noise=NOISE)
    steps = [s for s in shifted.RECURSION if not s.name.startswith("average shifted")]
    rule = Averaged({"E_shifted_error_norm": "E_mean_error_norm"}, sums={b ** (k + 1): b * (1 - b**K) / alpha})
    theorem = claim(mean, start=START * (1 - b**K), momentum_lag=LAG, noise=NOISE)
    end = Step("a", ("expected shifted error, limits",), false, rule)
    proof = Proof(theorem, (descent.LENGTH, *noise.STEPS, *steps, end))
    assert "E_shifted_error_norm -> E_mean_error_norm is not a quantity and its average" in why_not(proof)


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("rule", "left", "reason"),
    [
        (Averaged({"direction_norm": "mean_grad_norm"}), "mean_grad_norm", "is not a quantity and its average"),
        (Summed(wholes={"direction_norm": "grad_norm"}), "grad_norm", "is not a quantity and its sum"),
        (
            Averaged({}, (("direction_norm", "grad_norm", "f_first", "f_last"),)),
            "grad_norm",
            "are not known to telescope",
        ),
        (Averaged({"grad_norm": "mean_grad_norm"}, axioms=()), "grad_norm", "rests on one of"),
    ],
)
def test_pairs_of_names_are_in_a_table(rule, left, reason):
    """norm(d_k) <= 1 turned into a gradient of at most 1."""
    theorem = claim(*symbols(left), "lmo", "constant-step", one=sp.Integer(1))
    proof = Proof(theorem, (Step("s", (axiom("lmo_norm"),), statement(theorem), rule),))
    assert reason in why_not(proof)


@pytest.mark.mutation
def test_an_integral_is_that_of_its_quantity():
    """dualnorm(grad f) <= L norm(step)^2/2."""
    r, t, step = symbols("segment_inner t step_norm")
    theorem = claim(grad, "duality", "smoothness", half=L * step**2 / 2)
    along = Step("a", (axiom("duality_on_segment"), axiom("smoothness_on_segment")), le(r, L * t * step**2))
    end = Step("b", ("a",), statement(theorem), Integrated("segment_inner", "grad_norm"))
    assert "grad_norm is not known to be that of segment_inner" in why_not(Proof(theorem, (along, end)))


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Induction({"walk_norm_before": "grad_norm"}, (), ("step_norm",), "j"), "walk_norm_before -> grad_norm"),
        (Induction({"walk_norm_before": "walk_norm"}, (), ("gap_norm",), "j"), "gap_norm is not known to vary"),
        (Induction({"walk_norm_before": "walk_norm"}, (), (), "tau"), "walk_norm_before is counted by j"),
        (Induction({"walk_norm_before": "walk_norm"}, (), (), "j", axioms=()), "rests on constant-step"),
        (Induction({}, (), (), "j"), "nothing is not one of the quantities of the step before"),
    ],
)
def test_an_induction_knows_what_it_hands_on(rule, reason):
    steps = tuple(replace(s, rule=replace(rule, base=s.rule.base)) if s.name == "j steps" else s for s in delay.STEPS)
    assert reason in why_not(Proof(delay.PROOF.theorem, steps))


@pytest.mark.mutation
def test_a_sum_over_blocks_takes_no_coefficient_that_differs_between_them():
    """The windows of two blocks have different lengths j."""
    apart, squares, j = symbols("block_apart_square block_window_squares j")
    rule = Summed(wholes={"block_apart_square": "apart_square", "block_window_squares": "window_squares"})
    with pytest.raises(ProofError, match="what j adds up to"):
        rule.apply(le(apart, j * squares))


@pytest.mark.mutation
def test_an_average_takes_no_coefficient_that_changes():
    (delta,) = symbols("delta")
    with pytest.raises(ProofError, match="the coefficient of grad_norm changes with k"):
        Averaged({"grad_norm": "mean_grad_norm"}).apply(le(delta * grad, L))
