"""A relation between two expressions, as a value: left <= right or left == right. What a step of a proof says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import sympy as sp

from theory.bound import Bound
from theory.errors import InputError
from theory.evaluation import checked_values, evaluate_expression, free_names
from theory.inequality import Inequality
from theory.vectors import VECTOR_SYMBOLS


@dataclass(frozen=True)
class Relation:
    """left (<= or ==) right, in quantities of theory.symbols; an equality may also be one between vectors.

    terms: where the right side has named terms, those, so that each can be made sharper by itself.
    Raises InputError for terms that do not add up to the right side, foreign symbols, rounded constants, an inequality
    of vectors and an equality that is not linear in its vectors.
    """

    left: sp.Expr
    sense: str
    right: sp.Expr
    terms: tuple[tuple[str, sp.Expr], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.sense not in ("<=", "=="):
            raise InputError(f"relation: sense {self.sense!r} is not allowed; give <= or ==")
        for side in ("left", "right"):
            object.__setattr__(self, side, sp.sympify(getattr(self, side)))
        if self.left.atoms(sp.Float) | self.right.atoms(sp.Float):
            raise InputError(f"relation {self}: has a rounded constant; exact numbers only")
        if self.terms:
            total = sp.Add(*(term for _, term in self.terms))
            if total != self.right and sp.expand(total - self.right) != 0:
                raise InputError(f"relation {self}: its terms add up to {total}")
        vectors = self.vectors
        _check_scalars(self, vectors)
        if vectors:
            if self.sense != "==":
                raise InputError(f"relation {self}: vectors can be equal, not smaller; take a norm first")
            difference = sp.expand(self.left - self.right)
            if sp.expand(difference - sum(difference.coeff(v) * v for v in vectors)) != 0 or any(
                difference.coeff(v).free_symbols & vectors for v in vectors
            ):
                raise InputError(f"relation {self}: is not linear in its vectors")

    @property
    def vectors(self) -> set[sp.Symbol]:
        """The vectors in it."""
        return {s for s in self.left.free_symbols | self.right.free_symbols if s in VECTOR_SYMBOLS}

    @property
    def difference(self) -> sp.Expr:
        """left - right: at most 0, or equal to 0."""
        return self.left - self.right

    def evaluate(self, values: Mapping[str, object]) -> tuple[float | np.ndarray, float | np.ndarray]:
        """(left, right) on a run, as `Inequality.evaluate`. Raises InputError for a relation between vectors."""
        if self.vectors:
            raise InputError(f"relation {self}: is one between vectors; it has no numbers")
        owner = f"relation {self}"
        arrays = checked_values(free_names(self.left, self.right), values, owner)
        return evaluate_expression(self.left, arrays, owner), evaluate_expression(self.right, arrays, owner)

    def subs(self, replacement: Mapping[sp.Basic, sp.Basic]) -> Relation:
        """The same relation with symbols replaced, all at once. The result may have auxiliary symbols."""
        exact = {old: sp.sympify(value) for old, value in replacement.items()}
        new = object.__new__(Relation)
        for name, value in (
            ("left", self.left.xreplace(exact)),
            ("sense", self.sense),
            ("right", self.right.xreplace(exact)),
            ("terms", ()),
        ):
            object.__setattr__(new, name, value)
        return new

    def __str__(self) -> str:
        return f"{self.left} {self.sense} {self.right}"


def _check_scalars(relation: Relation, vectors: set[sp.Symbol]) -> None:
    """Refuse symbols that are no quantities."""
    scalars = (relation.left.free_symbols | relation.right.free_symbols) - vectors
    free_names(*scalars)


def le(left: sp.Expr, right: sp.Expr) -> Relation:
    """left <= right."""
    return Relation(left, "<=", right)


def ge(left: sp.Expr, right: sp.Expr) -> Relation:
    """left >= right, written right <= left."""
    return Relation(right, "<=", left)


def eq(left: sp.Expr, right: sp.Expr) -> Relation:
    """left == right."""
    return Relation(left, "==", right)


def statement(theorem: Bound | Inequality, left: sp.Expr | None = None) -> Relation:
    """What a theorem says: of an `Inequality` its own left side; of a `Bound` the quantity that its metric names."""
    if isinstance(theorem, Inequality):
        if left is not None:
            raise InputError(f"inequality {theorem.name}: left = {left} is given, and it has its own")
        left = theorem.left
    if left is None:
        raise InputError(f"bound {theorem.name}: its left side is not given; name the quantity it bounds")
    return Relation(left, "<=", sp.Add(*theorem.terms.values()), tuple(theorem.terms.items()))


def with_terms(left: sp.Expr, **terms: sp.Expr) -> Relation:
    """left <= sum of the named terms; each term will have to be as sharp as it is."""
    named = tuple((name, sp.sympify(term)) for name, term in terms.items())
    return Relation(left, "<=", sp.Add(*(term for _, term in named)), named)


SHARPER = sp.Rational(19, 20)


def mutants(relation: Relation, factor: sp.Rational = SHARPER) -> dict[str, Relation]:
    """The relation made sharper by a few per cent, one term at a time: its named terms, else the summands."""
    found = {}
    for name, term in relation.terms or [(str(term), term) for term in sp.Add.make_args(relation.right)]:
        if term == 0:
            continue
        by = 1 / factor if term.could_extract_minus_sign() else factor
        right = relation.right - term + by * term
        found[f"{name} times {by}"] = Relation(relation.left, relation.sense, right)
    return found
