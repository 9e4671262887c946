"""What proofs may start from: instances of named axioms, and definitions. Nothing else is taken without proof.

An axiom is a schema: a function from names (of vectors, of quantities) to a relation between quantities. A `Fact`
of an axiom holds the name and the arguments, its relation is made by the schema; so a relation that is no
instance of an axiom cannot pass for one. Axioms that a theorem assumes have their names and words in
`theory.assumptions.ASSUMPTIONS`; those of mathematics, which nobody has to assume, in `MATHEMATICS` there.

A fact has a scope: it holds at "every" step, at the "first" one only (k = 0; "first at y": k = 1, where the virtual
iterate of error feedback begins), or at all "later" ones, those that have a step before them. Facts of the first and of
later steps never meet in one step of a proof; an induction joins them.

A folder of theorems adds schemas with `@schema("axiom name")` and definitions with `define`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from theory.assumptions import ASSUMPTIONS, MATHEMATICS
from theory.errors import InputError
from theory.relation import Relation

SCOPES = ("every", "first", "first at y", "later")
SCHEMAS: dict[str, tuple[str, str, Callable[..., Relation]]] = {}  # schema -> (axiom, scope, function)
DEFINITIONS: dict[str, tuple[str, str, Relation]] = {}  # name -> (words, scope, relation)


def schema(axiom: str, scope: str = "every") -> Callable[[Callable[..., Relation]], Callable[..., Relation]]:
    """Register a function as a schema of an axiom, under its own name; refuses unknown axioms and second names."""
    if axiom not in ASSUMPTIONS and axiom not in MATHEMATICS:
        raise InputError(f"axiom: {axiom!r} is unknown; known: {', '.join((*ASSUMPTIONS, *MATHEMATICS))}")
    _check_scope(scope)

    def keep(function: Callable[..., Relation]) -> Callable[..., Relation]:
        name = function.__name__
        if name in SCHEMAS and SCHEMAS[name][2].__module__ != function.__module__:
            raise InputError(f"schema {name}: is defined already in {SCHEMAS[name][2].__module__}")
        SCHEMAS[name] = (axiom, scope, function)
        return function

    return keep


def define(name: str, words: str, relation: Relation, scope: str = "every") -> None:
    """Add a definition: what a symbol means, or what the method does. Refuses a second meaning of one name."""
    _check_scope(scope)
    if relation.sense != "==" or not relation.left.is_Symbol or relation.right.has(relation.left):
        raise InputError(f"definition {name}: {relation} is not allowed; give SYMBOL == an expression without it")
    if DEFINITIONS.setdefault(name, (words, scope, relation)) != (words, scope, relation):
        raise InputError(f"definition {name}: exists already with another meaning")


def _check_scope(scope: str) -> None:
    if scope not in SCOPES:
        raise InputError(f"scope: {scope!r} is not one of {', '.join(SCOPES)}")


@dataclass(frozen=True)
class Fact:
    """Something a step may use: kind "axiom" (instance of a schema), "definition", or "step" (proved before).

    key: unique name within a proof; axiom: name of the axiom, for kind "axiom"; words: what it says; scope: one of
    SCOPES.
    """

    key: str
    kind: str
    relation: Relation = field(compare=False)
    axiom: str = ""
    words: str = ""
    scope: str = "every"


def axiom(name: str, *arguments: object) -> Fact:
    """The instance of a schema at arguments. Raises InputError for an unknown schema or arguments that do not fit."""
    if name not in SCHEMAS:
        raise InputError(f"schema {name!r} is unknown; known: {', '.join(sorted(SCHEMAS))}")
    of, scope, function = SCHEMAS[name]
    relation = function(*arguments)
    words = ASSUMPTIONS.get(of) or MATHEMATICS[of]
    return Fact(" ".join((name, *map(str, arguments))), "axiom", relation, of, words, scope)


def definition(name: str) -> Fact:
    """The definition of that name. Raises InputError naming the known ones."""
    if name not in DEFINITIONS:
        raise InputError(f"definition {name!r} is unknown; known: {', '.join(DEFINITIONS)}")
    words, scope, relation = DEFINITIONS[name]
    return Fact(f"definition {name}", "definition", relation, "", words, scope)
