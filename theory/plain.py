"""What a proof is made of: values of known types, all the way down, none with methods of its own.

A subclass says of itself what it likes: that it is equal to a fact, or something else each time it is read.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import sympy as sp

from theory.axioms import Fact
from theory.bound import Bound
from theory.functions import GeometricSum
from theory.genuine import RULES
from theory.inequality import Inequality
from theory.relation import Relation
from theory.rules import ProofError

if TYPE_CHECKING:
    from theory.proof import Proof

_VALUES = (str, int, bool, type(None))


def check_types(proof: Proof) -> None:
    """Refuse (ProofError) a proof, a part of it, or an entry of a part that is of another type than it seems."""
    from theory.proof import Proof, Step

    odd: list[object] = [proof] if type(proof) is not Proof else []
    odd += [part for part in (proof.theorem,) if type(part) not in (Bound, Inequality)]
    found = type(odd[0]).__name__ if odd else _odd((proof.steps, proof.left), (Step, Relation, Fact, *RULES), (Proof,))
    if found:
        raise ProofError(f"proof of {proof.theorem.name}: {found} is no type that a proof is made of")


def _odd(value: object, parts: tuple[type, ...], whole: tuple[type, ...]) -> str:
    """Name of the first type in a value that is none of a proof, "" if there is none."""
    kind = type(value)
    if kind in _VALUES or kind in whole:
        return ""
    if isinstance(value, sp.Basic):
        nodes = (type(node) for node in sp.preorder_traversal(value))
        return next((node.__name__ for node in nodes if not _of_sympy(node)), "")
    if kind is tuple:
        inside = list(value)  # type: ignore[call-overload]
    elif kind is dict:
        inside = [*value, *value.values()]  # type: ignore[misc, attr-defined]
    elif kind in parts:
        inside = [getattr(value, field.name) for field in fields(value)]  # type: ignore[arg-type]
    else:
        return kind.__name__
    return next(filter(None, (_odd(part, parts, whole) for part in inside)), "")


def _of_sympy(kind: type) -> bool:
    """Whether sympy itself, or `theory.functions`, has that type under its name."""
    known = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    return kind is GeometricSum or (known and kind.__module__.partition(".")[0] == "sympy")
