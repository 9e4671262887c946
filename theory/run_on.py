"""A rule of proofs: a theorem about the gradients where they are taken, on a run continued for tau steps."""

from __future__ import annotations

from dataclasses import dataclass

from theory.relation import Relation, le
from theory.rules import Direct, ProofError
from theory.symbols import symbols

#: What a theorem may assume: each says the same of every step, so a run that obeys it can be continued.
OF_EVERY_STEP = frozenset(
    ("duality", "smoothness", "lower-bound", "lmo", "constant-step", "fixed-delay")
    + ("unbiased", "independent-batch", "variance", "norm-ratio")
)
#: What its right side may hold besides K: numbers that a longer run has in common with its beginning.
OF_EVERY_RUN = frozenset("eta alpha tau L sigma rho E0 Delta0".split())


@dataclass(frozen=True)
class RunOn(Direct):
    """From E_mean_taken_norm <= g(K) for every number of steps K: the same of K + tau steps, written for the iterates.

    For k < K + tau, (k - tau)+ is 0 tau + 1 times and each of 1, ..., K - 1 once: the sum of dn(grad f(x_{(k-tau)+}))
    is tau dn(grad f(x_0)) and the sum over j < K of dn(grad f(x_j)). And x_0, ..., x_{K-1} do not depend on how the run
    goes on. The fact has to be a theorem as a whole (`theory.genuine`), since g must hold for every K.
    """

    axioms: tuple[str, ...] = ("finite-sum",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        mean_taken, mean, first, tau, K = symbols("E_mean_taken_norm E_mean_grad_norm E_first_grad_norm tau K")
        if relation.left != mean_taken or relation.sense != "<=":
            raise ProofError(f"fact {relation}: is not {mean_taken} <= a number of the run")
        strange = {s.name for s in relation.right.free_symbols} - OF_EVERY_RUN - {"K"}
        if strange:
            raise ProofError(f"fact {relation}: nothing says what {min(strange)} is on a longer run")
        longer = relation.subs({K: K + tau})
        return le((tau * first + K * mean) / (K + tau), longer.right)
