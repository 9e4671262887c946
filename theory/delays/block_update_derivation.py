"""PipeDream's S^2 delay derived from its entries by computer algebra, for every even and every odd S at once.

S = 2p + parity, a = 2i - parity, r = 2k - parity turn every floor of the entries into a polynomial. From these:
differences along a and r (so the largest entry is at a = r = 1, the smallest at a = r = S), the largest, smallest and
mean entry, the largest of the start-up, and the law: a round trip of 2S - 1 slots at S/2 updates per slot is
(2S - 1) S/2 = S^2 - S/2, from which the exact maximum parts by 0 for even S and by -1/2 for odd S.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import sympy as sp

from theory.delays.block_update import ENTRY, MAX, MEAN, MIN, STARTUP_MAX, S, a, r

_p, _i, _k, _j = sp.symbols("p i k j", integer=True, positive=True)


@dataclass(frozen=True)
class Step:
    """One step: what is claimed, the two sides as polynomials, and whether computer algebra found them so."""

    name: str
    convention: str
    parity: str
    left: sp.Expr
    relation: str
    right: sp.Expr
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}  {self.convention}, {self.parity} S: {self.name}: {self.left} {self.relation} {self.right}"


def derive(entries: dict[str, sp.Expr] | None = None) -> list[Step]:
    """Every step for every convention, from ``entries`` (default: the closed forms of block_update.py)."""
    entries = ENTRY if entries is None else entries
    steps: list[Step] = []
    for convention, odd in product(entries, (0, 1)):
        steps += _of_entries(convention, entries[convention], odd)
    for odd in (0, 1):
        steps += _start_up(odd)
    return steps


def _of_entries(convention: str, entry: sp.Expr, odd: int) -> list[Step]:
    size = 2 * _p + odd
    classes = {
        (x, y): _polynomial(entry.subs({S: size, a: 2 * _i - x, r: 2 * _k - y}, simultaneous=True))
        for x, y in product((0, 1), repeat=2)
    }

    def equal(name: str, left: sp.Expr, right: sp.Expr) -> Step:
        left, right = _in_S(left, odd), _in_S(right, odd)
        return Step(name, convention, _word(odd), left, "=", right, sp.expand(left - right) == 0)

    steps = []
    for axis, symbol in (("a", _i), ("r", _k)):
        # From 2i - 1 to 2i the class changes, from 2i to 2i + 1 the number too.
        falls: dict[str, sp.Expr] = {}
        for other in (0, 1):
            odd_one, even_one = ((1, other), (0, other)) if axis == "a" else ((other, 1), (other, 0))
            following = classes[odd_one].subs(symbol, symbol + 1)
            fixed = f"{'odd' if other else 'even'} {'r' if axis == 'a' else 'a'}"
            falls[f"from odd {axis} to the next, {fixed}"] = classes[odd_one] - classes[even_one]
            falls[f"from even {axis} to the next, {fixed}"] = classes[even_one] - following
        for case, fall in falls.items():
            fall, name = sp.expand(fall), f"an entry falls by, {case}"
            steps.append(Step(name, convention, _word(odd), _in_S(fall, odd), ">=", sp.S.Zero, _nonnegative(fall)))
    first = classes[1, 1].subs({_i: 1, _k: 1})
    last = classes[odd, odd].subs({_i: _p + odd, _k: _p + odd})
    total = sum(
        sp.summation(sp.summation(polynomial, (_i, 1, _p + odd * x)), (_k, 1, _p + odd * y))
        for (x, y), polynomial in classes.items()
    )
    steps += [
        equal("entry at a = r = 1 is the largest", first, _polynomial(MAX[convention].subs(S, size))),
        equal("entry at a = r = S is the smallest", last, _polynomial(MIN[convention].subs(S, size))),
        equal("mean entry", sp.cancel(total / size**2), _polynomial(_case(MEAN[convention], odd, size))),
    ]
    if convention != "minimal":
        law = (2 * size - 1) * size / 2
        steps.append(equal("largest less 2S - 1 slots at S/2 updates", first - law, sp.Rational(-odd, 2)))
    return steps


def _start_up(odd: int) -> list[Step]:
    """The last warm-up microbatch of stage 1: S(S-1) updates of whole rounds, and ceil(s/2) more by each stage s."""
    size = 2 * _p + odd
    halves = sp.summation(_j, (_j, 0, _p - 1 + odd)) + sp.summation(_j, (_j, 1, _p))
    left = sp.expand(size * (size - 1) + halves)
    right = _polynomial(STARTUP_MAX.subs(S, size))
    sides = (_in_S(left, odd), "=", _in_S(right, odd))
    return [Step("largest of the start-up", "stage order", _word(odd), *sides, sp.expand(left - right) == 0)]


def _polynomial(expr: sp.Expr) -> sp.Expr:
    """``expr`` with its floors and remainders resolved; they all are, once parities are known."""
    return sp.expand(sp.cancel(sp.sympify(expr).doit()))


def _case(expr: sp.Expr, odd: int, size: sp.Expr) -> sp.Expr:
    if isinstance(expr, sp.Piecewise):
        expr = expr.args[odd][0]
    return sp.sympify(expr).subs(S, size)


def _in_S(expr: sp.Expr, odd: int) -> sp.Expr:
    return sp.expand(sp.cancel(sp.sympify(expr).subs(_p, (S - odd) / 2)))


def _nonnegative(polynomial: sp.Expr) -> bool:
    """Whether it is for every p >= 1 (S = 1 has one entry only): in p - 1 no coefficient is negative."""
    if polynomial.free_symbols - {_p}:
        return False
    return all(c >= 0 for c in sp.Poly(polynomial.subs(_p, _j + 1), _j).all_coeffs())


def _word(odd: int) -> str:
    return "odd" if odd else "even"
