"""The axioms of weight decay and of star-convexity, at the iterate of a method with decay."""

from __future__ import annotations

from theory.axioms import schema
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols
from theory.vectors import (
    CONSTANT,
    INNER,
    INSTANCE_PLACE,
    INSTANCES,
    Vector,
    inner_name,
    norm_name,
    register,
    vectors,
)

eta, b, r = symbols("eta b r")
_iterate = register(Vector("iterate", "z_k", "the point itself", "iterate_norm")).symbol
_before = register(Vector("iterate_before", "z_{k-1}", "the point before", "iterate_norm_before")).symbol
register(Vector("minimiser", "x_*", "minimiser of the objective", "minimiser_norm"))
INNER.update(
    {
        frozenset(("grad", "step")): "inner_step",
        frozenset(("grad", "iterate")): "inner_iterate",
        frozenset(("grad", "minimiser")): "inner_grad_minimiser",
        frozenset(("momentum", "minimiser")): "inner_momentum_minimiser",
        frozenset(("error", "minimiser")): "inner_error_minimiser",
    }
)
INSTANCES["direction of the step before"] = ("later", {"direction_norm": "direction_norm_before"})
INSTANCE_PLACE["direction of the step before"] = "x decayed"
CONSTANT += [name for name in ("b", "r", "minimiser_norm") if name not in CONSTANT]


@schema("duality")
def duality_below(vector: str, direction: str) -> Relation:
    """<v, -d> <= dualnorm(v) norm(d)."""
    inner, dual, norm = symbols(f"{inner_name(vector, direction)} {norm_name(vector)} {norm_name(direction)}")
    return ge(inner, -dual * norm)


@schema("calculus")
def objective_along_any_step() -> Relation:
    """f(z_{k+1}) - f(z_k) = <grad f(z_k), z_{k+1} - z_k> + integral of what the gradient changes by."""
    f_now, f_next, inner, mean = symbols("f_now f_next inner_step segment_mean")
    return eq(f_next - f_now, inner + mean)


@schema("star-convex")
def star_convex() -> Relation:
    """f(z_k) - f_* <= <grad f(z_k), z_k - x_*>."""
    f_now, f_star, along, minimiser = symbols("f_now f_star inner_iterate inner_grad_minimiser")
    return le(f_now - f_star, along - minimiser)


@schema("weight-decay")
def decayed_step() -> Relation:
    """x_{k+1} - x_k = -b x_k - eta d_k."""
    step, direction = vectors("step direction")
    return eq(step, -b * _iterate - eta * direction)


@schema("weight-decay", "later")
def decayed_iterate() -> Relation:
    """x_k = (1-b) x_{k-1} - eta d_{k-1}."""
    return eq(_iterate, (1 - b) * _before - eta * vectors("direction_before")[0])


@schema("weight-decay", "first")
def start_in_the_ball() -> Relation:
    """norm(x_0) <= eta/b."""
    return le(symbols("iterate_norm")[0], eta / b)


@schema("weight-decay")
def minimiser_in_the_ball() -> Relation:
    """norm(x_*) = r eta/b; r is at most 1."""
    return eq(symbols("minimiser_norm")[0], r * eta / b)
