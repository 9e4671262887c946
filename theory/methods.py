"""One method a theorem: which assumptions say what the method is, and which facts hold of it alone.

A proof about two methods at once would speak of runs that do not exist, and conclude anything. So a theorem assumes
what one family of METHODS says, at most, and a fact of METHOD_OF is used only where its method is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import sympy as sp

from theory.axioms import Fact
from theory.bound import Bound
from theory.checkers.algebra import sign
from theory.functions import GeometricSum
from theory.rules import ProofError
from theory.symbols import symbols

if TYPE_CHECKING:
    from theory.proof import Proof

_STEPS = frozenset(("lmo", "inexact-lmo", "constant-step", "weight-decay", "error-feedback"))
#: Family -> the assumptions that say that the method is of it.
METHODS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "lmo": _STEPS | {"nesterov", "fixed-delay", "sample-start", "tuned-step", "tuned-momentum"},
        "block-sgd": frozenset(("block-sgd", "block-delay", "independent-delay")),
        "pipedream": frozenset(("pipedream", "equal-noise")),
        "delayed-gd": frozenset(("delayed-gd",)),
        "local-sgd": frozenset(("local-sgd",)),
    }
)
_SGD = frozenset(("block-sgd", "pipedream", "delayed-gd", "local-sgd"))
#: Key of a fact that says what a step is -> the assumptions of which one has to be made.
METHOD_OF: Mapping[str, frozenset[str]] = MappingProxyType(
    dict.fromkeys(("definition step", "definition virtual step", "definition momentum", "objective_along_step"), _STEPS)
    | dict.fromkeys(("definition sgd move", "objective_along_update"), _SGD)
)


def families(assumptions: Iterable[str]) -> tuple[str, ...]:
    """The families of methods that assumptions speak of."""
    names = set(assumptions)
    return tuple(family for family, own in METHODS.items() if names & own)


def check_method(proof: Proof) -> None:
    """Refuse (ProofError) a theorem about two methods."""
    found = families(proof.theorem.assumptions)
    if len(found) > 1:
        raise ProofError(f"proof of {proof.name}: its assumptions are of two methods, {found[0]} and {found[1]}")


def check_method_of(proof: Proof, fact: Fact) -> None:
    """Refuse (ProofError) a fact about a method that the theorem does not assume."""
    needed = METHOD_OF.get(fact.key)
    if needed is not None and needed.isdisjoint(proof.theorem.assumptions):
        of = ", ".join(sorted(needed))
        raise ProofError(f"proof of {proof.name}: {fact.key} holds only where one of {of} is assumed")


def check_optional(proof: Proof) -> None:
    """Refuse (ProofError) a choice for what is left out at which the theorem may be false.

    The reference s is free: the theorem holds for every s. r <= 1 is the run's, and 1 is the worst: no term has a
    negative power or coefficient of r.
    """
    if not isinstance(proof.theorem, Bound):
        return
    for name, best in proof.theorem.optional.items():
        if name == "s" or (name == "r" and best == 1 and all(map(_grows_with_r, proof.theorem.terms.values()))):
            continue
        raise ProofError(f"proof of {proof.name}: nothing says that {name} = {best} may be taken where it is left out")


def _grows_with_r(term: sp.Expr) -> bool:
    (r,) = symbols("r")
    plain = term.replace(GeometricSum, lambda *_: sp.Dummy("sum", nonnegative=True))
    plain = plain.replace(_is_fraction_to_a_power, lambda *_: 1 / (1 + sp.Dummy("power", nonnegative=True)))
    if not plain.is_polynomial(r):
        return False
    return all(sign(coefficient) == 1 for (power,), coefficient in sp.Poly(plain, r).terms() if power)


def _is_fraction_to_a_power(expression: sp.Expr) -> bool:
    """Whether it is b^n with b in [0, 1] and a symbolic n >= 0: a number in [0, 1] of which nothing else is known."""
    if not (expression.is_Pow and expression.exp.free_symbols and expression.exp.is_nonnegative):
        return False
    return sign(expression.base) == 1 and sign(1 - expression.base) == 1
