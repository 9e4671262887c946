"""The axioms' schemas and the definitions that proofs about LMO methods use."""

from __future__ import annotations

from sympy import Expr, Integer, Min, sqrt

from theory.axioms import define, schema, under
from theory.errors import InputError
from theory.lmo.momentum_error import delay_sum
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols
from theory.vectors import get_vector, inner_name, norm_name, vectors

alpha, eta, tau, k, L, sigma, rho = symbols("alpha eta tau k L sigma rho")
f_now, f_next, f_star, f_first, f_last = symbols("f_now f_next f_star f_first f_last")


def _norm(name: str) -> Expr:
    return symbols(norm_name(name))[0]


def _inner(first: str, second: str) -> Expr:
    return symbols(inner_name(first, second))[0]


@schema("duality")
def duality(vector: str, direction: str) -> Relation:
    """<v, d> <= dualnorm(v) norm(d)."""
    return le(_inner(vector, direction), _norm(vector) * _norm(direction))


@schema("duality")
def duality_on_segment() -> Relation:
    """<v, z_{k+1} - z_k> <= dualnorm(v) norm(z_{k+1} - z_k), v the gradient's change up to place t."""
    inner, dual, step = symbols("segment_inner segment_dual step_norm")
    return le(inner, dual * step)


@schema("smoothness")
def smoothness(difference: str) -> Relation:
    """dualnorm(grad f(x) - grad f(y)) <= L norm(x - y), for a difference of gradients in the table of vectors."""
    shift = get_vector(difference).shift
    if shift is None:
        raise InputError(f"vector {difference}: is no difference of two gradients; smoothness says nothing of it")
    return le(_norm(difference), L * _norm(shift))


@schema("smoothness")
def smoothness_on_segment() -> Relation:
    """The points at place t and 0 of the segment are t norm(z_{k+1} - z_k) apart."""
    t, dual, step = symbols("t segment_dual step_norm")
    return le(dual, L * t * step)


@schema("calculus", place="undecayed")
def objective_along_step() -> Relation:
    """f(z_{k+1}) - f(z_k) = <grad f(z_k), -eta d_k> + integral of what the gradient changes by."""
    return eq(f_next - f_now, -eta * _inner("grad", "direction") + symbols("segment_mean")[0])


@schema("lmo")
def lmo_norm() -> Relation:
    """norm(d_k) <= 1."""
    return le(_norm("direction"), Integer(1))


@schema("lmo")
def lmo_value() -> Relation:
    """<m_{k+1}, d_k> = dualnorm(m_{k+1})."""
    return eq(_inner("momentum", "direction"), _norm("momentum"))


@schema("lower-bound")
def lower_bound() -> Relation:
    """The last objective is at least f_*."""
    return ge(f_last, f_star)


@schema("fixed-delay", place="x")
def fixed_delay() -> Relation:
    """The gradient was taken min(k, tau) steps ago."""
    return eq(symbols("age")[0], Min(k, tau))


@schema("fixed-delay", "first", "x")
def first_gradient() -> Relation:
    """x_{(0-tau)+} = x_0: the first gradient has no delay."""
    return eq(*vectors("grad_taken grad"))


@schema("fixed-delay", "later", "x")
def taken_one_step_on() -> Relation:
    """Where the gradient is taken moves by an old step, or not at all while k <= tau."""
    return le(*symbols("taken_step_norm stale_step_norm"))


@schema("norm-ratio")
def norm_ratio() -> Relation:
    """dualnorm(nu_k) <= rho ||nu_k||_F."""
    return le(_norm("noise"), rho * symbols("noise_frobenius")[0])


@schema("jensen")
def jensen_for_noise() -> Relation:
    """(E ||nu_k||_F)^2 <= E ||nu_k||_F^2."""
    mean, square = symbols("E_noise_frobenius E_noise_square")
    return le(mean**2, square)


@schema("jensen")
def jensen_over_run() -> Relation:
    """The squared average of the roots is at most the average of what is under them."""
    root, growth = symbols("mean_noise_growth_root mean_noise_growth")
    return le(root**2, growth)


@schema("independent-batch", "later")
def past_is_known() -> Relation:
    """nu_{k-1} is a function of the past: E <nu_{k-1}, n_k> = E <nu_{k-1}, mean of n_k given the past>."""
    return eq(*symbols("E_inner_noise E_inner_noise_mean"))


