"""Implications by z3: do the premises imply the conclusion, for all admissible values of the symbols?

Integers are taken as real numbers, which only makes an implication harder. "Not found within the time" counts as
not proved. A counterexample is looked for at simple values of the constants first; it is accepted only after sympy
has found, in exact numbers and without the solver, that it lies in every domain, fulfils every premise and breaks
the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp

from theory.checkers.algebra import adds_up
from theory.checkers.exact import domain_of, refutes
from theory.checkers.flatten import Flattener
from theory.errors import InputError
from theory.quantity import Domain
from theory.relation import Relation

TIMEOUT = 20.0  # seconds per question; the longest takes about one, the rest is for a busy machine
_ONE = {"L": 1, "eta": 1, "rho": 1, "sigma": 1, "E0": 1, "Delta0": 1, "Delta1": 1}
_WINDOW = {"block_window_norm": 1, "block_drift_norm": 1, "block_delay": 1, "age_max": 1, "block_variance": 1}
_DECAY = {"b": sp.Rational(1, 2), "r": 1}
_TUNED = {name: 1 for name in _ONE if name != "eta"}
_TUNED_TOO = {"K": 1, "L": 16, "Delta0": 256, "rho": 1, "sigma": 289, "E0": 1}
HINTS: tuple[dict[str, Any], ...] = (
    # alpha = 2 scale/noise_scale, and alpha/(2-alpha), scale, noise_scale, 1 + alpha (tau - 3/4) are squares
    {"alpha": sp.Rational(128, 289), "scale": 64, "noise_scale": 289, "tau": 6, **_TUNED_TOO},
    {"alpha": sp.Rational(800, 841), "tau": 6, **_TUNED_TOO},  # another alpha at which all that stays rational
    # alpha/(2-alpha) = 1/4 at alpha = 2/5: roots stay rational
    {"alpha": sp.Rational(2, 5), "tau": 1, "K": 2, "k": 1, "j": 1, "t": 1, "age": 1, **_DECAY, "b": 1, **_ONE},
    {"alpha": sp.Rational(2, 5), "tau": 2, "K": 3, "k": 3, "j": 2, "t": sp.Rational(1, 2), "eta": 1, **_DECAY},
    {"alpha": sp.Rational(2, 5), "tau": 3, "K": 40, "k": 30, "j": 4, "eta": sp.Rational(1, 2), "L": 2},
    {"alpha": sp.Rational(2, 5), "tau": 1, "K": 2, "k": 1, **_ONE, "sigma": 0},
    {"alpha": 1, "tau": 2, "K": 1, "k": 0, "j": 3, "eta": 1},
    {"alpha": sp.Rational(2, 5), "tau": 0, "K": 40, "k": 30, "j": 0, "eta": 1},
    {"alpha": sp.Rational(2, 5)},
    {"gamma": 1, "S": 1, "j": 1, "delta_max": 1, "tau": 1, "theta": 1, **_WINDOW, **_ONE},
    {"gamma": sp.Rational(1, 4), "S": 2, "j": 2, "delta_max": 2, "tau": 1, "K": 2, "theta": 1, **_ONE},
    # at alpha = 32/41 also 1/2 + 2 (1-alpha)/alpha + 2 is a square: roots of tuned steps stay rational
    {"alpha": sp.Rational(32, 41), "tau": 1, "K": 4, "k": 1, **_TUNED},
    {"alpha": sp.Rational(32, 41), "tau": 2, "K": 4, "k": 1, **_TUNED},
    {},
)


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
        self.flatten = Flattener(_positive)
        self.symbols: dict[sp.Symbol, Any] = {}
        self.facts: list[Any] = []
        for premise in premises:
            self.facts.append(self.relation(premise))

    def relation(self, relation: Relation) -> Any:
        """A relation as a z3 formula."""
        top, bottom = sp.fraction(sp.together(self.flatten(relation.difference)))
        value = self.real(sp.expand(top))
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
        return bool(self.solve(self.real(sp.expand(expression)) <= 0) == self.z3.unsat)

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
        return self.z3.Product([self.real(e.base)] * int(e.exp))

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
        """What is known of the symbols that stand for powers, roots (unless left out) and minima."""
        z3, found = self.z3, self.longer_sums()
        for (base, _), symbol in list(self.flatten.powers.items()):
            p, b = self.symbol(symbol), self.real(sp.expand(base))
            found.append(z3.Implies(z3.And(b >= 0, b <= 1), p <= 1))
        for base, symbol in list(self.flatten.roots.items()) if roots else []:
            top, bottom = sp.fraction(sp.together(base))
            r, t, b = self.symbol(symbol), self.real(sp.expand(top)), self.real(sp.expand(bottom))
            found += [r * r * b == t, b != 0]
        for arguments, symbol in list(self.flatten.minima.items()):
            n, values = self.symbol(symbol), [self.real(sp.expand(a)) for a in arguments]
            found += [n <= v for v in values] + [z3.Or(*(n == v for v in values))]
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
        return bool(self.solve(self.z3.Not(self.defined(conclusion))) == self.z3.unsat)

    def defined(self, conclusion: Relation) -> Any:
        """The conclusion as a formula; strict: refuse (InputError) roots of what may be negative, in it or a fact."""
        wanted = self.relation(conclusion)
        for base in list(self.flatten.roots):
            top, bottom = sp.fraction(sp.together(base))
            t, b = self.real(sp.expand(top)), self.real(sp.expand(bottom))
            if self.strict and self.solve(t * b < 0, roots=False) != self.z3.unsat:
                raise InputError(f"relation {conclusion}: {base} is not seen to be >= 0; it has no root")
            if self.strict and not _positive(bottom) and self.solve(b <= 0, roots=False) != self.z3.unsat:
                raise InputError(f"relation {conclusion}: {bottom} is not seen to be positive; nothing divides by it")
        return wanted

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


@cache
def _positive(expression: sp.Expr) -> bool:
    """Whether it is positive for all admissible values: by its assumptions, else by z3 from the domains alone."""
    if expression.is_positive:
        return True
    question = Question(())
    top, bottom = sp.fraction(sp.together(expression))
    value = question.real(sp.expand(top * bottom))
    return bool(question.solve(value <= 0) == question.z3.unsat)


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

    Hints that fix most of the symbols come first.
    """
    everything = (*premises, conclusion)
    free = sorted(set().union(*(r.difference.free_symbols for r in everything)), key=lambda s: s.name)
    tried: list[dict[sp.Symbol, Any]] = []
    names = {s.name for s in free}
    for hint in sorted(hints, key=lambda hint: -len(names & set(hint))):
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
            return {s.name.removeprefix("vector_"): str(value) for s, value in values.items()}
    return None
