"""Error feedback without momentum: strictly worse than no correction, in one dimension. Kind: exact instance.

Sign descent, alpha = 1, no noise, f = L x^2/2 (so for every norm, theory.tightness.one_dimension), started at an offset
that makes no gradient zero. Average of |f'(x_k)| over a period, in units of L eta:
    tau                       1      2      3
    no correction            5/6   13/10  25/14      from every start, and the worst over all f
    extrapolate              3/2    5/2    7/2       = tau + 1/2, period 2 tau + 2
    telescoped               3/2    5/2   33/10
Both rows of the correction are the largest over all f for which an orbit of width below 4 tau + 6 exists (enumerated as
in theory.tightness). So the correction raises the worst case by 9/5 at tau = 1. Why: without momentum a turn of the
gradient is a jump of the update by 2 eta, and y_k - x_{k-1} is eta (d_{k-2} - d_{k-1}).
Checked by tests/theory/feedback/test_worst_case.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from theory.errors import InputError
from theory.feedback.linear import FORMS
from theory.tightness.lattice import check_natural
from theory.tightness.one_dimension import WorstCase, worst_case

NO_CORRECTION = "none"


@dataclass(frozen=True)
class Run:
    """x_0, ..., x_steps; y_k likewise (x_k without correction); updates U_0, ..., U_{steps-1}. Units eta = L = 1."""

    x: tuple[Fraction, ...]
    y: tuple[Fraction, ...]
    updates: tuple[int, ...]


def form_numbers(form: str, tau: int) -> tuple[int, int]:
    """(c, lag) of a form; (0, 1) for `none`. Raises InputError for another form."""
    check_natural("tau", tau, 1)
    if form not in (NO_CORRECTION, *FORMS):
        raise InputError(f"form={form!r} is not one of {NO_CORRECTION}, {', '.join(FORMS)}")
    return {NO_CORRECTION: (0, 1), "extrapolate": (tau, 1), "telescoped": (1, tau)}[form]


def quadratic_run(form: str, tau: int, start: Fraction, steps: int) -> Run:
    """Sign descent with delay on x^2/2, exact. A zero gradient counts as positive."""
    c, lag = form_numbers(form, tau)
    check_natural("steps", steps, 1)
    x, updates = [Fraction(start)], list[int]()
    for k in range(steps):
        updates.append(-1 if x[max(k - tau, 0)] >= 0 else 1)
        x.append(x[k] + updates[k] + c * (updates[k] - updates[max(k - lag, 0)]))
    y = [x[k] - c * sum(updates[max(k - j, 0)] for j in range(1, lag + 1)) for k in range(steps + 1)]
    return Run(tuple(x), tuple(y), tuple(updates))


def worst(form: str, tau: int) -> WorstCase:
    """The largest average of |f'(x_k)| over all f and all orbits of width below 4 tau + 6."""
    c, lag = form_numbers(form, tau)
    return worst_case(tau, 4 * tau + 6, c, lag)
