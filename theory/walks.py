"""Instances of a walk of j steps: what is said of walks of any length, not of one that a fact about the method bounds.

The same symbol j counts the steps of every walk: those from an iterate to where its gradient was taken, those of a
window, those since an average. What a fact says of one of these lengths is not true of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from theory.axioms import Fact
from theory.rules import ProofError
from theory.symbols import symbols
from theory.vectors import INSTANCES

if TYPE_CHECKING:
    from theory.proof import Proof, Step

LENGTH = symbols("j")[0]
#: Instances of a walk -> the quantities of it that are renamed; a relation that contains none says nothing of a walk.
WALKS = {
    "walk back to the gradient": {"walk_norm"},
    "walk to the reference": {"walk_norm"},
    "samples since the last average": {"block_window_norm", "block_window_squares"},
}


def check_walk(proof: Proof, step: Step, name: str, where: str) -> None:
    """Refuse (ProofError) an instance of a relation that is not about walks of any length."""
    if name not in WALKS:
        return
    _, renamed = INSTANCES[name]
    for fact in proof.facts(step):
        found = {s.name for s in fact.relation.difference.free_symbols} & set(renamed)
        if not found & WALKS[name]:
            raise ProofError(f"{where}: {fact.key} says nothing of a walk; {name!r} is an instance of one")
    for fact in starting_facts(proof, step):
        if fact.relation.difference.has(LENGTH):
            raise ProofError(f"{where}: {fact.key} is about the length of some walks; {name!r} is an instance of any")


def starting_facts(proof: Proof, step: Step) -> Iterator[Fact]:
    """The axioms, definitions and conditions that a step rests on, through earlier steps and proofs that it cites."""
    steps, seen = {other.name: other for other in proof.steps}, {step.name}
    waiting = [step]
    while waiting:
        for premise in waiting.pop().premises:
            if isinstance(premise, Fact):
                yield premise
            elif isinstance(premise, str):
                if premise not in seen:
                    seen.add(premise)
                    waiting.append(steps[premise])
            else:
                yield from starting_facts(premise, premise.steps[-1])
