"""Proof of Lemma B: min(k, tau) steps, each of norm at most eta, lie between a gradient and where it is used."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo import delay
from theory.lmo.proofs import descent
from theory.proof import Induction, Instance, NormOf, Proof, Step, axiom, definition, le, statement, symbols

eta, j, age = symbols("eta j age")
step, walk, walk_before, gap = symbols("step_norm walk_norm walk_norm_before gap_norm")

AT_MOST_ETA = Step(
    "a step is at most eta",
    ("length of the step", axiom("lmo_norm")),
    le(step, eta),
)

STEPS = (
    descent.LENGTH,
    AT_MOST_ETA,
    Step(
        "no step walked",
        (definition("walk of no step"),),
        le(walk, 0 * eta),
        NormOf(),
        mutant=le(walk, -eta / 20),
    ),
    Step(
        "one step more",
        (definition("walk"),),
        le(walk, walk_before + step),
        NormOf(),
    ),
    Step(
        "j steps",
        ("no step walked", "one step more", "a step is at most eta"),
        le(walk, eta * j),
        Induction({"walk_norm_before": "walk_norm"}, ("no step walked",), ("step_norm",), index="j"),
    ),
    Step(
        "back to the gradient",
        ("j steps",),
        le(gap, eta * age),
        Instance("walk back to the gradient"),
    ),
    Step(
        "lemma",
        (axiom("smoothness", "bias"), "back to the gradient", axiom("fixed_delay")),
        statement(delay.INEQUALITY),
    ),
)

PROOF = Proof(delay.INEQUALITY, STEPS)
