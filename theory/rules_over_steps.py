"""The rules over the steps of a run: induction, and the average of a relation over K steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from theory.checkers.algebra import is_zero, spot_zero
from theory.checkers.flatten import Flattener
from theory.pairs import ALONG, BEFORE, INSTEAD, MEANS, TELESCOPING, VARYING, listed, unlisted
from theory.relation import Relation
from theory.rules import ProofError, check_affine
from theory.splits import COUNTED, SUMMED, split_reference
from theory.symbols import symbols
from theory.vectors import CONSTANT, CONSTANT_OF_BLOCK


@dataclass(frozen=True)
class Induction:
    """Over steps: what holds at the first one and is handed on from each to the next holds at every one.

    before: quantity at the step before -> the same at this step (theory.pairs.BEFORE); varying: other quantities that
    differ from step to step (VARYING there); base: keys of the premises that are used at the first step, the others are
    used at later steps; index: the quantity that counts the steps, from `first`; cases: substitutions that exhaust the
    later steps, the default is index = first + 1 + i. Constants are the same at every step.
    along: naturals that are one less at the step before, too (theory.pairs.ALONG). The conclusion is then proved for
    all their values at once: it is handed on where they are at least 1, as in `cases`, and follows anew where one is 0.
    """

    before: Mapping[str, str]
    base: tuple[str, ...]
    varying: tuple[str, ...] = ()
    index: str = "k"
    first: int = 0
    cases: tuple[Mapping[sp.Symbol, sp.Expr], ...] = ()
    along: tuple[str, ...] = ()
    axioms: tuple[str, ...] = ("constant-step",)

    def apply(self, relation: Relation) -> Relation:
        """The facts as they are; `theory.checkers.induction` puts them together."""
        return relation

    @property
    def later(self) -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
        """The cases of the step from one index to the next."""
        return self.cases or ({symbols(self.index)[0]: COUNTED + self.first + 1},)

    @property
    def at_first(self) -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
        """The cases of the first step."""
        return split_reference() if self.along else ({},)

    @property
    def anew(self) -> tuple[Mapping[sp.Symbol, sp.Expr], ...]:
        """The later steps to which nothing is handed on."""
        index = symbols(self.index)[0]
        return tuple({index: COUNTED + self.first + 1, symbols(name)[0]: sp.Integer(0)} for name in self.along)

    def check(self, relations: Iterable[Relation], conclusion: Relation) -> None:
        """Refuse (ProofError) symbols of which nothing says whether they differ from step to step."""
        self.check_names()
        now = set(self.before.values())
        fixed = {*CONSTANT, *(CONSTANT_OF_BLOCK if self.index == "j" else ())}
        known = {*self.before, *now, *self.varying, self.index, *fixed}
        for relation in relations:
            strange = {s.name for s in relation.difference.free_symbols} - known
            if strange:
                raise ProofError(f"fact {relation}: {min(strange)} is neither constant nor said to vary")
        strange = {s.name for s in conclusion.difference.free_symbols} - {*now, self.index, *fixed}
        if strange:
            raise ProofError(f"conclusion {conclusion}: {min(strange)} may not occur in what is handed on")

    def check_names(self) -> None:
        """Refuse (ProofError) what the tables of theory.pairs do not have."""
        found = unlisted(self.before, {before: now for before, (now, _, _) in BEFORE.items()})
        if found or not self.before:
            raise ProofError(f"induction: {found or 'nothing'} is not one of the quantities of the step before")
        for before in self.before:
            _, index, axioms = BEFORE[before]
            if self.index != index or self.axioms not in (axioms, INSTEAD.get(axioms)):
                on = listed(axioms) or "nothing"
                raise ProofError(f"induction: {before} is counted by {index} and rests on {on}")
            if self.along != ALONG.get(before, ()):
                with_it = listed(ALONG.get(before, ())) or "nothing"
                raise ProofError(f"induction: at the step before, {before} has {with_it} one less, too")
        for name in self.varying:
            if VARYING.get(name) != self.index:
                raise ProofError(f"induction: {name} is not known to vary with {self.index}")

    def previous(self, conclusion: Relation) -> Relation:
        """The conclusion at the step before."""
        back = {symbols(now)[0]: symbols(before)[0] for before, now in self.before.items()}
        numbers = symbols(" ".join((self.index, *self.along)))
        return conclusion.subs({**back, **{number: number - 1 for number in numbers}})


@dataclass(frozen=True)
class Everywhere:
    """What follows at the first step, and at all later ones, holds at every step.

    At the first from facts about it, at later ones from facts about those; facts about every step serve for both.
    Nothing is handed on. first: number of the first step.
    """

    first: int = 0
    axioms: tuple[str, ...] = ()

    def apply(self, relation: Relation) -> Relation:
        """The facts as they are; `theory.checkers.induction` puts them together."""
        return relation


def check_once(telescoping: tuple[tuple[str, str, str, str], ...], means: Mapping[str, str]) -> None:
    """Refuse (ProofError) quantities that telescope twice, or are averaged and handed on: they would count twice."""
    names = [name for now, after, _, _ in telescoping for name in (now, after)]
    twice = [name for name in names if names.count(name) > 1]
    twice += [now for now, _, _, _ in telescoping if now in means]
    if twice:
        raise ProofError(f"sum over steps: {twice[0]} is given twice")


# a constant step size is part of the method "sgd" in its three forms, and an assumption of its own elsewhere
AVERAGES = tuple((method, "finite-sum") for method in ("constant-step", "block-sgd", "pipedream", "delayed-gd"))


@dataclass(frozen=True)
class Averaged:
    """(1/K) times the sum over K steps k = first, first + 1, ... of a relation that holds at each.

    means: quantity of a step -> quantity that is its average (theory.pairs.MEANS); telescoping: (now, next, at the
    first step, after the last) (TELESCOPING there); sums: g(k) -> closed form G(K) of sum_{i<K} g(first + i), checked
    here: G(0) = 0 and G(K+1) - G(K) = g(first + K) identically; cases: substitutions that exhaust the symbols, for that
    check. Coefficients may not differ between steps: the step size and alpha are constant.
    """

    means: Mapping[str, str]
    telescoping: tuple[tuple[str, str, str, str], ...] = ()
    sums: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    first: int = 0
    cases: tuple[Mapping[sp.Symbol, sp.Expr], ...] = ({},)
    axioms: tuple[str, ...] = ("constant-step", "finite-sum")

    def apply(self, relation: Relation) -> Relation:
        """What the rule makes of one fact."""
        self.check_names()
        averages = {symbols(a)[0]: symbols(b)[0] for a, b in self.means.items()}
        pairs = [symbols(" ".join(names)) for names in self.telescoping]
        varying = set(averages).union(*({now, after} for now, after, _, _ in pairs))
        check_affine(relation, varying)
        rest, result = sp.expand(relation.difference), sp.Integer(0)
        slopes = {v: rest.coeff(v) for v in varying}
        for v, slope in slopes.items():
            if {s.name for s in slope.free_symbols} - set(CONSTANT):
                raise ProofError(f"fact {relation}: the coefficient of {v} changes with k")
            rest = sp.expand(rest - slope * v)
        for v, mean in averages.items():
            result += slopes[v] * mean
        for now, after, first, last in pairs:
            left_over = sp.expand(slopes[now] + slopes[after])
            if left_over != 0 and after not in averages:
                raise ProofError(f"fact {relation}: {now} and {after} do not telescope")
            # slopes (-c, c + left_over): c (after - now) telescopes, the rest is an average of `after`
            result += -slopes[now] * (last - first) / self.over
            if after in averages:
                result += left_over * averages[after] - slopes[after] * averages[after]
        strange = {s.name for s in rest.free_symbols} - set(CONSTANT) - {"k"}
        if strange:
            raise ProofError(f"fact {relation}: nothing says what {min(strange)} adds up to")
        still, moving = rest.as_independent(symbols("k")[0], as_Add=True)
        total = still * self.count + self._rest(relation, moving)  # what does not move counts at every step
        return Relation(result + sp.expand(total / self.over), relation.sense, sp.Integer(0))

    @property
    def count(self) -> sp.Symbol:
        """The number of steps, of which the closed forms of sums are functions."""
        return symbols("K")[0]

    @property
    def over(self) -> sp.Expr:
        """What the sum is divided by."""
        return self.count

    def check_names(self) -> None:
        """Refuse (ProofError) what the tables of theory.pairs do not have."""
        found = unlisted(self.means, MEANS)
        if found:
            raise ProofError(f"average: {found} is not a quantity and its average")
        for names in self.telescoping:
            if names not in TELESCOPING:
                raise ProofError(f"average: {', '.join(names)} are not known to telescope")
        check_once(self.telescoping, self.means)
        if self.axioms not in AVERAGES:
            raise ProofError(f"average: rests on one of {listed(AVERAGES)}, not on {listed(self.axioms) or 'nothing'}")

    def _rest(self, relation: Relation, rest: sp.Expr) -> sp.Expr:
        """Sum over k of what does not vary but for k."""
        k = symbols("k")[0]
        total: sp.Expr = sp.Integer(0)
        for g, G in self.sums.items():
            self._check_sum(g, G)
            whole = sp.expand(rest + g) == 0
            by = sp.Integer(-1) if whole else _slope(rest, g, k)
            total += by * G
            rest = sp.Integer(0) if whole else rest - by * g
        if rest.has(k):
            if not is_zero(rest - rest.subs(k, 0)):
                raise ProofError(f"fact {relation}: no closed form is given for the sum over k of {rest}")
            rest = rest.subs(k, 0)
        return total + rest * self.count

    def _check_sum(self, g: sp.Expr, G: sp.Expr) -> None:
        k, count = symbols("k")[0], self.count
        at_zero = G.subs(count, 0)
        growth = G.subs(count, SUMMED + 1) - G.subs(count, SUMMED) - g.subs(k, SUMMED + self.first)
        if not is_zero(at_zero) or not is_zero(growth, self.cases) or not spot_zero(growth):
            raise ProofError(f"sum over k of {g}: is not {G}")


def _slope(rest: sp.Expr, g: sp.Expr, k: sp.Symbol) -> sp.Expr:
    """c such that rest - c g has one power of k less; 0 where g does not occur."""
    flatten = Flattener()
    flat_g, flat_rest = flatten(g), flatten(rest)
    moving = [atom for (_, exponent), atom in flatten.powers.items() if exponent.has(k)] + [k]
    atom = next(a for a in moving if flat_g.has(a))
    by = sp.cancel(sp.diff(flat_rest, atom) / sp.diff(flat_g, atom))
    return sp.Integer(0) if any(by.has(a) for a in moving) else by
