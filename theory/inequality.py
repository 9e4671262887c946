"""A pathwise step of a proof as a value: left <= sum of named terms, in quantities that a run realises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from theory.assumptions import check_assumptions
from theory.errors import InputError
from theory.evaluation import checked_values, evaluate_expression, free_names
from theory.symbols import get_quantity


@dataclass(frozen=True)
class Inequality:
    """left <= right on every path, at every step.

    name: key; title: one line; statement: LaTeX; left: sympy expression; terms: name -> sympy expression,
    `right` is their sum (every constant of the lemma stands in one of them, exact); assumptions: names of
    theory.assumptions; reference: author and number. Raises InputError when constructed with foreign symbols
    or without terms.
    """

    name: str
    title: str
    statement: str
    left: sp.Expr
    terms: dict[str, sp.Expr]
    assumptions: tuple[str, ...]
    reference: str

    def __post_init__(self) -> None:
        if not self.terms:
            raise InputError(f"inequality {self.name}: has no terms")
        object.__setattr__(self, "left", sp.sympify(self.left))
        object.__setattr__(self, "terms", {term: sp.sympify(value) for term, value in self.terms.items()})
        check_assumptions(self.assumptions, f"inequality {self.name}")
        free_names(self.left, *self.terms.values())
        floats = [e for e in (self.left, *self.terms.values()) if e.atoms(sp.Float)]
        if floats:
            raise InputError(
                f"inequality {self.name}: {floats[0]} has a rounded constant; exact numbers only"
            )

    def __hash__(self) -> int:
        return hash((self.name, self.left, tuple(self.terms.items())))

    @property
    def right(self) -> sp.Expr:
        """The right side, one sympy expression."""
        return sp.Add(*self.terms.values())

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the quantities that `evaluate` needs."""
        return free_names(self.left, *self.terms.values())

    def evaluate(self, values: Mapping[str, object]) -> tuple[float | np.ndarray, float | np.ndarray]:
        """(left, right) at scalars or arrays over steps that broadcast; floats where all values are scalars.

        `values` may hold more than is needed (one record of a run serves all inequalities). Raises InputError
        for a missing name or a value outside its domain.
        """
        arrays = checked_values(self.symbols, values, f"inequality {self.name}")
        owner = f"inequality {self.name}"
        left = evaluate_expression(self.left, arrays, owner)
        right = sum(np.asarray(evaluate_expression(term, arrays, owner)) for term in self.terms.values())
        array = np.asarray(right)
        return left, (array if array.ndim else float(array[()]))

    def evaluate_terms(self, values: Mapping[str, object]) -> dict[str, float | np.ndarray]:
        """Each term of the right side; same input and errors as `evaluate`."""
        arrays = checked_values(self.symbols, values, f"inequality {self.name}")
        return {t: evaluate_expression(e, arrays, f"inequality {self.name}") for t, e in self.terms.items()}

    def scaled(self, term: str, factor: sp.Rational | int) -> Inequality:
        """A mutant: one term times an exact factor. For tests that show a constant cannot be smaller."""
        if term not in self.terms:
            raise InputError(f"inequality {self.name}: no term {term!r}; it has {', '.join(self.terms)}")
        return replace(
            self,
            name=f"{self.name}/{term}*{factor}",
            terms={**self.terms, term: sp.sympify(factor) * self.terms[term]},
        )

    def substituted(self, name: str, expression: sp.Expr) -> Inequality:
        """A mutant: one quantity of the right side replaced, for instance tau by tau - 1."""
        symbol = get_quantity(name).symbol
        if not any(term.has(symbol) for term in self.terms.values()):
            raise InputError(f"inequality {self.name}: its right side does not depend on {name}")
        return replace(
            self,
            name=f"{self.name}/{name}->{expression}",
            terms={term: value.subs(symbol, expression) for term, value in self.terms.items()},
        )
