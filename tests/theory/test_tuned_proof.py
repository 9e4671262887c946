"""The proof at the best step and momentum, the rule that adds premises up, and false steps with them, all refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from theory.checkers.algebra import adds_up
from theory.checkers.check import check_step
from theory.checkers.flatten import Flattener
from theory.checkers.solver import rewrites
from theory.errors import InputError
from theory.lmo.proofs.tuned import BOTH
from theory.proof import axiom, eq, le, symbols, with_terms

pytest.importorskip("z3", reason="the extra proofs is not installed")

G, M, E, S, L, sigma, rho, alpha, scale, noise = symbols(
    "grad_norm momentum_norm error_norm shifted_error_norm L sigma rho alpha scale noise_scale"
)


@pytest.mark.mutation
@pytest.mark.parametrize("term", ["initial", "delay", "noise"])
def test_a_constant_less_has_a_counterexample(term):
    (step,) = BOTH.steps
    terms = {name: t * (sp.Rational(99, 100) if name == term else 1) for name, t in step.conclusion.terms}
    wrong = replace(step, conclusion=with_terms(step.conclusion.left, **terms))
    assert "does not follow; counterexample" in check_step(BOTH, wrong).reason


@pytest.mark.mutation
def test_premises_add_up_or_they_do_not():
    """Inequalities keep their direction; an equality is put in; nothing else is known."""
    a, c = le(G, M + E), le(M, S)
    assert adds_up([a, c], le(G, S + E)) and adds_up([a, eq(M, S)], le(G, S + E))
    assert not adds_up([a], le(G, M)) and not adds_up([a, c], le(G, E))
    assert not adds_up([a], eq(G, M + E)) and not adds_up([a], le(M + E, G))
    assert not adds_up([le(M, S), le(G, M)], eq(G, S))
    assert not adds_up([a, c], le(G, M + E))  # what is too much is no sum, either
    assert adds_up([eq(M, 2 * S), eq(M, 3 * E), le(G, M)], le(G, 3 * E + (M - 2 * S))) is False


def test_roots_are_rewritten_only_where_they_exist():
    """sqrt(x/y) = sqrt(x)/sqrt(y) for y > 0; sqrt(x^2) is no x for x that may be negative."""
    (t,) = symbols("inner_grad")
    assert adds_up([le(G, M * sp.sqrt(alpha / noise + 1))], le(G, M * sp.sqrt(alpha + noise) / sp.sqrt(noise)))
    with pytest.raises(InputError, match="Abs is not allowed"):
        adds_up([le(G, sp.sqrt(t**2))], le(G, t))
    assert not adds_up([le(G, M * sp.sqrt(alpha + noise))], le(G, M * (sp.sqrt(alpha) + sp.sqrt(noise))))
    quarter = Flattener()(L ** sp.Rational(3, 4))
    assert quarter.is_Pow and quarter.exp == 3
    with pytest.raises(InputError, match="only square roots"):
        Flattener()(L ** sp.Rational(1, 3))


@pytest.mark.mutation
def test_what_is_added_up_has_to_be_defined():
    """Without the axioms that make sigma positive nothing is divided by it."""
    with pytest.raises(InputError, match="nothing divides by it"):
        rewrites([le(G, M / sigma)], le(G, M / sigma))
    facts = [axiom(name).relation for name in ("scale_of_the_noise", "tuned_momentum")]
    assert rewrites([*facts, le(G, M / noise)], le(G, M / (rho * sigma)))
    with pytest.raises(InputError, match="nothing divides by it"):
        rewrites([facts[1], le(G, M / noise)], le(G, M / (rho * sigma)))
    with pytest.raises(InputError, match="has no root"):
        rewrites([le(G, M)], le(G, M + sp.sqrt(scale - noise)))
    root = sp.sqrt(noise - 2 * scale)  # alpha <= 1
    assert rewrites([facts[1], le(G, M + root)], le(G, M + root))
