"""What a proof may be made of: facts that the registers make themselves, rules and cases of closed lists, one place.

z_k stands for x_k, or for the virtual iterate y_k under error feedback. A proof speaks of one of the two: "y" where its
theorem assumes error feedback or it uses a fact about y, "x" elsewhere; "x decayed" where the theorem assumes weight
decay or a fact is about it. It may use facts that hold at its place (`theory.axioms.PLACES`), and proofs of its place
only. With weight decay an induction rests on that assumption, which says that the step is constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.relational import Relational

from theory.axioms import NOT_UNDER, PLACE_OF, PLACES, Fact, axiom, condition, definition, needs
from theory.bound import Bound
from theory.errors import InputError
from theory.methods import check_method_of
from theory.metrics import COUNTS, METRIC_UNDER, METRICS, TUNED, count_of
from theory.replica_rules import OverReplicas, Totalled
from theory.rules import Direct, Expected, InnerWith, Instance, Integrated, NormOf, ProofError, Rewritten, SquareOf
from theory.rules_over_steps import Averaged, Everywhere, Induction
from theory.run_on import OF_EVERY_STEP, RunOn
from theory.splits import ROUNDS, RUNS, from_one, split, split_along, split_sum
from theory.sum_rules import Summed
from theory.symbols import SET_BY_USER, symbols
from theory.unfolding import Unfolded
from theory.vectors import INSTANCE_OF, INSTANCE_PLACE
from theory.walks import check_walk

if TYPE_CHECKING:
    from theory.proof import Proof, Step

Cases = tuple[Mapping[sp.Symbol, sp.Expr], ...]
_OF_A_STEP = (Direct, Rewritten, Unfolded, NormOf, InnerWith, SquareOf, Integrated, Expected, Instance, Summed)
RULES = (*_OF_A_STEP, Induction, Everywhere, Averaged, OverReplicas, Totalled, RunOn)


def place_of(proof: Proof) -> str:
    """Where it looks: "x", "y" or "x decayed"."""
    places = {premise.place for step in proof.steps for premise in step.premises if isinstance(premise, Fact)}
    if "error-feedback" in proof.theorem.assumptions or "y" in places:
        return "y"
    return "x decayed" if "weight-decay" in proof.theorem.assumptions or "x decayed" in places else "x"


def check_left(proof: Proof) -> None:
    """Refuse (ProofError) a left side that is not the theorem's own."""
    if not isinstance(proof.theorem, Bound):
        if proof.left is not None:
            raise ProofError(f"proof of {proof.name}: left = {proof.left} is given, and an inequality has its own")
        return
    key = (proof.theorem.metric, proof.place == "y")
    if key not in METRICS:
        raise ProofError(f"proof of {proof.name}: its metric {proof.theorem.metric} has no quantity at {proof.place}")
    under = METRIC_UNDER.get(key, "")
    if under not in ("", *proof.theorem.assumptions):
        raise ProofError(f"proof of {proof.name}: its metric is {METRICS[key]} only where {under} is assumed")
    if proof.left is None or proof.left != symbols(METRICS[key])[0]:
        raise ProofError(f"proof of {proof.name}: left = {proof.left} is not its metric, which is {METRICS[key]}")
    own = count_of(proof.theorem.metric)
    others = [name for name in COUNTS if name != own and name in contained(proof)]
    if others:
        raise ProofError(f"proof of {proof.name}: {others[0]} occurs in it, and its metric counts {own}")


def check_fact(proof: Proof, fact: Fact) -> None:
    """Refuse (ProofError) a fact that no register makes, or of another place, or of another theorem."""
    made: Fact | None
    try:
        if fact.kind == "axiom":
            made = axiom(fact.source, *fact.arguments)
        elif fact.kind == "definition":
            made = definition(fact.source)
        elif fact.kind == "condition":
            made = next((own for own in map(condition, _conditions(proof)) if own == fact), None)
        else:
            raise ProofError(f"proof of {proof.name}: fact {fact.key!r} of kind {fact.kind!r} is not one to start from")
    except (InputError, TypeError) as error:
        raise ProofError(f"proof of {proof.name}: fact {fact.key!r} cannot be made: {error}") from None
    if made is None:
        raise ProofError(f"proof of {proof.name}: {fact.key} is no condition of the theorem")
    if made != fact or made.relation != fact.relation:
        says = f"which is {made.relation}"
        raise ProofError(f"proof of {proof.name}: fact {fact.key!r} is not what its name says, {says}")
    if proof.place not in PLACES[fact.place]:
        raise ProofError(f"proof of {proof.name}: {fact.key} holds at {fact.place}, the theorem is about {proof.place}")
    missing = [name for name in needs(fact) if name not in proof.theorem.assumptions]
    if missing:
        raise ProofError(f"proof of {proof.name}: {fact.key} holds only where {missing[0]} is assumed")
    check_method_of(proof, fact)
    _check_holds(proof, fact)
    if fact.source == "tuned_step" and fact.arguments != (TUNED.get(getattr(proof.theorem, "metric", "")),):
        raise ProofError(f"proof of {proof.name}: {fact.key} is not the best step of its metric")


def _check_holds(proof: Proof, fact: Fact) -> None:
    """Refuse (ProofError) an axiom that is false of the theorem's method, and a definition that fixes what it is of."""
    fixed = fact.relation.left.name if fact.kind == "definition" else ""
    if fixed in SET_BY_USER and fixed in contained(proof):
        raise ProofError(f"proof of {proof.name}: {fact.key} fixes {fixed}, of any value of which the theorem speaks")
    other = NOT_UNDER.get(fact.source)
    if other is not None and other in proof.theorem.assumptions:
        raise ProofError(f"proof of {proof.name}: {fact.key} does not hold where {other} is assumed")


