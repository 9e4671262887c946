"""Rules of proofs: the mean over replicas, and the sum over the first T steps of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from theory.pairs import ENDS, REPLICAS, TOTALS, listed, unlisted
from theory.relation import Relation
from theory.replica_quantities import REPLICA
from theory.rules import Direct, ProofError, with_parts_put
from theory.rules_over_steps import Averaged, check_once
from theory.symbols import symbols


@dataclass(frozen=True)
class OverReplicas(Direct):
    """The mean over the S replicas of a relation that holds for each.

    means: quantity of a replica -> its mean over them (theory.pairs.REPLICAS); what is the same for all stays.
    """

    means: Mapping[str, str] = field(default_factory=dict)
    axioms: tuple[str, ...] = ("finite-sum",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        self.check_names()
        parts = {symbols(one)[0]: symbols(mean)[0] for one, mean in self.means.items()}
        total, rest = with_parts_put(relation, parts)
        strange = {s.name for s in (rest + total).free_symbols if s.name.removeprefix("E_").startswith(REPLICA)}
        if strange:
            raise ProofError(f"fact {relation}: nothing says what the mean of {min(strange)} over the replicas is")
        return Relation(total + rest, relation.sense, sp.Integer(0))

    def check_names(self) -> None:
        """Refuse (ProofError) what the table of theory.pairs does not have."""
        found = unlisted(self.means, REPLICAS)
        if found:
            raise ProofError(f"mean over replicas: {found} is not a quantity and its mean")


TOTALS_OF = tuple((method, "finite-sum") for method in ("local-sgd", "delayed-gd"))


@dataclass(frozen=True)
class Totalled(Averaged):
    """The sum over the first T steps (`steps`, which may be 0) of a relation that holds at each.

    means: quantity of a step -> its sum (theory.pairs.TOTALS); telescoping: as in `Averaged`, of theory.pairs.ENDS.
    """

    def check_names(self) -> None:
        """Refuse (ProofError) what the tables of theory.pairs do not have."""
        found = unlisted(self.means, TOTALS)
        if found:
            raise ProofError(f"sum: {found} is not a quantity and its sum")
        for names in self.telescoping:
            if names not in ENDS:
                raise ProofError(f"sum: {', '.join(names)} are not known to telescope")
        check_once(self.telescoping, self.means)
        if self.axioms not in TOTALS_OF:
            raise ProofError(f"sum: rests on one of {listed(TOTALS_OF)}, not on {listed(self.axioms) or 'nothing'}")

    @property
    def count(self) -> sp.Symbol:
        """The number of steps, of which the closed forms of sums are functions."""
        return symbols("steps")[0]

    @property
    def over(self) -> sp.Expr:
        """What the sum is divided by."""
        return sp.Integer(1)
