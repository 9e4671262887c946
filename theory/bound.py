"""A convergence bound as a value: named symbolic terms, assumptions, conditions, metric, kind, reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from theory.admissible import Interval, admissible, refusal
from theory.assumptions import FIXED, check_assumptions
from theory.errors import InputError
from theory.evaluation import checked_values, evaluate_expression, free_names, latex_of
from theory.symbols import QUANTITIES, UNITS
from theory.well_formed import check_form, check_units, exact

if TYPE_CHECKING:
    from theory.comparison import Comparison
    from theory.expansion import Expansion
    from theory.tuning import Tuned

TERM_NAMES: dict[str, str] = {  # in the order in which they are printed
    "initial": "what the start costs: the objective's initial gap",
    "step": "curvature over one step",
    "momentum_lag": "age of the gradients inside the momentum",
    "delay": "age of a gradient when it arrives",
    "drift": "how far the replicas part between two averages",
    "reference": "from the gradients inside the momentum to the one that is measured",
    "return": "from the virtual iterate back to the weights",
    "noise": "sampling noise of the gradients",
    "start": "error of the first momentum",
}
KINDS = ("upper bound", "tight", "exact", "asymptotic", "heuristic")
ROUND_OFF = 1e-12  # by how much of its larger side a condition may be passed: float64
MEASURED = 1e-6  # ... where it is about what a float32 run measures:
MEASURED_NAMES = ("dbar", "r_lo", "r_hi", "block_age")
ORIGINS = ("derived here", "paper", "as reported")


@dataclass(frozen=True)
class Bound:
    """metric <= sum of the terms, under the assumptions and conditions.

    name: key; title: one line; terms: name (of TERM_NAMES) -> sympy expression in symbols of theory.symbols;
    assumptions: names of theory.assumptions; conditions: sympy relations a run's constants must fulfil;
    metric: LaTeX of the left side; unit: its unit, a key of theory.symbols.UNITS; kind: one of KINDS; origin:
    one of ORIGINS; reference: where it is stated; optional: symbols that may be left out, and what is taken then: the
    best choice of what the analysis may choose (s), the largest value of a constant of the problem (r): `left_out`.
    Raises InputError when constructed with anything else.
    """

    name: str
    title: str
    terms: dict[str, sp.Expr]
    metric: str
    assumptions: tuple[str, ...]
    reference: str
    kind: str = "upper bound"
    origin: str = "derived here"
    conditions: tuple[Relational, ...] = field(default=())
    unit: str = "f/x"
    optional: dict[str, sp.Expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_form(self)
        if not self.terms:
            raise InputError(f"bound {self.name}: has no terms")
        unknown = [term for term in self.terms if term not in TERM_NAMES]
        if unknown:
            raise InputError(
                f"bound {self.name}: unknown term {unknown[0]!r}; known: {', '.join(TERM_NAMES)}"
            )
        if self.kind not in KINDS or self.origin not in ORIGINS:
            raise InputError(
                f"bound {self.name}: kind {self.kind!r} of {KINDS}, origin {self.origin!r} of {ORIGINS}"
            )
        if self.unit not in UNITS:
            raise InputError(f"bound {self.name}: unit {self.unit!r} is not one of {', '.join(UNITS)}")
        for condition in self.conditions:
            if not isinstance(condition, (sp.Le, sp.Ge, sp.Lt, sp.Gt)):
                raise InputError(
                    f"bound {self.name}: condition {condition!r} is not an open relation (<, <=, >, >=)"
                )
            exact(condition, f"bound {self.name}: condition")
        check_assumptions(self.assumptions, f"bound {self.name}")
        terms = {term: exact(self.terms[term], f"bound {self.name}: term {term}") for term in self.terms}
        ordered = {term: terms[term] for term in TERM_NAMES if term in terms}
        object.__setattr__(self, "terms", ordered)
        choices = {n: exact(best, f"bound {self.name}: optional {n}") for n, best in self.optional.items()}
        object.__setattr__(self, "optional", choices)
        names = free_names(*ordered.values(), *self.conditions)  # refuses foreign symbols
        for name, best in self.optional.items():
            extra = [other for other in free_names(best) if other not in names or other in self.optional]
            if name not in names or extra:
                raise InputError(
                    f"bound {self.name}: optional {name} = {best} is not a choice among {', '.join(names)}"
                )
        check_units(self)

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.terms.items())))

    @property
    def expression(self) -> sp.Expr:
        """The right side, one sympy expression."""
        return sp.Add(*self.terms.values())

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the quantities that `evaluate` needs, in the order of the table of quantities."""
        return free_names(*self.terms.values(), *self.conditions)

    def left_out(self, name: str) -> str:
        """What stands for an optional symbol that is left out: the end of its domain is the worst case, no choice."""
        taken = self.optional[name]
        at_end = taken.is_number and float(taken) == QUANTITIES[name].domain.high
        return "largest allowed; not given" if at_end else "best choice"

    def chosen(self, values: Mapping[str, object]) -> dict[str, object]:
        """`values`, completed by what `optional` has for each symbol that is left out.

        Raises InputError as `evaluate_terms` does.
        """
        out = dict(values)
        for name, best in self.optional.items():
            if name not in out:
                needed = free_names(best)
                arrays = checked_values(needed, values, f"bound {self.name}") if needed else {}
                out[name] = evaluate_expression(best, arrays, f"bound {self.name}, {name}")
        return out

    def evaluate_terms(self, **values: object) -> dict[str, float | np.ndarray]:
        """Each term at the given values: scalars or arrays that broadcast; a float where all values are
        scalars.

        Raises InputError for a missing or unknown name, a value outside its domain or outside the conditions.
        """
        unknown = [name for name in values if name not in self.symbols]
        if unknown:
            fixing = [a for a in self.assumptions if FIXED.get(a, ("", 0.0))[0] == unknown[0]]
            why = f"; it assumes {fixing[0]} ({unknown[0]} = {FIXED[fixing[0]][1]:g})" if fixing else ""
            raise InputError(
                f"bound {self.name}: unknown symbol {unknown[0]!r}{why}; allowed: {', '.join(self.symbols)}"
            )
        missing = [name for name in self.symbols if name not in values and name not in self.optional]
        if missing:
            raise InputError(
                f"bound {self.name}: missing {', '.join(missing)}; needed: "
                f"{', '.join(name for name in self.symbols if name not in self.optional)}"
            )
        arrays = checked_values(self.symbols, self.chosen(values), f"bound {self.name}")
        for condition in self.conditions:
            owner = f"bound {self.name}"
            less, more = (np.asarray(evaluate_expression(s, arrays, owner)) for s in (condition.lts, condition.gts))
            slack = MEASURED if any(name in MEASURED_NAMES for name in free_names(condition)) else ROUND_OFF
            beyond = less - more
            strict = isinstance(condition, (sp.Lt, sp.Gt))
            broken = beyond >= 0 if strict else beyond > slack * np.maximum(abs(less), abs(more))
            if broken.any():
                given = {name: float(arrays[name][broken].flat[0]) for name in free_names(condition)}
                raise InputError(f"bound {self.name}: {refusal(condition, given)}")
        return {
            term: evaluate_expression(expression, arrays, f"bound {self.name}, term {term}")
            for term, expression in self.terms.items()
        }

    def evaluate(self, **values: object) -> float | np.ndarray:
        """The right side at the given values: the sum of `evaluate_terms`, with the same errors."""
        total = sum(np.asarray(term) for term in self.evaluate_terms(**values).values())
        array = np.asarray(total)
        if not np.isfinite(array).all():
            raise InputError(f"bound {self.name}: not a finite number at the given values")
        return array if array.ndim else float(array[()])

    def latex(self) -> str:
        """metric <= term + term + ... as LaTeX (no dollar signs)."""
        terms = (rf"\left({term}\right)" if term.startswith("-") else term for term in self.term_latex().values())
        return self.metric + r" \le " + " + ".join(terms)

    def term_latex(self) -> dict[str, str]:
        """LaTeX of each term."""
        return {term: latex_of(expression) for term, expression in self.terms.items()}

    def legend(self) -> dict[str, str]:
        """LaTeX -> meaning of every symbol of the bound."""
        return {QUANTITIES[name].latex: QUANTITIES[name].meaning for name in self.symbols}

    def admissible(self, name: str, **values: object) -> tuple[Interval, ...]:
        """Where `name` may lie, by its domain and the conditions, with the other symbols at `values` (scalars)."""
        return admissible(self.conditions, name, self.chosen(values), f"bound {self.name}")

    def derivative(self, name: str) -> sp.Expr:
        """The right side differentiated by a symbol, the others fixed. Raises InputError for an integer."""
        if name not in self.symbols or QUANTITIES[name].domain.integer:
            allowed = [n for n in self.symbols if not QUANTITIES[n].domain.integer]
            raise InputError(f"bound {self.name}: derivative by {name!r} is not one by {', '.join(allowed)}")
        return sp.Add(*(sp.diff(term, QUANTITIES[name].symbol) for term in self.terms.values()))

    def derivative_at(self, name: str, **values: object) -> float | np.ndarray:
        """`derivative` at scalars or arrays that broadcast; refuses what `evaluate` refuses."""
        self.evaluate_terms(**values)
        arrays = checked_values(self.symbols, self.chosen(values), f"bound {self.name}")
        return evaluate_expression(self.derivative(name), arrays, f"bound {self.name}, derivative by {name}")

    def tune(self, names: tuple[str, ...], **values: object) -> Tuned:
        """The smallest value over `names`, the other symbols at `values` (scalars): see `theory.tuning`."""
        from theory.tuning import tune

        return tune(self, names, values)

    def expand(self, tune: tuple[str, ...] | None = None) -> Expansion:
        """Leading orders for K -> oo after tuning (None: step size and alpha), term by term: see `theory.expansion`."""
        from theory.expansion import expand

        return expand(self, tune)

    def compare(self, other: Bound) -> Comparison:
        """Term by term against another bound: see `theory.comparison`."""
        from theory.comparison import compare

        return compare(self, other)

    def to_json(self) -> dict[str, Any]:
        """As plain lists, dicts and strings; `from_json` makes an equal bound of it."""
        from theory.serialise import bound_to_json

        return bound_to_json(self)

    @staticmethod
    def from_json(data: object) -> Bound:
        """The bound that `to_json` wrote. Evaluates no code; raises InputError naming what is wrong."""
        from theory.serialise import bound_from_json

        return bound_from_json(data)
