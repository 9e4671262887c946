"""Schemas and definitions of error feedback, for steps k >= 1; its first step is the one at y_1."""

from __future__ import annotations

from functools import partial

from sympy import Integer

from theory.axioms import define, schema, under
from theory.relation import Relation, eq, le
from theory.symbols import symbols
from theory.vectors import vectors

alpha, eta, tau = symbols("alpha eta tau")
extra, delta, gap_norm = symbols("extra delta gap_norm")
FIRST = "first at y"
_define = partial(define, place="y")


@schema("error-feedback")
def error_feedback() -> Relation:
    """x_{k+1} = x_k + U_k + c (U_k - U_{k-lag}), and c (U_k - U_{k-lag}) = C_{k+1} - C_k in both forms, k >= 1."""
    x_step, direction, correction = vectors("x_step direction correction")
    return eq(x_step, -eta * direction + correction)


@schema("error-feedback", FIRST)
def first_virtual_iterate() -> Relation:
    """y_1 = x_0 - (tau-1) U_0, U_0 = -eta d_0."""
    start_gap, first_direction = vectors("start_gap first_direction")
    return eq(start_gap, -extra * eta * first_direction)


@schema("error-feedback")
def delay_beyond_one() -> Relation:
    """tau >= 1."""
    return eq(extra, tau - 1)


@schema("error-feedback")
def back_to_the_weights() -> Relation:
    """x_k - y_k = tau U_{k-1} (at tau = 1, where both forms are one; of extrapolate at any tau)."""
    return_gap, before = vectors("return_gap direction_before")
    return eq(return_gap, -tau * eta * before)


@schema("lmo", FIRST, "y")
def lmo_norm_at_zero() -> Relation:
    """norm(d_0) <= 1."""
    return le(symbols("first_direction_norm")[0], Integer(1))


@schema("fixed-delay", FIRST, "y")
def momentum_of_the_first_gradient() -> Relation:
    """m_1 = (1-alpha) m_0 + alpha (grad f(x_0) + n_0): the first gradient is taken at x_0."""
    before, zero, grad, sample = vectors("momentum_before momentum_zero grad_zero sample_zero")
    return eq(before, (1 - alpha) * zero + alpha * (grad + sample))


@schema("fixed-delay", FIRST, "y")
def second_gradient_at_x_0() -> Relation:
    """x_{(1-tau)+} = x_0, as tau >= 1."""
    return eq(*vectors("grad_taken grad_zero"))


@schema("delay-one")
def delay_one() -> Relation:
    """tau = 1."""
    return eq(tau, Integer(1))


@schema("delay-one")
def start_at_x() -> Relation:
    """y_1 = x_0, so the initial gap at y is the one at x."""
    return eq(*symbols("Delta1 Delta0"))


_noise, _noise_before, _sample, _zero = vectors("noise noise_before sample sample_zero")
_step, _x_step, _correction = vectors("step x_step correction")
_define("virtual step", "y_{k+1} - y_k, y_k = x_k - C_k", eq(_step, _x_step - _correction))
_define("drift", "delta_k = norm(y_k - x_{(k-tau)+})/eta", eq(delta, gap_norm / eta))
_define(
    "noise of step 1",
    "nu_1 = (1-alpha) nu_0 + alpha n_1",
    eq(_noise, (1 - alpha) * _noise_before + alpha * _sample),
    FIRST,
)
_define("noise of step 0", "nu_0 = alpha n_0", eq(_noise_before, alpha * _zero), FIRST)
_define(
    "start at x_0",
    "error of the first momentum",
    eq(vectors("start_zero")[0], vectors("momentum_zero")[0] - vectors("grad_zero")[0]),
    FIRST,
)
_define(
    "start change",
    "change of the gradient from y_1 to x_0",
    eq(vectors("start_change")[0], vectors("grad_zero")[0] - vectors("grad")[0]),
    FIRST,
)
_define(
    "return change",
    "change of the gradient from y_k to x_k",
    eq(vectors("return_change")[0], vectors("grad_at_x")[0] - vectors("grad")[0]),
)
_define(
    "return before",
    "change of the gradient from y_{k-1} to x_{(k-tau)+}",
    eq(vectors("return_before")[0], vectors("grad_taken")[0] - vectors("grad_before")[0]),
    "later",
)
_weighted, _weighted_before = symbols("delta_mean_weighted delta_mean_weighted_before")
_define(
    "weighted drift",
    "alpha sum_{i=1..k} (1-alpha)^{k-i} delta_i, step by step",
    eq(_weighted, (1 - alpha) * _weighted_before + alpha * delta),
)
_define("no drift at the start", "the sum is empty before it", eq(symbols("E_weighted_start")[0], Integer(0)))
_define(
    "initial gap at y",
    "Delta1 = f(y_1) - f_*",
    eq(symbols("Delta1")[0], symbols("E_f_first")[0] - symbols("f_star")[0]),
)
under("delay-one", "back_to_the_weights")  # telescoped, tau updates come back
under("lower-bound", "definition initial gap at y")
