"""A rule of proofs: what holds in every block of a vector, added up over the blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from theory.pairs import WHOLES, unlisted
from theory.relation import Relation
from theory.rules import Direct, ProofError, with_parts_put
from theory.sgd_quantities import BLOCKWISE
from theory.symbols import symbols


@dataclass(frozen=True)
class Summed(Direct):
    """The sum over the S blocks of a relation that holds in each.

    wholes: quantity of a block -> the quantity that is its sum over the blocks (theory.pairs.WHOLES); what is the same
    in every block counts S times. Coefficients may not differ between blocks, as the length j of a window does.
    """

    wholes: Mapping[str, str] = field(default_factory=dict)
    axioms: tuple[str, ...] = ("finite-sum", "inner-product")

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        self.check_names()
        parts = {symbols(block)[0]: symbols(whole)[0] for block, whole in self.wholes.items()}
        total, rest = with_parts_put(relation, parts)
        strange = {s.name.removeprefix("E_") for s in (rest + total).free_symbols} & (BLOCKWISE | {"j", "j_before"})
        if strange:
            raise ProofError(f"fact {relation}: nothing says what {min(strange)} adds up to over the blocks")
        (stages,) = symbols("S")
        return Relation(total + stages * rest, relation.sense, sp.Integer(0))

    def check_names(self) -> None:
        """Refuse (ProofError) what the table of theory.pairs does not have."""
        found = unlisted(self.wholes, WHOLES)
        if found:
            raise ProofError(f"sum over the blocks: {found} is not a quantity and its sum")
