"""The axioms' schemas and definitions of delayed gradient descent with both inequalities of neighbouring iterates."""

from __future__ import annotations

from functools import partial

import theory.euclidean.axioms  # noqa: F401  (windows, the last iterate)
from theory.axioms import define, schema, under
from theory.euclidean.delayed_gd_two_sided import BEND, WEIGHT, s
from theory.pipedream.parts import L, gamma
from theory.relation import Relation, eq, le
from theory.symbols import symbols as _q
from theory.vectors import CONSTANT, INNER, Vector, register, vectors

_define = partial(define, place="x")
h, share, bend, weight = _q("relative_step share bend two_sided_weight")
CONSTANT += ["relative_step", "share", "bend"]

_grad, _taken, _change, _update, _move = vectors("sgd_grad sgd_taken sgd_change update move")
_next = register(Vector("next_grad", r"\nabla f(x_{k+1})", "gradient after the step", None, "next_grad_square")).symbol
_next_change = register(
    Vector("next_change", r"\nabla f(x_{k+1}) - \nabla f(x_k)", "change over the step", None, "next_change_square")
).symbol
_next_apart = register(
    Vector("next_apart", r"\nabla f(x_{k+1}) - \nabla f(z_k)", "minus the old one", None, "next_apart_square")
).symbol
INNER.update(
    {
        frozenset(pair): name
        for *pair, name in (
            ("sgd_change", "next_change", "inner_changes"),
            ("next_grad", "sgd_taken", "inner_next_taken"),
            ("update", "sgd_grad", "inner_update"),
            ("update", "next_grad", "inner_next_update"),
            ("move", "sgd_grad", "inner_grad_move"),
            ("move", "next_grad", "inner_next_move"),
        )
    }
)
_define("next apart", "next gradient minus the old one", eq(_next_apart, _next - _taken))
_define("next apart by way of the iterate", "two differences", eq(_next_apart, _change + _next_change))
_define("relative step", "L gamma", eq(h, L * gamma))
_define("share", "a + b, where a and b multiply the two inequalities and a - b = 1", eq(share, s))
_define("bend", "its formula", eq(bend, BEND))
_define("two-sided weight", "the denominator of delayed-gd-two-sided", eq(weight, WEIGHT))


def _sides() -> tuple[Relation, Relation]:
    now, following, along, next_along, change, move = _q(
        "f_now f_next inner_grad_move inner_next_move next_change_square move_square"
    )
    rest = change - L**2 * move
    return (
        le(rest - 2 * L * (along + next_along), 4 * L * (now - following)),
        le(rest + 2 * L * (along + next_along), 4 * L * (following - now)),
    )


@schema("smoothness")
def interpolation_forwards() -> Relation:
    """4 L (f(x) - f(y)) >= 2 L <grad f(x) + grad f(y), x - y> + |grad f(x) - grad f(y)|^2 - L^2 |x - y|^2, x = x_k.

    The interpolation inequality of smooth functions: f(u) is at most the quadratic above at x, at least the one below
    at y, u = (x + y)/2 - (grad f(x) - grad f(y))/(2 L).
    """
    return _sides()[0]


@schema("smoothness")
def interpolation_backwards() -> Relation:
    """The same with x = x_{k+1} and y = x_k."""
    return _sides()[1]


@schema("delayed-gd")
def exact_inner_next() -> Relation:
    """No noise: G_k is the gradient at z_k."""
    return eq(*_q("E_inner_next_update E_inner_next_taken"))


@schema("delayed-gd")
def least_of_the_next() -> Relation:
    """x_1, ..., x_{K-1} are iterates of the run, T = K - 1."""
    least, T, total = _q("least_square steps total_next_grad_square")
    return le(least * T, total)


@schema("euclidean")
def along_the_next_change() -> Relation:
    """<u, v>^2 <= |u|^2 |v|^2."""
    inner, change, following = _q("inner_changes change_square next_change_square")
    return le(inner**2, change * following)


under("euclidean", "interpolation_forwards", "interpolation_backwards")