@schema("unbiased", "later")
def mean_of_a_sample() -> Relation:
    """The mean of n_k given the past is 0, and so is its inner product with anything of the past."""
    return eq(symbols("E_inner_noise_mean")[0], Integer(0))


@schema("variance")
def variance() -> Relation:
    """E ||n_k||_F^2 <= sigma^2."""
    return le(symbols("E_sample_square")[0], sigma**2)


define(
    "step",
    "the method: z_{k+1} = z_k - eta d_k",
    eq(vectors("step")[0], -eta * vectors("direction")[0]),
    place="x undecayed",
)
define("error", "e_k = m_{k+1} - grad f(z_k)", eq(vectors("error")[0], vectors("momentum")[0] - vectors("grad")[0]))
define(
    "walk",
    "j steps are j - 1 steps and one",
    eq(vectors("walk")[0], vectors("walk_before")[0] + vectors("step")[0]),
    "walk's later",
)
define("walk of no step", "z_i - z_i = 0", eq(vectors("walk")[0], Integer(0)), "walk's first")

_m, _m_before, _g, _g_before, _taken = vectors("momentum momentum_before grad grad_before grad_taken")
_e, _e_before, _n, _nu, _nu_before = vectors("error error_before sample noise noise_before")
_w, _w_before = vectors("lag lag_before")
define(
    "momentum",
    "the method: m_{k+1} = (1-alpha) m_k + alpha (grad f(x_{(k-tau)+}) + n_k)",
    eq(_m, (1 - alpha) * _m_before + alpha * (_taken + _n)),
)
define("error before", "e_{k-1} = m_k - grad f(z_{k-1})", eq(_e_before, _m_before - _g_before), "later")
define("noise", "nu_k = (1-alpha) nu_{k-1} + alpha n_k", eq(_nu, (1 - alpha) * _nu_before + alpha * _n), "later")
define("first noise", "nu_0 = alpha n_0", eq(_nu, alpha * _n), "first")
define("lag", "w_k = e_k - nu_k", eq(_w, _e - _nu))
define("lag before", "w_{k-1} = e_{k-1} - nu_{k-1}", eq(_w_before, _e_before - _nu_before), "later")
define("change", "change of the gradient over step k - 1", eq(vectors("change")[0], _g_before - _g), "later")
define("bias", "bias of the delay", eq(vectors("bias")[0], _taken - _g))
define("start", "error of the first momentum", eq(vectors("start")[0], _m_before - _g), "first", "x")
define(
    "initial gap",
    "Delta0 = f(x_0) - f_*",
    eq(symbols("Delta0")[0], symbols("E_f_first")[0] - f_star),
    place="x",
)
under("lower-bound", "definition initial gap")  # Delta0 is not negative

_s, _s_before = vectors("shifted_error shifted_error_before")
define("shifted error", "e'_k = m_{k+1} - grad f(x_{(k-tau)+})", eq(_s, _m - _taken))
define(
    "shifted error before",
    "e'_{k-1} = m_k - grad f(x_{(k-1-tau)+})",
    eq(_s_before, _m_before - vectors("taken_before")[0]),
    "later",
)
define("shifted lag", "w'_k = e'_k - nu_k", eq(vectors("shifted_lag")[0], _s - _nu))
define(
    "shifted lag before",
    "w'_{k-1} = e'_{k-1} - nu_{k-1}",
    eq(vectors("shifted_lag_before")[0], _s_before - _nu_before),
    "later",
)
define(
    "taken change",
    "change of the gradient where it is taken",
    eq(vectors("taken_change")[0], vectors("taken_before")[0] - _taken),
    "later",
)

_growth, _root, _age = symbols("noise_growth noise_growth_root delay_age")
define("noise growth", "1 - (1-alpha)^{2k+2}", eq(_growth, 1 - (1 - alpha) ** (2 * k + 2)))
define("root of noise growth", "its root", eq(_root, sqrt(_growth)))
define("delay age", "alpha sum_{i=1..k} (1-alpha)^{k-i} min(i, tau) in closed form (Lemma C)", eq(_age, delay_sum(k)))
