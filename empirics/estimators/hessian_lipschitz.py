"""How fast the Hessian changes along the path, in the run's norm: the constant M of
dual((H(y) - H(x)) v) <= M norm(y - x) norm(v).

Two lower bounds of M from one step x -> y, s = y - x, exact where gradients and products are:
    change     dual(H(y) s - H(x) s) / norm(s)^2                            two products
    remainder  2 dual(grad f(y) - grad f(x) - H(x) s) / norm(s)^2           one product, two gradients
Both are 0 on a quadratic, and both tend to dual(D^3 f(x)[s, s])/norm(s)^2 for short steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from empirics.constants import Constant, not_applicable
from empirics.estimators.model_norm import AnyNorm
from empirics.estimators.smoothness import step_length
from empirics.estimators.weights import Weights, combine, minus
from empirics.problems.interface import Problem


@dataclass(frozen=True)
class HessianChange:
    """Of one step; floor: what round-off alone could make of either, so a smaller value says nothing."""

    change: float
    remainder: float
    floor: float


def hessian_change(problem: Problem, norm: AnyNorm, x: Weights, y: Weights) -> HessianChange | None:
    """None where x and y are the same up to round-off. Costs three products' worth of passes."""
    s, size = minus(y, x), step_length(norm, x, y)
    if size is None:
        return None
    at_x, at_y = problem.hessian_product(x, s), problem.hessian_product(y, s)
    _, gx = problem.value_and_gradient(x)
    _, gy = problem.value_and_gradient(y)
    remainder = norm.dual(combine([(1.0, gy), (-1.0, gx), (-1.0, at_x)]))
    round_off = max(torch.finfo(v.dtype).eps for v in x.values())
    floor = 16 * round_off * max(norm.dual(gx), norm.dual(at_x)) / size**2
    return HessianChange(norm.dual(minus(at_y, at_x)) / size**2, 2 * remainder / size**2, floor)


def along_path(problem: Problem, norm: AnyNorm, points: Sequence[Weights]) -> Constant:
    """M from consecutive points: the largest change, a lower bound."""
    steps = list(zip(points, points[1:], strict=False))
    found = [c for x, y in steps if (c := hessian_change(problem, norm, x, y)) is not None]
    if not found:
        return not_applicable("hessian_lipschitz", f"no two different consecutive points among {len(points)}", n=0)
    clear = [max(c.change, c.remainder) for c in found if max(c.change, c.remainder) > c.floor]
    value = max(clear, default=0.0)
    floor = max(c.floor for c in found)
    note = f"lower bound; round-off alone could make {floor:.1g}" + ("" if clear else ", so 0 is not excluded")
    name, where = "hessian_lipschitz", "along the path"
    return Constant(name, value, "estimated", where, value, math.inf, None, "products", len(found), note)
