"""Implications by z3: do the premises imply the conclusion, for all admissible values of the symbols?

Integers are taken as real numbers, which only makes an implication harder. "Not found within the time" counts as
not proved. A counterexample is looked for at simple values of the constants first; it is accepted only after sympy
has found, in exact numbers and without the solver, that it lies in every domain, fulfils every premise and breaks
the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import sympy as sp

from theory.checkers.algebra import adds_up
from theory.checkers.exact import domain_of, refutes
from theory.checkers.flatten import Flattener
from theory.checkers.hints import HINTS
from theory.checkers.linear import implies_positive
from theory.errors import InputError
from theory.quantity import Domain
from theory.relation import Relation

TIMEOUT = 20.0  # seconds per question; the longest takes about one, the rest is for a busy machine


def load() -> Any:
    """z3. Raises InputError that says how to install it."""
    try:
        import z3
    except ImportError:
        raise InputError(
            "z3: is not installed; checking proofs needs the extra proofs: pip install 'staleproof[proofs]'"
        ) from None
    return z3


class Question:
    """One set of premises in z3's terms; asks for conclusions.

    strict: refuse to divide by what may be 0 (InputError); else such points are left out, as a search may.
    """

    def __init__(self, premises: Iterable[Relation], timeout: float = TIMEOUT, strict: bool = False) -> None:
        self.z3 = load()
        self.strict = strict
        self.timeout = timeout
        self.flatten = Flattener(_positive, _nonnegative)
        self.symbols: dict[sp.Symbol, Any] = {}
        self.facts: list[Any] = []
        self.known: list[tuple[sp.Expr, str]] = []
        for premise in premises:
            self.facts.append(self.relation(premise))
            if strict:  # every denominator is positive
                top, bottom = _as_fraction(self.flatten(premise.difference))
                self.known.append((-top if bottom.is_negative else top, premise.sense))

    def relation(self, relation: Relation) -> Any:
        """A relation as a z3 formula."""
        top, bottom = _as_fraction(self.flatten(relation.difference))
        value = self.real(top)
        if not bottom.is_number:
            if not _positive(bottom) and not (self.strict and self._implies_positive(bottom)):
                if self.strict:
                    raise InputError(f"relation {relation}: {bottom} is not seen to be positive; nothing divides by it")
                below = self.real(sp.expand(bottom))
                self.facts.append(below != 0)
                value = value * below
        elif bottom < 0:
            value = -value
        return value <= 0 if relation.sense == "<=" else value == 0

    def _implies_positive(self, expression: sp.Expr) -> bool:
        """Whether the premises so far make it positive."""
        known = [*self.known, *((t - n * b, "<=") for n, t, b in self.above())]
        if implies_positive(self.z3, known, expression, self.timeout):
            return True
        return bool(self.solve(self.real(sp.expand(expression)) <= 0) == self.z3.unsat)

    def above(self) -> list[tuple[sp.Symbol, sp.Expr, sp.Expr]]:
        """Maxima n with their arguments t/b, b positive: n b >= t."""
        parts = [(n, _as_fraction(a)) for kept, n in self.flatten.maxima.items() for a in kept]
        return [(n, t, b) for n, (t, b) in parts if _positive(b)]

    def real(self, expression: sp.Expr) -> Any:
        """A polynomial as a z3 term."""
        e = expression
        if e.is_Rational:
            return self.z3.RealVal(str(e))
        if e.is_Symbol:
            return self.symbol(e)
        terms = [self.real(argument) for argument in e.args] if not e.is_Pow else []
        if e.is_Add:
            return self.z3.Sum(terms)
        if e.is_Mul:
            return self.z3.Product(terms)
        if not (e.is_Pow and e.exp.is_Integer and e.exp > 0):
            raise InputError(f"expression {e}: is not allowed in a polynomial that a solver checks")
        return self.z3.Product([self.real(e.base)] * int(e.exp))

    def fraction(self, expression: sp.Expr) -> tuple[Any, Any]:
        """A rational function as two z3 terms, the lower one positive; InputError where that is not seen."""
        top, bottom = _as_fraction(expression)
        if not _positive(bottom):
            raise InputError(f"expression {expression}: {bottom} is not seen to be positive; nothing divides by it")
        return self.real(top), self.real(sp.expand(bottom))

    def symbol(self, symbol: sp.Symbol) -> Any:
        """A z3 real for a symbol, with its domain as a fact."""
        if symbol not in self.symbols:
            self.symbols[symbol] = self.z3.Real(f"{symbol.name}_{len(self.symbols)}")
            self._domain(self.symbols[symbol], domain_of(symbol))
        return self.symbols[symbol]

    def _domain(self, value: Any, domain: Domain) -> None:
        low, high = domain.low, domain.high
        if low > -float("inf"):
            bound = self.z3.RealVal(str(Fraction(low)))
            self.facts.append(value > bound if domain.open_low else value >= bound)
        if high < float("inf"):
            bound = self.z3.RealVal(str(Fraction(high)))
            self.facts.append(value < bound if domain.open_high else value <= bound)

    def atoms(self, roots: bool = True) -> list[Any]:
        """What is known of the symbols that stand for powers, roots (unless left out), minima, maxima and sums."""
        z3, found = self.z3, self.longer_sums()
        for (base, _), symbol in list(self.flatten.powers.items()):
            p, (t, b) = self.symbol(symbol), self.fraction(base)
            found.append(z3.Implies(t >= 0, p >= 0))
            found.append(z3.Implies(z3.And(t >= 0, t <= b), p <= 1))
            found.append(z3.Implies(t >= b, p >= 1))
        for base, symbol in list(self.flatten.roots.items()) if roots else []:
            top, bottom = _as_fraction(base)
            r, t, b = self.symbol(symbol), self.real(sp.expand(top)), self.real(sp.expand(bottom))
            found += [r * r * b == t, b != 0]
        for kept, sense in ((self.flatten.minima, -1), (self.flatten.maxima, 1)):
            for arguments, symbol in list(kept.items()):
                n, values = self.symbol(symbol), [self.fraction(argument) for argument in arguments]
                found += [sense * (n * b - t) >= 0 for t, b in values] + [z3.Or(*(n * b == t for t, b in values))]
        return found

    def longer_sums(self) -> list[Any]:
        """sum_{j<n} p^{n-1-j} q^j = p sum_{j<n-1} p^{n-2-j} q^j + q^{n-1}, where both sums occur."""
        sums, found = self.flatten.sums, []
        for (p, q, n), symbol in list(sums.items()):
            shorter = sums.get((p, q, sp.expand(n - 1)))
            if shorter is not None:
                difference = sp.together(self.flatten(symbol - p * shorter - q ** (n - 1)))
                if sp.fraction(difference)[1] == 1:
                    found.append(self.real(sp.expand(difference)) == 0)
        return found

    def proves(self, conclusion: Relation) -> bool:
        """Whether premises and the negated conclusion contradict each other. A timeout is no proof."""
        wanted = self.z3.Not(self.defined(conclusion))
        if self.solve(wanted) == self.z3.unsat:
            return True
        more = self.bernoulli()
        return bool(more) and bool(self.solve(self.z3.And(wanted, *more)) == self.z3.unsat)

    def defined(self, conclusion: Relation) -> Any:
        """The conclusion as a formula; strict: refuse (InputError) roots of what may be negative, in it or a fact."""
        wanted = self.relation(conclusion)
        for base in list(self.flatten.roots):
            top, bottom = _as_fraction(base)
            t, b = self.real(sp.expand(top)), self.real(sp.expand(bottom))
            if self.strict and self.solve(t * b < 0, roots=False) != self.z3.unsat:
                raise InputError(f"relation {conclusion}: {base} is not seen to be >= 0; it has no root")
            if self.strict and not _positive(bottom) and self.solve(b <= 0, roots=False) != self.z3.unsat:
                raise InputError(f"relation {conclusion}: {bottom} is not seen to be positive; nothing divides by it")
        return wanted

    def bernoulli(self) -> list[Any]:
        """b^n >= 1 - n (1 - b) for the powers of natural n, b in [0, 1]; asked for only where a proof needs it."""
        z3, found = self.z3, []
        for (base, exponent), symbol in list(self.flatten.powers.items()):
            if exponent.is_Symbol and exponent.is_integer and exponent.is_nonnegative:
                p, (t, b), n = self.symbol(symbol), self.fraction(base), self.symbol(exponent)
                found.append(z3.Implies(z3.And(t >= 0, t <= b), p * b >= b - n * (b - t)))
        return found

    def solve(self, wanted: Any, roots: bool = True) -> Any:
        """z3's answer to whether there are values with the facts and what is wanted."""
        solver = self.solver = self.z3.Solver()
        solver.set("timeout", int(1000 * self.timeout))
        solver.add(wanted, *self.atoms(roots), *self.facts)
        return solver.check()

    def model(self) -> dict[sp.Symbol, sp.Rational] | None:
        """The solver's values, None if one of them is irrational."""
        model, values = self.solver.model(), {}
        for symbol, value in self.symbols.items():
            found = model.eval(value, model_completion=True)
            if not self.z3.is_rational_value(found):
                return None
            values[symbol] = sp.Rational(found.numerator_as_long(), found.denominator_as_long())
        return values


