"""A rule of proofs: a quantity replaced by what it is defined to be, by exact substitution and not by a solver."""

from __future__ import annotations

from dataclasses import dataclass

from theory.axioms import DEFINITIONS
from theory.relation import Relation
from theory.rules import Direct, ProofError
from theory.vectors import VECTOR_SYMBOLS


@dataclass(frozen=True)
class Unfolded(Direct):
    """name: of a definition (theory.axioms.DEFINITIONS) of a quantity, one that holds at every step."""

    name: str = ""

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        self.check_names()
        _, _, meaning, _ = DEFINITIONS[self.name]
        return relation.subs({meaning.left: meaning.right})

    def check_names(self) -> None:
        """Refuse (ProofError) what is no definition of a quantity, or one of the first or of later steps only."""
        if self.name not in DEFINITIONS:
            raise ProofError(f"unfolding: {self.name!r} is not one of the definitions")
        _, scope, meaning, _ = DEFINITIONS[self.name]
        if scope != "every" or meaning.left in VECTOR_SYMBOLS:
            raise ProofError(f"unfolding: {self.name} is no definition of a quantity at every step")