def _conditions(proof: Proof) -> tuple[Relational, ...]:
    return proof.theorem.conditions if isinstance(proof.theorem, Bound) else ()


def contained(proof: Proof) -> set[str]:
    """Names of the symbols of a theorem: of its terms, its conditions and, where it names one, its left side."""
    left = () if isinstance(proof.theorem, Bound) else (proof.theorem.left,)
    parts = (*left, *proof.theorem.terms.values(), *_conditions(proof))
    return {symbol.name for part in parts for symbol in part.free_symbols}


def check_cited(proof: Proof, other: Proof) -> None:
    """Refuse (ProofError) a proof about another place, or one that uses an axiom false of the theorem's method."""
    if other.place != proof.place:
        raise ProofError(f"proof of {proof.name}: {other.name} is about {other.place}, the theorem about {proof.place}")
    for fact in _started_from(other):
        _check_holds(proof, fact)


def _started_from(proof: Proof) -> Iterator[Fact]:
    """The axioms and definitions of a proof and of all that it rests on."""
    for step in proof.steps:
        yield from (premise for premise in step.premises if isinstance(premise, Fact) and premise.kind != "condition")
        if isinstance(step.rule, Unfolded):
            yield definition(step.rule.name)
    for other in proof.rests_on:
        yield from _started_from(other)


def check_rule(proof: Proof, step: Step) -> None:
    """Refuse (ProofError) a rule that is none, that rests on other axioms than it says, or of another method."""
    rule, where = step.rule, f"proof of {proof.name}, step {step.name}"
    if type(rule) not in RULES:
        raise ProofError(f"{where}: {type(rule).__name__} is no rule")
    own = next(f.default for f in fields(rule) if f.name == "axioms")
    if isinstance(rule, (Averaged, Induction, Integrated, Summed, OverReplicas, Unfolded)):
        rule.check_names()
    if not isinstance(rule, (Averaged, Induction)) and rule.axioms != own:
        raise ProofError(f"{where}: its rule rests on {own}, not on {rule.axioms}")
    undecayed = [name for name in rule.axioms if name == "constant-step" or PLACE_OF.get(name) == "x undecayed"]
    if proof.place == "x decayed" and undecayed:
        raise ProofError(f"{where}: its rule rests on {undecayed[0]}, which excludes weight decay")
    if proof.place != "x decayed" and "weight-decay" in rule.axioms:
        raise ProofError(f"{where}: its rule rests on weight-decay, and the theorem is about {proof.place}")
    if isinstance(rule, RunOn):
        _check_run_on(step, where)
    if isinstance(rule, Unfolded):
        check_fact(proof, definition(rule.name))
    if isinstance(rule, Instance):
        needed = INSTANCE_OF.get(rule.name)
        if needed is not None and needed not in proof.theorem.assumptions:
            raise ProofError(f"{where}: {rule.name!r} is an instance only where {needed} is assumed")
        if proof.place not in PLACES[INSTANCE_PLACE.get(rule.name, "")]:
            raise ProofError(f"{where}: {rule.name!r} is no instance at {proof.place}")
        check_walk(proof, step, rule.name, where)


def _check_run_on(step: Step, where: str) -> None:
    """Refuse (ProofError) anything but one theorem at x, without conditions, about every step of runs of any length."""
    proof = step.premises[0]
    if len(step.premises) != 1 or isinstance(proof, (Fact, str)) or proof.place != "x":
        raise ProofError(f"{where}: a run is continued for one theorem at x, as a whole")
    rests_on = (*sorted(set(proof.theorem.assumptions) - OF_EVERY_STEP), *_conditions(proof))
    if rests_on:
        raise ProofError(f"{where}: {proof.name} rests on {rests_on[0]}, of which longer runs know nothing")


def check_cases(proof: Proof, step: Step, scope: str) -> None:
    """Refuse (ProofError) cases that are not all, and steps that are counted from elsewhere than the place's first."""
    rule, at_y, where = step.rule, proof.place == "y", f"proof of {proof.name}, step {step.name}"
    later = [from_one(), split()] if scope == "later" else [from_one()] if at_y else []
    allowed: dict[str, list[Cases]] = {"step": [({},), *RUNS, *ROUNDS, *later], "rule": [()]}
    if isinstance(rule, Averaged):
        allowed["rule"] = [({},), split_sum()]
        first = (1,) if at_y and rule.sums else (0, 1) if at_y else (0,)
    elif isinstance(rule, Induction):
        from_zero = (rule.index, rule.first) == ("k", 0)
        if rule.along:  # its cases leave out 0, where nothing is handed on
            allowed["rule"] = [split_along()] if from_zero else []
        elif from_zero:
            allowed["rule"].append(split())
        noise = all(name == "E_noise_square_before" for name in rule.before)  # of samples: from k = 0 at y, too
        first = (1,) if at_y and not noise and rule.index == "k" else (0,)
    else:
        first = (1,) if at_y and isinstance(rule, Everywhere) else (0,)
    for of, cases in (("step", step.cases), ("rule", getattr(rule, "cases", ()))):
        if cases not in allowed[of]:
            raise ProofError(f"{where}: its cases {cases} are not known to be all")
    if getattr(rule, "first", 0) not in first:
        raise ProofError(f"{where}: its steps are not counted from {' or '.join(map(str, first))}")
