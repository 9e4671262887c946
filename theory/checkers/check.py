"""Checks proofs: every step, every sharper constant, every premise; results are values that fit into JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from theory.axioms import Fact
from theory.checkers.induction import decide
from theory.checkers.outcome import Values, no_conclusion, verdict
from theory.checkers.solver import HINTS, counterexample, load, proves, rewrites
from theory.errors import InputError
from theory.ledger import Ledger, closure, ledger, rests_on
from theory.plain import check_types
from theory.proof import Proof, Step
from theory.relation import Relation
from theory.rules import ProofError, Rewritten
from theory.rules_over_steps import Everywhere, Induction


@dataclass(frozen=True)
class StepResult:
    """What came of one step.

    proved: conclusion follows, all mutants refuted, all premises needed; reason: why not, in words.
    mutants, premises: what was sharpened or dropped -> the counterexample (name -> fraction), None if none was found.
    axioms: axiom -> the premises (or the rule) through which the step uses it.
    """

    name: str
    statement: str
    proved: bool
    seconds: float
    reason: str
    rule: str
    mutants: dict[str, Values | None]
    premises: dict[str, Values | None]
    axioms: dict[str, list[str]]


Known = dict[tuple[Step, tuple[object, ...], tuple[Fact, ...]], StepResult]  # what was checked before


@dataclass(frozen=True)
class ProofResult:
    """What came of one proof; rests_on: names of the proofs that it uses, which have to hold too."""

    name: str
    title: str
    proved: bool
    seconds: float
    reason: str
    steps: tuple[StepResult, ...]
    rests_on: tuple[str, ...]
    ledger: Ledger

    def as_dict(self) -> dict[str, Any]:
        """Everything by name, ready for JSON."""
        return asdict(self)


def check_step(proof: Proof, step: Step, known: Known | None = None) -> StepResult:
    """Check one step: the conclusion, the mutants, the premises. `known` keeps what several proofs share."""
    load()
    known = {} if known is None else known
    key = (step, step.conclusion.terms, proof.facts(step))
    if key not in known:
        known[key] = _check_step(proof, step)
    return known[key]


def _check_step(proof: Proof, step: Step) -> StepResult:
    start = time.perf_counter()
    facts = proof.facts(step)
    used = {name: [f"rule {type(step.rule).__name__}"] for name in step.rule.axioms}
    for name, key in rests_on(step, facts):
        used.setdefault(name, []).append(key)
    reason, sharper, dropped = "", dict.fromkeys(step.mutants), dict.fromkeys(f.key for f in facts)
    try:
        if isinstance(step.rule, (Everywhere, Induction)):
            reason, sharper, dropped = decide(step, facts)
        else:
            hypotheses = [(fact, step.rule.apply(fact.relation)) for fact in facts]
            reason, sharper, dropped = _decide(step, hypotheses)
    except (ProofError, InputError) as error:
        reason = str(error)
    seconds = time.perf_counter() - start
    name = type(step.rule).__name__
    return StepResult(
        step.name, str(step.conclusion), not reason, seconds, reason, name, sharper, dropped, used
    )


def _decide(
    step: Step, hypotheses: Sequence[tuple[Fact, Relation]]
) -> tuple[str, dict[str, Values | None], dict[str, Values | None]]:
    relations = [relation for _, relation in hypotheses]
    hints = list(HINTS)
    sharper = {what: counterexample(relations, mutant, hints) for what, mutant in step.mutants.items()}
    dropped = {
        fact.key: counterexample([r for f, r in hypotheses if f is not fact], step.conclusion, hints)
        for fact, _ in hypotheses
    }
    follows = rewrites if isinstance(step.rule, Rewritten) else proves
    if not all(follows([r.subs(c) for r in relations], step.conclusion.subs(c)) for c in step.cases):
        return no_conclusion(counterexample(relations, step.conclusion)), sharper, dropped
    return verdict(sharper, dropped), sharper, dropped


def rebuilt(proof: Proof) -> Proof:
    """The proof made anew of its parts. Raises ProofError where that is refused, as after a change of its fields."""
    check_types(proof)
    steps = tuple(replace(step, conclusion=replace(step.conclusion)) for step in proof.steps)
    return Proof(proof.theorem, steps, proof.left, proof.words)


def check(
    proof: Proof, done: dict[str, ProofResult] | None = None, known: Known | None = None
) -> ProofResult:
    """Check one proof; `done` holds the results of those it rests on (they are checked first where missing)."""
    done = {} if done is None else done
    known = {} if known is None else known
    proof = rebuilt(proof)
    for other in closure([proof])[:-1]:
        if other.name not in done:
            done[other.name] = check(other, done, known)
    start = time.perf_counter()
    steps = tuple(check_step(proof, step, known) for step in proof.steps)
    book = ledger(proof)
    bad = [f"step {s.name}: {s.reason}" for s in steps if not s.proved]
    bad += [f"it uses {p.name}, which is not proved" for p in proof.rests_on if not done[p.name].proved]
    bad += book.differences(proof.theorem)
    seconds = time.perf_counter() - start
    rests = tuple(p.name for p in proof.rests_on)
    result = ProofResult(
        proof.name, proof.theorem.title, not bad, seconds, "; ".join(bad), steps, rests, book
    )
    done[proof.name] = result
    return result


def check_all(
    proofs: Sequence[Proof], progress: Callable[[float, str], None] | None = None
) -> dict[str, ProofResult]:
    """Check proofs and all that they rest on. Raises InputError where z3 is missing."""
    load()
    done: dict[str, ProofResult] = {}
    known: Known = {}
    everything = closure(proofs)
    for number, proof in enumerate(everything):
        if progress is not None:
            progress(number / len(everything), f"proof of {proof.name}")
        check(proof, done, known)
    return done
