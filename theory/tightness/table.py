"""Upper and lower bounds on the delay constant, side by side.

The constant of a norm and a metric: the largest limit, K -> oo at fixed Delta0, of the metric divided by L eta, over
all L-smooth f that are bounded below, without noise and at alpha = 1. Upper: the terms step and delay of the theorem
for that metric, K -> oo. Lower: an orbit of this package, evaluated when the table is made. Metrics: the average of
dn(grad f) at x_k, the average at x_{(k-tau)+}, the minimum over k. A minimum is at most the average.
Checked by tests/theory/tightness/test_table.py, which also compares docs/tightness.md with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import sympy as sp

from theory.errors import InputError
from theory.lmo import at_iterate, delayed, shifted
from theory.lmo.parts import K, L, alpha, eta
from theory.lmo.parts import tau as TAU
from theory.tightness import circle
from theory.tightness.coordinate_orbit import coordinate_orbit
from theory.tightness.lattice import check_natural
from theory.tightness.one_dimension import quadratic_run
from theory.tightness.periodic import PeriodicOrbit
from theory.tightness.sign_orbit import sign_orbit

METRICS = ("average at x_k", "average at x_{(k-tau)+}", "minimum over k")
NORMS = {
    "any": "every norm (one dimension)",
    "l_1": "l_1, dual l_inf: coordinate descent",
    "sign": "l_inf, dual l_1: sign descent",
    "l_2": "l_2: normalised SGD",
    "operator": "operator norm, dual nuclear: Muon",
}
DELAYS = range(5)


@dataclass(frozen=True)
class Row:
    """norm: key of NORMS; metric: of METRICS; lower <= constant <= upper, in units of L eta, exact.

    witness: whose orbit gives the lower bound; theorem_1: what Theorem 1 itself gives, or None for another metric.
    """

    norm: str
    tau: int
    metric: str
    lower: sp.Expr
    upper: sp.Expr
    witness: str
    theorem_1: sp.Expr | None

    @property
    def ratio(self) -> float:
        """lower / upper; 1 where the theorem's constant is sharp."""
        return float(self.lower / self.upper)


@cache
def _limit(expression: sp.Expr, tau: int) -> sp.Expr:
    at_one = sp.expand(expression.subs({L: 1, eta: 1, alpha: 1, TAU: tau}))
    return sp.Add(*(term for term in sp.Add.make_args(at_one) if not term.has(K)))  # what is left is O(1/K)


def upper(metric: str, tau: int) -> sp.Expr:
    """The theorem's constant. Raises InputError for an unknown metric or a bad tau."""
    check_natural("tau", tau)
    if metric not in METRICS:
        raise InputError(f"metric={metric!r} is not one of {', '.join(METRICS)}")
    bound = shifted.BOUND if metric == METRICS[1] else at_iterate.BOUND
    return _limit(bound.terms["step"] + bound.terms["delay"], tau)


def lower(norm: str, metric: str, tau: int) -> tuple[sp.Expr, str]:
    """(constant that an orbit attains, its name). Raises InputError for an unknown norm or metric or a bad tau."""
    check_natural("tau", tau)
    if norm not in NORMS or metric not in METRICS:
        allowed = f"{', '.join(NORMS)}; {', '.join(METRICS)}"
        raise InputError(f"norm={norm!r}, metric={metric!r} is not one of {allowed}")
    minimum = metric == METRICS[2]
    found = [(_one_dimension(tau, minimum), "one dimension")]
    if norm == "l_1":
        found.append((_over_period(_norms(coordinate_orbit, tau), minimum), "coordinate orbit"))
    if norm in ("sign", "operator") and tau:
        found.append((_over_period(_norms(sign_orbit, tau), minimum), "sign orbit"))
    if norm in ("l_2", "operator"):
        found.append((circle.RADIUS.subs(circle.tau, tau), "circle"))
    return max(found, key=lambda item: float(item[0]))


@cache
def _norms(orbit: Callable[[int], PeriodicOrbit], tau: int) -> tuple[Fraction, ...]:
    return tuple(orbit(tau).gradient_norms())


@cache
def _one_dimension(tau: int, minimum: bool) -> sp.Expr:
    period = quadratic_run(tau, 4 * tau + 1)  # x_0, ..., x_{4 tau + 1}
    return _over_period([abs(x) for x in period], minimum)


def _over_period(norms: Sequence[Fraction], minimum: bool) -> sp.Expr:
    value = min(norms) if minimum else sum(norms, Fraction(0)) / len(norms)
    return sp.Rational(value.numerator, value.denominator)


def table() -> list[Row]:
    """All rows: norms x metrics x tau = 0..4."""
    rows = []
    for norm in NORMS:
        for metric in METRICS:
            for tau in DELAYS:
                value, witness = lower(norm, metric, tau)
                first = _limit(delayed.BOUND.terms["step"] + delayed.BOUND.terms["delay"], tau)
                rows.append(
                    Row(norm, tau, metric, value, upper(metric, tau), witness, first if metric == METRICS[0] else None)
                )
    return rows


def markdown() -> str:
    """The table as Markdown: lower bound and its share of the upper bound for each delay."""
    head = "| norm | metric | " + " | ".join(f"tau = {tau}" for tau in DELAYS) + " |"
    lines = [head, "|" + "---|" * (2 + len(DELAYS))]
    uppers = " | ".join(f"{float(upper(METRICS[0], tau)):.1f}" for tau in DELAYS)
    lines.append(f"| upper bound, all norms | all | {uppers} |")
    rows = {(row.norm, row.metric, row.tau): row for row in table()}
    for norm, text in NORMS.items():
        for metrics, name in (((METRICS[0], METRICS[1]), "average"), ((METRICS[2],), "minimum")):
            cells = []
            for tau in DELAYS:
                row = min((rows[norm, metric, tau] for metric in metrics), key=lambda r: float(r.lower))
                cells.append(f"{float(row.lower):.4f} ({row.ratio:.3f})")
            lines.append(f"| {text} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