@lru_cache(2**12)
def _as_fraction(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator, expanded, and denominator. Remembered: at one hint the premises of all mutants are the same."""
    if not any(power.exp.could_extract_minus_sign() for power in expression.atoms(sp.Pow)):
        return sp.expand(expression), sp.Integer(1)
    top, bottom = sp.fraction(sp.together(expression))
    return sp.expand(top), bottom


@cache
def _positive(expression: sp.Expr) -> bool:
    """Whether it is positive for all admissible values: by its assumptions, else by z3 from the domains alone."""
    if expression.is_positive:
        return True
    question = Question(())
    top, bottom = _as_fraction(expression)
    value = question.real(sp.expand(top * bottom))
    return bool(question.solve(value <= 0) == question.z3.unsat)


@cache
def _nonnegative(expression: sp.Expr) -> bool:
    """Whether it is at least 0 for all admissible values, as `_positive`."""
    if expression.is_nonnegative:
        return True
    question = Question(())
    top, bottom = _as_fraction(expression)
    value = question.real(sp.expand(top * bottom))
    return _positive(bottom) and bool(question.solve(value < 0) == question.z3.unsat)


def proves(premises: Sequence[Relation], conclusion: Relation, timeout: float = TIMEOUT) -> bool:
    """Whether the premises imply the conclusion."""
    return Question(premises, timeout, strict=True).proves(conclusion)


def rewrites(premises: Sequence[Relation], conclusion: Relation, timeout: float = TIMEOUT) -> bool:
    """Whether the premises add up to the conclusion exactly, and all of them are defined."""
    Question(premises, timeout, strict=True).defined(conclusion)
    return adds_up(premises, conclusion)


def counterexample(
    premises: Sequence[Relation],
    conclusion: Relation,
    hints: Sequence[Mapping[str, Any]] = HINTS,
    timeout: float = TIMEOUT,
) -> dict[str, str] | None:
    """Values, name -> fraction, at which every premise holds and the conclusion does not; None if none was found.

    Hints that fix most of the symbols come first; in a list the one that served is put before all, to serve again.
    """
    everything = (*premises, conclusion)
    free = sorted(set().union(*(r.difference.free_symbols for r in everything)), key=lambda s: s.name)
    tried: list[dict[sp.Symbol, Any]] = []
    names = {s.name for s in free}
    served = hints[:1] if isinstance(hints, list) else ()
    for hint in [*served, *sorted(hints, key=lambda hint: -len(names & set(hint)))]:
        given = {s: sp.sympify(hint[s.name]) for s in free if s.name in hint}
        if given in tried:
            continue
        tried.append(given)
        try:
            question = Question((p.subs(given) for p in premises), timeout)
            wanted = question.z3.Not(question.relation(conclusion.subs(given)))
        except InputError:  # exponents that are no numbers at this hint
            continue
        if question.solve(wanted) != question.z3.sat:
            continue
        found = question.model()
        if found is None:
            continue
        values = {s: given.get(s, found.get(s, sp.Integer(1))) for s in free}
        if refutes(values, premises, conclusion):
            if isinstance(hints, list):
                hints.insert(0, hints.pop(hints.index(hint)))
            return {s.name.removeprefix("vector_"): str(value) for s, value in values.items()}
    return None
