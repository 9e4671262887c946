"""What E0 stands for in a fact: the norm of m_0 - grad f(x_0) on the path of a run, or its expectation.

Both are constants of a run, so one symbol serves; but what holds of the one need not hold of the other. A step of a
proof that rests on facts of both kinds is refused. The rule `Expected` makes the second of the first, and a bound
speaks of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from theory.axioms import Fact
from theory.rules import Expected, ProofError
from theory.symbols import symbols
from theory.vectors import VECTOR_SYMBOLS

if TYPE_CHECKING:
    from theory.proof import Step

ON_THE_PATH, IN_THE_MEAN = "on the path", "in the mean"


def start_of(where: str, step: Step, facts: Sequence[Fact]) -> str:
    """What E0 is in a conclusion: one of the two, or "" where it may be both. Raises ProofError for a mixture."""
    kinds = {_start(fact) for fact in facts} - {""}
    if kinds and isinstance(step.rule, Expected):
        kinds = {IN_THE_MEAN}
    if len(kinds) > 1:
        raise ProofError(f"{where}: E0 is the norm {ON_THE_PATH} in one premise, and its expectation in another")
    return kinds.pop() if kinds and symbols("E0")[0] in step.conclusion.difference.free_symbols else ""


def _start(fact: Fact) -> str:
    """What E0 is in a fact; a vector with that norm is one on the path."""
    of_start = any(VECTOR_SYMBOLS[vector].norm == "E0" for vector in fact.relation.vectors)
    return ON_THE_PATH if of_start else fact.start
