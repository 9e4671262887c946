"""Checks a step about all indices: the first one, the later ones (by induction, or as they are), and counterexamples.

A mutant or a missing premise is refuted by a sequence: values at the indices first, ..., n that obey every premise at
every index and break the conclusion at n. Where nothing is handed on, one index suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy as sp

from theory.axioms import Fact
from theory.checkers.hints import HINTS
from theory.checkers.outcome import Values, no_conclusion, verdict
from theory.checkers.solver import counterexample, proves
from theory.relation import Relation, le
from theory.rules import ProofError
from theory.rules_over_steps import COUNTED, Everywhere, Induction
from theory.symbols import symbols

if TYPE_CHECKING:
    from theory.proof import Step

UNROLLED = 3  # indices after the first
STARTS = ((1, 0), (0, 2))  # of what goes along: (steps after the first, its value there); one of the two is 0


def decide(
    step: Step, facts: Sequence[Fact]
) -> tuple[str, dict[str, Values | None], dict[str, Values | None]]:
    """Why the step is refused ("" if it is not), the mutants' and the premises' counterexamples."""
    rule = step.rule
    if isinstance(rule, Everywhere):
        return _everywhere(step, facts, rule.first)
    assert isinstance(rule, Induction)
    rule.check([fact.relation for fact in facts], step.conclusion)
    unknown = set(rule.base) - {fact.key for fact in facts}
    if unknown:
        raise ProofError(f"step {step.name}: base {min(unknown)!r} is not one of its premises")
    sharper = {what: unrolled(rule, facts, mutant) for what, mutant in step.mutants.items()}
    dropped = {f.key: unrolled(rule, [g for g in facts if g is not f], step.conclusion) for f in facts}
    if not _base(rule, facts, step.conclusion) or not _handed_on(rule, facts, step.conclusion):
        return no_conclusion(unrolled(rule, facts, step.conclusion)), sharper, dropped
    return verdict(sharper, dropped), sharper, dropped


def _everywhere(
    step: Step, facts: Sequence[Fact], first: int
) -> tuple[str, dict[str, Values | None], dict[str, Values | None]]:
    (k,) = symbols("k")
    start, on = {k: sp.Integer(first)}, {k: COUNTED + first + 1}

    def known(of: Sequence[Fact], later: bool) -> list[Relation]:
        return [f.relation for f in of if f.scope == "every" or (f.scope == "later") == later]

    def broken(of: Sequence[Fact], conclusion: Relation) -> Values | None:
        at_first = counterexample([r.subs(start) for r in known(of, False)], conclusion.subs(start))
        return at_first or counterexample([*known(of, True), le(sp.Integer(first + 1), k)], conclusion)

    sharper = {what: broken(facts, mutant) for what, mutant in step.mutants.items()}
    dropped = {f.key: broken([g for g in facts if g is not f], step.conclusion) for f in facts}
    for at, later in ((start, False), (on, True)):
        if not proves([r.subs(at) for r in known(facts, later)], step.conclusion.subs(at)):
            return no_conclusion(broken(facts, step.conclusion)), sharper, dropped
    return verdict(sharper, dropped), sharper, dropped


def _base(rule: Induction, facts: Sequence[Fact], conclusion: Relation) -> bool:
    index = {symbols(rule.index)[0]: sp.Integer(rule.first)}
    known = [f.relation for f in facts if f.key in rule.base]
    cases = [{**index, **case} for case in rule.at_first]
    return all(proves([r.subs(case) for r in known], conclusion.subs(case)) for case in cases)


def _handed_on(rule: Induction, facts: Sequence[Fact], conclusion: Relation) -> bool:
    later = [f.relation for f in facts if f.key not in rule.base]
    known = [rule.previous(conclusion), *later]
    return all(proves([r.subs(case) for r in later], conclusion.subs(case)) for case in rule.anew) and all(
        proves([r.subs(case) for r in known], conclusion.subs(case)) for case in rule.later
    )


def unrolled(rule: Induction, facts: Sequence[Fact], conclusion: Relation) -> Values | None:
    """A sequence that obeys the facts and breaks the conclusion at its last index; None if none was found."""
    hints = [{k: v for k, v in hint.items() if k not in (rule.index, *rule.along)} for hint in HINTS]
    for start, along in STARTS if rule.along else ((0, 0),):
        premises: list[Relation] = []
        for index in range(rule.first + start, rule.first + UNROLLED + 1):
            names = _names(rule, index, along - start - rule.first)
            premises += [f.relation.subs(names) for f in facts if (f.key in rule.base) == (index == rule.first)]
            found = counterexample(premises, conclusion.subs(names), hints)
            if found is not None:
                return found
    return None


def _names(rule: Induction, index: int, ahead: int) -> dict[sp.Basic, Any]:
    """Symbols of one index: NAME@index; what was before is NAME@(index - 1); what goes along is index + ahead."""
    names: dict[sp.Basic, Any] = {symbols(rule.index)[0]: sp.Integer(index)}
    names |= {symbols(name)[0]: sp.Integer(index + ahead) for name in rule.along}
    for before, now in rule.before.items():
        names[symbols(now)[0]] = at(now, index)
        names[symbols(before)[0]] = at(now, index - 1)
    for name in rule.varying:
        names[symbols(name)[0]] = at(name, index)
    return names


def at(name: str, index: int) -> sp.Symbol:
    """The symbol of a quantity at an index."""
    return sp.Symbol(f"{name}@{index}", **symbols(name)[0].assumptions0)
