"""What proofs may start from: instances of named axioms, and definitions. Nothing else is taken without proof.

An axiom is a schema: a function from names (of vectors, of quantities) to a relation between quantities. A `Fact`
of an axiom holds the schema's name and the arguments, its relation is made by the schema. A proof makes each of its
facts anew (`theory.genuine`); so a relation that is no instance of an axiom cannot pass for one. Axioms that a theorem
assumes have their names and words in `theory.assumptions.ASSUMPTIONS`; those of mathematics, which nobody has to
assume, in `MATHEMATICS` there.

A fact has a scope: it holds at "every" step, at the "first" one only (k = 0; "first at y": k = 1, where the virtual
iterate of error feedback begins), or at all "later" ones, those that have a step before them. Facts of the first and of
later steps never meet in one step of a proof; an induction joins them. What j counts (the steps of a walk, the updates
of a window, the samples of a replica) has its own first and later ones: they say nothing about k.

It has a place, too: "x" or "y" where it is about the iterate or about the virtual iterate of error feedback alone;
"x decayed" where it is about the iterate of a method with weight decay, "undecayed" where it is about none.

A folder of theorems adds schemas with `@schema("axiom name")` and definitions with `define`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sympy.core.relational import Relational

from theory.assumptions import ASSUMPTIONS, MATHEMATICS
from theory.errors import InputError
from theory.relation import Relation

#: What j counts -> its scopes; `theory.proof` joins them by an induction over j alone.
COUNTED_BY_J = ("walk's ", "window's ", "samples' ")
SCOPES = ("every", "first", "first at y", "later", *(of + at for of in COUNTED_BY_J for at in ("first", "later")))
#: Place of a fact -> places of the proofs that may use it (`theory.genuine.place_of`).
PLACES: dict[str, tuple[str, ...]] = {
    "": ("x", "y", "x decayed"),
    "x": ("x", "x decayed"),
    "y": ("y",),
    "undecayed": ("x", "y"),
    "x undecayed": ("x",),
    "x decayed": ("x decayed",),
}
PLACE_OF = dict.fromkeys(("error-feedback", "delay-one"), "y") | {"weight-decay": "x decayed"}
PLACE_OF |= dict.fromkeys(
    ("block-sgd", "block-delay", "independent-delay", "pipedream", "delayed-gd", "local-sgd")
    + ("tuned-step", "tuned-momentum"),
    "x undecayed",
)
SCHEMAS: dict[str, tuple[str, str, Callable[..., Relation], str]] = {}  # schema -> (axiom, scope, function, place)
DEFINITIONS: dict[str, tuple[str, str, Relation, str]] = {}  # name -> (words, scope, relation, place)
UNDER: dict[str, tuple[str, ...]] = {}  # key of a fact -> the assumptions under all of which alone it may be used
# schema -> the assumption under which it does not hold: the oracle is called elsewhere, the step is another
NOT_UNDER = dict.fromkeys(("lmo_value", "inexact_value", "tuned_step"), "nesterov")


def under(assumption: str, *keys: str) -> None:
    """Facts of these keys may be used only where that is assumed, besides what they need already."""
    for key in keys:
        UNDER[key] = tuple(dict.fromkeys((*UNDER.get(key, ()), assumption)))


def schema(
    axiom: str, scope: str = "every", place: str = ""
) -> Callable[[Callable[..., Relation]], Callable[..., Relation]]:
    """Register a function as a schema of an axiom, under its own name; refuses unknown axioms and second names.

    place: where it holds; that of the axiom (PLACE_OF), if it has one, goes without saying.
    """
    if axiom not in ASSUMPTIONS and axiom not in MATHEMATICS:
        raise InputError(f"axiom: {axiom!r} is unknown; known: {', '.join((*ASSUMPTIONS, *MATHEMATICS))}")
    _check_scope(scope, place)

    def keep(function: Callable[..., Relation]) -> Callable[..., Relation]:
        name = function.__name__
        if name in SCHEMAS and SCHEMAS[name][2].__module__ != function.__module__:
            raise InputError(f"schema {name}: is defined already in {SCHEMAS[name][2].__module__}")
        SCHEMAS[name] = (axiom, scope, function, place or PLACE_OF.get(axiom, ""))
        return function

    return keep


def define(name: str, words: str, relation: Relation, scope: str = "every", place: str = "") -> None:
    """Add a definition: what a symbol means, or what the method does. Refuses a second meaning of one name."""
    _check_scope(scope, place)
    if relation.sense != "==" or not relation.left.is_Symbol or relation.right.has(relation.left):
        raise InputError(f"definition {name}: {relation} is not allowed; give SYMBOL == an expression without it")
    new = (words, scope, relation, place)
    if DEFINITIONS.setdefault(name, new) != new:
        raise InputError(f"definition {name}: exists already with another meaning")


def counted(scopes: Iterable[str]) -> str:
    """What j counts in the first of these scopes that is one of its own, else "walk's "."""
    found = (of for scope in sorted(scopes) for of in COUNTED_BY_J if scope.startswith(of))
    return next(found, COUNTED_BY_J[0])


def _check_scope(scope: str, place: str) -> None:
    if scope not in SCOPES:
        raise InputError(f"scope: {scope!r} is not one of {', '.join(SCOPES)}")
    if place not in PLACES:
        raise InputError(f"place: {place!r} is not one of {', '.join(filter(None, PLACES))} and none")


@dataclass(frozen=True)
class Fact:
    """Something a step may use: kind "axiom" (instance of a schema), "definition", "condition" (of the theorem), or
    "step" and "theorem" (proved before), which a proof makes of its steps and of the proofs it cites.

    key: unique name within a proof; axiom: name of the axiom, for kind "axiom"; words: what it says; scope: one of
    SCOPES; place: one of PLACES; source, arguments: what it is made of, a schema and its arguments, or a definition;
    start: what E0 is in it (`theory.starts`).
    Made by `axiom`, `definition` and `condition`; any other is refused by the proof that cites it.
    """

    key: str
    kind: str
    relation: Relation
    axiom: str = ""
    words: str = ""
    scope: str = "every"
    place: str = ""
    source: str = ""
    arguments: tuple[object, ...] = ()
    start: str = ""


def needs(fact: Fact) -> tuple[str, ...]:
    """What a theorem has to assume to use a fact, besides its axiom; y_k is made by error feedback."""
    return (*UNDER.get(fact.key, ()), *(("error-feedback",) if fact.place == "y" else ()))


def axiom(name: str, *arguments: object) -> Fact:
    """The instance of a schema at arguments. Raises InputError for an unknown schema or arguments that do not fit."""
    if name not in SCHEMAS:
        raise InputError(f"schema {name!r} is unknown; known: {', '.join(sorted(SCHEMAS))}")
    of, scope, function, place = SCHEMAS[name]
    relation = function(*arguments)
    words = ASSUMPTIONS.get(of) or MATHEMATICS[of]
    return Fact(" ".join((name, *map(str, arguments))), "axiom", relation, of, words, scope, place, name, arguments)


def definition(name: str) -> Fact:
    """The definition of that name. Raises InputError naming the known ones."""
    if name not in DEFINITIONS:
        raise InputError(f"definition {name!r} is unknown; known: {', '.join(DEFINITIONS)}")
    words, scope, relation, place = DEFINITIONS[name]
    return Fact(f"definition {name}", "definition", relation, "", words, scope, place, name)


def condition(relation: Relational) -> Fact:
    """A condition of a bound (one of `Bound.conditions`): a run that it speaks of fulfils it."""
    return Fact(f"condition {relation}", "condition", Relation(relation.lts, "<=", relation.gts), "", "stated")
