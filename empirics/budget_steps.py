"""How much of its right side each inequality of a proof used on a run, step by step.

Taken are the steps of `theory.lmo.PATHWISE` and every pathwise fact of the machine-checked proofs that a theorem rests
on. Terms that are not paid for but won (the objective, and what has a minus sign) stand on the left: utilisation is
what the statement says against what it pays. An equality has an error in place of a utilisation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from empirics.budget_kinds import is_evidence, kind_of, statement
from empirics.pathwise import ROUND_OFF, SLACK
from theory.evaluation import checked_values, evaluate_expression, free_names, latex_of
from theory.inequality import Inequality
from theory.ledger import closure
from theory.lmo import PATHWISE
from theory.proof import Proof
from theory.proof_quantities import PREFIX
from theory.relation import Relation
from theory.symbols import get_quantity

#: Numbers of a whole run: a fact with one of them is no fact of one step.
OF_THE_RUN = {"f_first", "f_last", "f_star", "K", "Delta0", "Delta1", "sigma", "dbar", "scale", "noise_scale"}


@dataclass(frozen=True)
class Fact:
    """A relation that holds on every path: where it stands, at which steps it holds."""

    name: str
    place: str
    relation: Relation | Inequality
    scope: str = "every"


@dataclass(frozen=True)
class Scales:
    """Largest numbers that a run's quantities were computed from, for round-off; eps: of the run's own precision."""

    f: float
    gradient: float
    x: float
    eta: float
    eps: float = 2.0**-52

    def slack(self, unit: str) -> float:
        """What the left side of a relation in that unit may be off by."""
        f = self.f + self.eta * self.gradient
        sums = SLACK * {"f": f, "f/x": self.gradient, "(f/x)^2": self.gradient**2}.get(unit, 0.0)
        steps = 8 * self.eps * {"x": self.x, "1": self.x / self.eta}.get(unit, 0.0)
        # Where weights are rounded, d_k = -(z_{k+1} - z_k)/eta has the rounding of z.
        inner = 8 * self.eps * self.x / self.eta * self.gradient if unit in ("f", "f/x") else 0.0
        return sums + steps + inner * (self.eta if unit == "f" else 1.0)


@functools.cache
def facts_of(proof: Proof) -> tuple[Fact, ...]:
    """Named lemmas first, then every further pathwise fact of the proofs, each once."""
    proofs = closure([proof])
    named = {p.name: PATHWISE[p.name] for p in proofs if p.name in PATHWISE}
    found = {name: Fact(name, f"theorem {name}", inequality) for name, inequality in named.items()}
    seen = {statement(i) for i in named.values()}
    for p in proofs:
        for step in p.steps:
            for fact in (*p.facts(step), p.fact(step.name)):
                key = f"{p.name}: {fact.key}"
                if str(fact.relation) in seen or not _pathwise(fact.relation):
                    continue
                if fact.scope == "walk's first":
                    continue  # no step walked: 0 <= 0
                seen.add(str(fact.relation))
                # A later walk is one of a later step: at the first there is none.
                found[key] = Fact(fact.key, key, fact.relation, fact.scope.removeprefix("walk's "))
    return tuple(found.values())


def _pathwise(relation: Relation) -> bool:
    if relation.vectors:
        return False
    names = free_names(relation.left, relation.right)
    return bool(names) and not any(n.startswith((PREFIX, "mean_")) or n in OF_THE_RUN for n in names)


@functools.cache
def latex_relation(relation: Relation | Inequality) -> str:
    """The relation with the symbols of the table of quantities."""
    sense = "=" if isinstance(relation, Relation) and relation.sense == "==" else r"\le"
    return f"{latex_of(relation.left)} {sense} {latex_of(relation.right)}"


@functools.cache
def balanced(relation: Relation | Inequality) -> tuple[sp.Expr, sp.Expr]:
    """(left, right) with what is won moved to the left: summands that can be negative or have a minus sign."""
    left, right = sp.S.Zero, sp.S.Zero
    for term in sp.Add.make_args(relation.left):
        if _minus(term) and not _signed(term):
            right -= term
        else:
            left += term
    for term in sp.Add.make_args(relation.right):
        if _minus(term) or _signed(term):
            left -= term
        else:
            right += term
    return left, right


def _minus(term: sp.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _signed(term: sp.Expr) -> bool:
    return any(get_quantity(str(s)).domain.low < 0 for s in term.free_symbols)


@dataclass(frozen=True)
class Used:
    """A fact along a run. utilisation: of an inequality at each step that it speaks of, 0 where nothing is on either
    side; errors: of an equality; violations: steps at which it does not hold beyond round-off."""

    fact: Fact
    steps: np.ndarray
    utilisation: np.ndarray
    violations: int
    equality: bool

    def summary(self, exact: bool, series: bool = False) -> dict[str, Any]:
        """JSON-ready; exact: whether L is that of the problem."""
        u = self.utilisation
        worst = int(self.steps[u.argmax()]) if u.size > 1 else None
        relation = self.fact.relation
        kind = kind_of(relation, exact)
        out: dict[str, Any] = {
            "name": self.fact.name,
            "place": self.fact.place,
            "statement": statement(relation),
            "latex": latex_relation(relation),
            "kind": kind,
            "evidence": is_evidence(relation, kind),
            "steps": int(u.size),
            "violations": self.violations,
            "worst_step": worst,
        }
        out |= {"min": float(u.min()), "median": float(np.median(u)), "max": float(u.max())}
        return out | ({"at": self.steps.tolist(), "utilisation": u.tolist()} if series else {})


def use(fact: Fact, values: Mapping[str, Any], scales: Scales) -> Used | None:
    """The fact on a run's quantities (arrays over steps, NaN where a step has none). None where one is not recorded."""
    relation = fact.relation
    names = free_names(relation.left, relation.right)
    if not set(names) <= set(values):
        return None
    k = np.atleast_1d(np.asarray(values["k"], dtype=float))
    of_steps = any(np.ndim(values[name]) for name in names)
    arrays = {name: np.atleast_1d(np.asarray(values[name], dtype=float)) for name in names}
    if fact.scope == "first" and k[0] > 0:
        return None  # k = 0, where the virtual iterate does not begin
    there = np.ones(k.shape if of_steps else 1, dtype=bool)
    if of_steps and fact.scope != "every":
        there = k > k[0] if fact.scope == "later" else k == k[0]
    for array in arrays.values():
        there = there & np.isfinite(array)
    steps = k[there] if of_steps else k[:1]
    arrays = {name: np.broadcast_to(a, there.shape)[there] for name, a in arrays.items()}
    if not there.any():
        return None
    equality = isinstance(relation, Relation) and relation.sense == "=="
    left, right = (relation.left, relation.right) if equality else balanced(relation)
    owner = f"budget, {fact.place}"
    checked = checked_values(names, _admitted(arrays), owner)
    L, R = (np.broadcast_to(evaluate_expression(side, checked, owner), steps.shape) for side in (left, right))
    slack = _slack(relation, scales, values)
    if equality:
        size = np.maximum(np.abs(L), np.abs(R))
        error = np.maximum(np.abs(L - R) - slack, 0.0) / np.where(size > 0, size, 1.0)
        return Used(fact, steps, error, int((error > 1e-9).sum()), True)
    L = L - np.sign(L) * np.minimum(np.abs(L), slack)
    out = np.full(L.shape, math.inf)
    np.divide(L, R, out=out, where=R > 0)
    out = np.where((R <= 0) & (L <= R), 0.0, out)
    return Used(fact, steps, out, int((out > 1 + ROUND_OFF).sum()), False)


def _admitted(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whole numbers as such; a norm of 0 - round-off does not occur."""
    return {n: np.round(a) if get_quantity(n).domain.integer else a for n, a in arrays.items()}


def _slack(relation: Relation | Inequality, scales: Scales, values: Mapping[str, Any]) -> float:
    units = {get_quantity(str(s)).unit for s in relation.left.free_symbols if str(s) not in ("alpha", "eta", "tau")}
    if {str(s) for s in relation.right.free_symbols} & {"f_first", "f_last"}:
        return scales.slack("f/x") + scales.slack("f") / (scales.eta * float(values["K"]))
    return max((scales.slack(unit) for unit in units), default=0.0)
