"""The axioms' schemas and definitions of delayed gradient descent with its start and its last iterate counted."""

from __future__ import annotations

from functools import partial

from sympy import Min

import theory.pipedream.axioms  # noqa: F401  (one step, windows)
from theory.axioms import define, schema, under
from theory.euclidean.delayed_gd import FINITE_WEIGHT
from theory.pipedream.parts import K, L
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols as _q
from theory.vectors import CONSTANT, INSTANCE_OF, INSTANCE_PLACE, INSTANCES

_define = partial(define, place="x")
k, tau, least = _q("k tau least_square")
CONSTANT.append("least_square")  # a number of the whole run
INSTANCES["the only block"] = (
    "every",
    {
        "block_apart_square": "apart_square",
        "block_window_excess": "window_excess",
        "length_square": "length_square",
    },
)
INSTANCES["the last iterate"] = ("every", {"E_f_now": "E_f_end"})
for _name in ("the only block", "the last iterate"):
    INSTANCE_OF[_name], INSTANCE_PLACE[_name] = "delayed-gd", "x"

_define("squared length", "min(k, tau)^2", eq(_q("length_square")[0], Min(k, tau) ** 2))
_define("finite weight", "the denominator of delayed-gd-finite", eq(_q("finite_weight")[0], FINITE_WEIGHT))


@schema("delayed-gd")
def up_to_the_last_iterate() -> Relation:
    """K - 1 steps lead from x_0 to x_{K-1}."""
    return eq(_q("steps")[0], K - 1)


@schema("delayed-gd")
def length_of_a_window() -> Relation:
    """The window of step k holds no more than min(k, tau) steps."""
    return le(_q("j")[0], Min(k, tau))


@schema("delayed-gd")
def least_of_an_iterate() -> Relation:
    """The smallest square of a run is at most that of each iterate."""
    return le(least, _q("E_grad_square")[0])


@schema("delayed-gd")
def excess_of_an_update() -> Relation:
    """Every update is the gradient at an iterate: its square is the smallest and what is above it."""
    square, excess = _q("E_update_square E_update_excess")
    return eq(square, least + excess)


@schema("delayed-gd")
def excess_of_a_window() -> Relation:
    """The same, added up over the j updates of a window."""
    squares, excess = _q("block_window_squares block_window_excess")
    return eq(squares, _q("j")[0] * least + excess)


@schema("double-sum")
def overlap_of_the_excess() -> Relation:
    """Windows of at most tau steps, one after each step: every step is in at most tau of them."""
    together, one = _q("total_window_excess total_update_excess")
    return le(together, tau * one)


@schema("smoothness")
def gradient_by_the_infimum() -> Relation:
    """A step -grad f(x)/L lowers f by |grad f(x)|^2/(2 L) at least: |grad f(x)|^2 <= 2 L (f(x) - inf f)."""
    grad, now, infimum = _q("E_grad_square E_f_now f_infimum")
    return le(grad, 2 * L * (now - infimum))


@schema("lower-bound")
def infimum_above() -> Relation:
    """inf f >= f_*."""
    return ge(*_q("f_infimum f_star"))


under("delayed-gd", "overlap_of_the_excess")
under("euclidean", "gradient_by_the_infimum")
