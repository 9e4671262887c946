"""The ledger of a proof: every axiom reached from the theorem, and the steps that use it. Nothing else is unproved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from theory.assumptions import ASSUMPTIONS
from theory.axioms import DEFINITIONS, Fact, definition, needs
from theory.bound import Bound
from theory.errors import InputError
from theory.inequality import Inequality
from theory.proof import Proof, Step
from theory.rules import Instance
from theory.unfolding import Unfolded
from theory.vectors import INSTANCE_OF


@dataclass(frozen=True)
class Ledger:
    """What a theorem rests on: axiom -> the steps (PROOF/STEP) that use it, assumptions and mathematics apart;
    definitions by name; condition of the theorem -> the steps that use it.
    """

    assumptions: dict[str, tuple[str, ...]]
    mathematics: dict[str, tuple[str, ...]]
    definitions: dict[str, str]
    conditions: dict[str, tuple[str, ...]]

    def differences(self, theorem: Bound | Inequality) -> tuple[str, ...]:
        """Where the theorem's assumptions are not what its proof uses; conditions that it uses and does not state."""
        stated, used = set(theorem.assumptions), set(self.assumptions)
        unused = [f"{name} is assumed and not used" for name in sorted(stated - used)]
        required = set(map(str, getattr(theorem, "conditions", ())))
        free = [f"condition {name} is used and not stated" for name in sorted(set(self.conditions) - required)]
        return (*unused, *(f"{name} is used and not assumed" for name in sorted(used - stated)), *free)


def ledger(proof: Proof) -> Ledger:
    """The axioms reached from the theorem, through every proof that it rests on."""
    uses: dict[str, list[str]] = {}
    definitions: dict[str, str] = {}
    conditions: dict[str, list[str]] = {}
    for one in closure([proof]):
        for step in one.steps:
            place = f"{one.name}/{step.name}"
            facts = one.facts(step)
            for name in dict.fromkeys((*(axiom for axiom, _ in rests_on(step, facts)), *step.rule.axioms)):
                uses.setdefault(name, []).append(place)
            for fact in facts:
                if fact.kind == "condition":
                    conditions.setdefault(fact.key.removeprefix("condition "), []).append(place)
            if isinstance(step.rule, Unfolded):
                definitions[step.rule.name] = DEFINITIONS[step.rule.name][0]
            definitions |= {f.key.removeprefix("definition "): f.words for f in facts if f.kind == "definition"}
    assumed = {name: tuple(uses[name]) for name in ASSUMPTIONS if name in uses}
    rest = {name: tuple(places) for name, places in uses.items() if name not in ASSUMPTIONS}
    return Ledger(assumed, rest, definitions, {name: tuple(places) for name, places in conditions.items()})


def rests_on(step: Step, facts: Sequence[Fact]) -> Iterator[tuple[str, str]]:
    """The axioms of a step's facts and the assumptions under which alone they may be used, each with what uses it."""
    for fact in facts:
        for name in dict.fromkeys(((fact.axiom,) if fact.axiom else ()) + tuple(needs(fact))):
            yield name, fact.key
    rule = f"rule {type(step.rule).__name__}"
    if isinstance(step.rule, Unfolded):
        meaning = definition(step.rule.name)
        yield from ((name, rule) for name in (*((meaning.axiom,) if meaning.axiom else ()), *needs(meaning)))
    if isinstance(step.rule, Instance) and step.rule.name in INSTANCE_OF:
        yield INSTANCE_OF[step.rule.name], rule


def closure(proofs: Sequence[Proof]) -> tuple[Proof, ...]:
    """The proofs and all that they rest on, each after those it uses."""
    found: dict[str, Proof] = {}

    def visit(proof: Proof) -> None:
        for other in proof.rests_on:
            visit(other)
        if found.setdefault(proof.name, proof) != proof:
            raise InputError(f"proof {proof.name}: two different proofs have that name")

    for proof in proofs:
        visit(proof)
    return tuple(found.values())
