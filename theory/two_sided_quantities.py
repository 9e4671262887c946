"""The quantities that only the proof of delayed-gd-two-sided needs: the gradients at x_k, x_{k+1} and z_k together."""

from __future__ import annotations

from theory.quantity import NONNEGATIVE, REAL, Quantity

_SQUARE = "(f/x)^2"


def _square(name: str, latex: str, meaning: str) -> Quantity:
    return Quantity(name, latex, _SQUARE, NONNEGATIVE, meaning, "trajectory")


def _inner(name: str, latex: str, meaning: str, unit: str = _SQUARE) -> Quantity:
    return Quantity(name, latex, unit, REAL, meaning)


RANDOM_TWO_SIDED = [
    _square("next_grad_square", r"\|\nabla f(x_{k+1})\|^2", "squared gradient at the next iterate"),
    _square("next_change_square", r"\|\nabla f(x_{k+1}) - \nabla f(x_k)\|^2", "squared change of the gradient"),
    _square("next_apart_square", r"\|\nabla f(x_{k+1}) - \nabla f(z_k)\|^2", "next gradient minus the old one"),
    _inner(
        "inner_changes",
        r"\langle \nabla f(x_k) - \nabla f(z_k), \nabla f(x_{k+1}) - \nabla f(x_k) \rangle",
        "old change along the new one",
    ),
    _inner("inner_next_taken", r"\langle \nabla f(x_{k+1}), \nabla f(z_k) \rangle", "next gradient along the old one"),
    _inner("inner_next_update", r"\langle \nabla f(x_{k+1}), G_k \rangle", "next gradient along the update"),
    _inner("inner_grad_move", r"\langle \nabla f(x_k), x_{k+1} - x_k \rangle", "gradient at x_k along the step", "f"),
    _inner("inner_next_move", r"\langle \nabla f(x_{k+1}), x_{k+1} - x_k \rangle", "next one along the step", "f"),
]
IN_TWO_SIDED_PROOF = [
    Quantity("relative_step", r"L \gamma", "1", NONNEGATIVE, "step size times smoothness"),
    Quantity("share", r"\max(1, L \gamma (1 + \tau))", "1", NONNEGATIVE, "sum of the two inequalities' multipliers"),
    Quantity("bend", r"1 + s/(s - L \gamma)", "1", NONNEGATIVE, "what ||grad f(x_k) - grad f(z_k)||^2 counts"),
    Quantity("two_sided_weight", "D_2", "1", REAL, "what the smallest square counts in L Delta0 (two-sided)"),
    _square("total_next_grad_square", r"\sum_{k<T} \|\nabla f(x_{k+1})\|^2", "sum of ||grad f(x_{k+1})||^2"),
    _square("total_change_square", r"\sum_{k<T} \|\nabla f(x_k) - \nabla f(z_k)\|^2", "sum of its square"),
]
