"""Rules: how the facts of a step are turned into what its conclusion must follow from.

A rule is applied mechanically: it makes new relations from facts or refuses (ProofError), it never takes a relation
from the one who writes the proof. `axioms` are the axioms that the rule itself rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from theory.checkers.algebra import sign
from theory.pairs import INTEGRALS, unlisted
from theory.proof_quantities import PREFIX, RANDOM
from theory.relation import Relation, eq, le
from theory.symbols import symbols
from theory.vectors import (
    CONSTANT,
    CONSTANT_OF_BLOCK,
    COUNTED_BY_STEP,
    INSTANCES,
    VECTOR_SYMBOLS,
    get_vector,
    inner_name,
    norm_name,
)


class ProofError(ValueError):
    """A proof that is not one: the rule, the fact or the step that does not fit is named."""


@dataclass(frozen=True)
class Direct:
    """The facts as they are."""

    axioms: tuple[str, ...] = ()

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        return relation


@dataclass(frozen=True)
class Rewritten(Direct):
    """The facts as they are, added up by exact rewriting in place of the solver (`theory.checkers.algebra.adds_up`)."""


@dataclass(frozen=True)
class NormOf:
    """From v = sum c_i u_i: norm(v) <= sum |c_i| norm(u_i), with equality where there is one term.

    vector: name of v, where the fact has to be solved for it first; default: the fact's left side.
    """

    vector: str | None = None
    axioms: tuple[str, ...] = ("norm",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        left, parts = combination(relation, self.vector)
        total: sp.Expr = sp.Integer(0)
        for name, coefficient in parts.items():
            found = sign(coefficient)
            if found is None:
                raise ProofError(f"norm of {relation}: the sign of {coefficient} is not seen")
            total += found * coefficient * symbols(norm_name(name))[0]
        norm = symbols(norm_name(left))[0]
        return eq(norm, total) if len(parts) == 1 else le(norm, total)


@dataclass(frozen=True)
class InnerWith:
    """From v = sum c_i u_i: <v, d> = sum c_i <u_i, d>."""

    direction: str
    vector: str | None = None
    axioms: tuple[str, ...] = ("inner-product",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        left, parts = combination(relation, self.vector)
        total = sum(c * symbols(inner_name(name, self.direction))[0] for name, c in parts.items())
        return eq(symbols(inner_name(left, self.direction))[0], sp.sympify(total))


@dataclass(frozen=True)
class SquareOf:
    """From v = sum c_i u_i: ||v||_F^2 = sum c_i^2 ||u_i||_F^2 + 2 sum_{i<j} c_i c_j <u_i, u_j>."""

    axioms: tuple[str, ...] = ("inner-product",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        left, parts = combination(relation, None)
        names, total = list(parts), sp.Integer(0)
        for i, name in enumerate(names):
            total += parts[name] ** 2 * _square(name)
            for other in names[i + 1 :]:
                total += 2 * parts[name] * parts[other] * symbols(inner_name(name, other))[0]
        return eq(_square(left), total)


def _square(name: str) -> sp.Symbol:
    found = get_vector(name).square
    if found is None:
        raise ProofError(f"vector {name}: the table of vectors names no square for it")
    return symbols(found)[0]


def combination(relation: Relation, vector: str | None) -> tuple[str, dict[str, sp.Expr]]:
    """A vector equality as (v, {u: coefficient}), solved for `vector` (default: its left side)."""
    involved = {VECTOR_SYMBOLS[s].name: s for s in relation.vectors}
    if not involved:
        raise ProofError(f"fact {relation}: is no equality between vectors")
    if vector is None:
        if relation.left not in relation.vectors:
            raise ProofError(f"fact {relation}: its left side is no single vector; name the one to solve for")
        vector = VECTOR_SYMBOLS[relation.left].name
    if vector not in involved:
        raise ProofError(f"fact {relation}: does not contain the vector {vector}")
    difference = sp.expand(relation.difference)
    own = difference.coeff(involved[vector])
    rest = {n: sp.factor(-difference.coeff(s) / own) for n, s in involved.items() if n != vector}
    return vector, {name: c for name, c in rest.items() if c != 0}


ALONG_SEGMENT = ("segment_dual", "segment_inner")  # quantities that depend on t


@dataclass(frozen=True)
class Integrated:
    """From r(t) <= g(t) for t in [0, 1], g a polynomial in t: the integral of r is at most that of g.

    pointwise -> integral: quantities r and int_0^1 r dt, a pair of theory.pairs.INTEGRALS.
    """

    pointwise: str
    integral: str
    axioms: tuple[str, ...] = ("integral",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        self.check_names()
        r, whole, t = symbols(f"{self.pointwise} {self.integral} t")
        if relation.left != r or relation.sense != "<=" or not relation.right.is_polynomial(t):
            raise ProofError(f"fact {relation}: is not {self.pointwise} <= a polynomial in t")
        along = [s.name for s in relation.right.free_symbols if s.name in ALONG_SEGMENT]
        if along:
            raise ProofError(f"fact {relation}: {along[0]} changes along the segment; its integral is not known")
        return le(whole, sp.integrate(relation.right, (t, 0, 1)))

    def check_names(self) -> None:
        """Refuse (ProofError) what the table of theory.pairs does not have."""
        if unlisted({self.pointwise: self.integral}, INTEGRALS):
            raise ProofError(f"integral: {self.integral} is not known to be that of {self.pointwise}")


@dataclass(frozen=True)
class Expected:
    """Every quantity by its expectation but constants of the run and the step's number; where it is affine in them.

    A quantity of which it is not known that it is random, or that it is not, is refused: it would be left on its path.
    E0 stands for the norm on the path before, for its expectation after (`theory.starts` keeps the two apart); it has
    to enter affinely too.
    """

    axioms: tuple[str, ...] = ("expectation",)

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        names = {s.name: s for s in relation.difference.free_symbols}
        random = {names[n] for n in RANDOM if n in names}
        strange = set(names) - {s.name for s in random} - {*CONSTANT, *CONSTANT_OF_BLOCK, *COUNTED_BY_STEP}
        if strange:
            raise ProofError(f"fact {relation}: nothing says what the expectation of {min(strange)} is")
        check_affine(relation, random | {names[n] for n in ("E0",) if n in names})
        return relation.subs({s: symbols(PREFIX + s.name)[0] for s in random})


def check_affine(relation: Relation, variables: set[sp.Symbol]) -> None:
    """Refuse (ProofError) a relation that is not affine in the variables taken together."""
    difference = sp.expand(relation.difference)
    for variable in variables:
        slope = sp.diff(difference, variable)
        if slope.free_symbols & variables:
            raise ProofError(f"fact {relation}: is not affine in {variable}; no sum or expectation of it is known")


def with_parts_put(relation: Relation, parts: Mapping[sp.Symbol, sp.Symbol]) -> tuple[sp.Expr, sp.Expr]:
    """The difference of an affine relation in two: what is affine in the parts, each replaced, and the rest.

    Raises ProofError where it is not affine in them taken together.
    """
    check_affine(relation, set(parts))
    rest, put = sp.expand(relation.difference), sp.Integer(0)
    for part, whole in parts.items():
        slope = rest.coeff(part)
        put += slope * whole
        rest = sp.expand(rest - slope * part)
    return put, rest


@dataclass(frozen=True)
class Instance:
    """A relation that holds at every step and every place, at another one; name: a key of theory.vectors.INSTANCES."""

    name: str
    axioms: tuple[str, ...] = ()

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        if self.name not in INSTANCES:
            raise ProofError(f"instance {self.name!r}: is not one of {', '.join(INSTANCES)}")
        _, names = INSTANCES[self.name]
        strange = {s.name for s in relation.difference.free_symbols} - set(names) - set(CONSTANT)
        if strange:
            raise ProofError(f"fact {relation}: {min(strange)} has no name at {self.name}")
        return relation.subs({symbols(a)[0]: _named(b) for a, b in names.items()})


def _named(name: str) -> sp.Expr:
    """The quantity of that name; "k - 1" and "K - 1" are numbers of steps."""
    return symbols(name.removesuffix(" - 1"))[0] - (1 if name.endswith(" - 1") else 0)
