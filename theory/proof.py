"""A proof as a value: steps from named axioms to a theorem, each of which can be checked.

A `Step` has premises (facts), a rule that turns them into hypotheses, and a conclusion. It is accepted iff
  1. the hypotheses imply the conclusion, for all admissible values of every symbol (z3, or exact rewriting);
  2. each sharper conclusion (a constant a few per cent smaller, term by term) is refuted by a counterexample;
  3. each premise is needed: without it there is a counterexample. So no axiom is cited that is not used, and the
     premises do not contradict each other.
Counterexamples are exact numbers, verified without the solver. A step may use instances of axioms, definitions,
conditions of the theorem, and what was concluded before, in this proof or in a proof that it cites; a proof makes each
of these facts anew and refuses any other.
The last conclusion is the theorem: the right side of a `Bound` or an `Inequality`, term by term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from theory.axioms import Fact, axiom, counted, definition
from theory.bound import Bound
from theory.genuine import check_cases, check_cited, check_fact, check_left, check_rule, place_of
from theory.inequality import Inequality
from theory.methods import check_method, check_optional
from theory.plain import check_types
from theory.relation import Relation, eq, ge, le, mutants, statement, with_terms
from theory.rules import Direct, Expected, InnerWith, Instance, Integrated, NormOf, ProofError, Rewritten, SquareOf
from theory.rules_over_steps import Averaged, Everywhere, Induction
from theory.run_on import RunOn
from theory.splits import (
    from_one,
    split,
    split_all,
    split_along,
    split_between,
    split_reference,
    split_run,
    split_sum,
)
from theory.starts import ON_THE_PATH, start_of
from theory.symbols import symbols
from theory.vectors import INSTANCES, vectors

__all__ = [
    "Averaged",
    "Direct",
    "Everywhere",
    "Expected",
    "Fact",
    "Induction",
    "InnerWith",
    "Instance",
    "Integrated",
    "NormOf",
    "Proof",
    "ProofError",
    "Relation",
    "Rewritten",
    "RunOn",
    "SquareOf",
    "Step",
    "axiom",
    "definition",
    "eq",
    "from_one",
    "ge",
    "le",
    "mutants",
    "split",
    "split_all",
    "split_along",
    "split_between",
    "split_reference",
    "split_run",
    "split_sum",
    "statement",
    "symbols",
    "vectors",
    "with_terms",
]

Rule = Direct | NormOf | InnerWith | SquareOf | Integrated | Expected | Instance | Induction | Everywhere | Averaged


@dataclass(frozen=True)
class Step:
    """One step. name: unique in its proof; premises: facts, names of earlier steps, or proofs whose theorem is used.

    mutant: a sharper conclusion that has to be refuted; only needed where the right side is 0.
    cases: substitutions that exhaust what the symbols can be (for minima); each is checked by itself.
    """

    name: str
    premises: tuple[Fact | str | Proof, ...]
    conclusion: Relation
    rule: Rule = Direct()
    mutant: Relation | None = None
    cases: tuple[Mapping[sp.Symbol, sp.Expr], ...] = ({},)
    words: str = ""

    def __post_init__(self) -> None:
        if not self.premises:
            raise ProofError(f"step {self.name}: has no premises")
        if len(self.premises) != len(set(self.premises)):
            raise ProofError(f"step {self.name}: cites a premise twice")
        if not self.mutants:
            raise ProofError(f"step {self.name}: its right side is 0; give a mutant")

    def __hash__(self) -> int:
        return hash((self.name, self.conclusion))

    @property
    def mutants(self) -> dict[str, Relation]:
        """The sharper conclusions, by what was changed."""
        own = {} if self.mutant is None else {f"{self.mutant}": self.mutant}
        return {**mutants(self.conclusion), **own}


@dataclass(frozen=True)
class Proof:
    """Steps that end at a theorem.

    theorem: the Bound or Inequality; left: the quantity that a Bound's metric names (theory.metrics), None for an
    Inequality. Raises ProofError for a premise that does not exist or comes later, a fact that is not what its name
    says or not of the theorem's place (`theory.genuine`), two steps of one name, or a last conclusion that is not the
    theorem.
    """

    theorem: Bound | Inequality
    steps: tuple[Step, ...]
    left: sp.Expr | None = None
    words: str = ""
    _facts: dict[str, Fact] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_types(self)
        if not self.steps:
            raise ProofError(f"proof of {self.name}: has no steps")
        check_left(self)
        check_method(self)
        check_optional(self)
        for step in self.steps:
            for premise in step.premises:
                if isinstance(premise, Fact):
                    check_fact(self, premise)
                elif isinstance(premise, Proof):
                    check_cited(self, premise)
                elif premise not in self._facts:
                    known = ", ".join(self._facts) or "none"
                    raise ProofError(
                        f"proof of {self.name}, step {step.name}: premise {premise!r} is not proved before it; "
                        f"proved are: {known}"
                    )
            if step.name in self._facts:
                raise ProofError(f"proof of {self.name}: two steps are named {step.name}")
            check_rule(self, step)
            scope = self._scope(step)
            check_cases(self, step, scope)
            start = start_of(f"proof of {self.name}, step {step.name}", step, self.facts(step))
            self._facts[step.name] = Fact(step.name, "step", step.conclusion, "", step.words, scope, start=start)
        if scope != "every":
            raise ProofError(f"proof of {self.name}: its end holds at {scope} steps only")
        if start == ON_THE_PATH and isinstance(self.theorem, Bound):
            raise ProofError(f"proof of {self.name}: in its end E0 is the norm {start}, in the bound its expectation")
        _is_theorem(self.steps[-1].conclusion, self)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """The name of the theorem."""
        return self.theorem.name

    @property
    def place(self) -> str:
        """Where it looks at a step: "x", or "y" under error feedback."""
        return place_of(self)

    @property
    def conclusion(self) -> Relation:
        """The theorem as a relation."""
        return statement(self.theorem, self.left)

    def facts(self, step: Step) -> tuple[Fact, ...]:
        """The premises of a step as facts."""
        return tuple(self.fact(premise) for premise in step.premises)

    def fact(self, premise: Fact | str | Proof) -> Fact:
        """One premise as a fact."""
        if isinstance(premise, Fact):
            return premise
        if isinstance(premise, Proof):
            start, title = premise.fact(premise.steps[-1].name).start, premise.theorem.title
            return Fact(f"theorem {premise.name}", "theorem", premise.conclusion, "", title, start=start)
        return self._facts[premise]

    def _scope(self, step: Step) -> str:
        """At which steps a conclusion holds."""
        scopes = {fact.scope for fact in self.facts(step)} - {"every"}
        if isinstance(step.rule, Induction):
            of = counted(scopes) if step.rule.index == "j" else ""
            first, later = of + ("first at y" if step.rule.first else "first"), f"{of}later"
            for fact in self.facts(step):
                if fact.scope not in ("every", first if fact.key in step.rule.base else later):
                    raise ProofError(f"proof of {self.name}, step {step.name}: {fact.key} holds at {fact.scope} steps")
            return "every"
        if isinstance(step.rule, Everywhere):
            first = "first at y" if step.rule.first else "first"
            if scopes != {first, "later"}:
                raise ProofError(
                    f"proof of {self.name}, step {step.name}: its premises hold at {' and '.join(sorted(scopes))} steps"
                )
            return "every"
        if len(scopes) > 1 or (scopes and isinstance(step.rule, (Averaged, Instance))):
            raise ProofError(
                f"proof of {self.name}, step {step.name}: its premises hold at {' and '.join(sorted(scopes))} steps"
            )
        if isinstance(step.rule, Instance) and step.rule.name in INSTANCES:
            return INSTANCES[step.rule.name][0]
        return scopes.pop() if scopes else "every"

    @property
    def rests_on(self) -> tuple[Proof, ...]:
        """The proofs whose theorems its steps use, in order."""
        return tuple(dict.fromkeys(p for step in self.steps for p in step.premises if isinstance(p, Proof)))


def _is_theorem(last: Relation, proof: Proof) -> None:
    wanted = proof.conclusion
    same = sp.expand(last.left - wanted.left) == 0 and last.sense == wanted.sense
    mine, theirs = dict(last.terms), dict(wanted.terms)
    if not same or sorted(mine) != sorted(theirs):
        raise ProofError(f"proof of {proof.name}: ends at {last}, which is not the theorem {wanted}")
    for name, term in theirs.items():
        if sp.simplify(mine[name] - term) != 0:
            raise ProofError(f"proof of {proof.name}: term {name} of its end is {mine[name]}, the theorem has {term}")
