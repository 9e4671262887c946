"""Nesterov's direction in proofs: the vector c_k at which the oracle is called, its errors and its noise.

c_k is a vector of its own: that it is (1-alpha) m_{k+1} + alpha g_k is the axiom `nesterov`. What the oracle says of
m_{k+1} is refused where that is assumed.
"""

from __future__ import annotations

from functools import partial

from theory.axioms import define, schema, under
from theory.lmo.inexact_axioms import r_lo
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols
from theory.vectors import INNER, Vector, register, vectors

alpha, rho = symbols("alpha rho")
_define = partial(define, place="x")

_called = register(Vector("called", "c_k", "where the oracle is called", "called_norm")).symbol
_error = register(Vector("called_error", r"c_k - \nabla f(z_k)", "its error", "called_error_norm")).symbol
_noise = register(
    Vector("called_noise", "q_k", "its noise", "called_noise_norm", "called_noise_square")
).symbol
_lag = register(Vector("called_lag", r"c_k - \nabla f(z_k) - q_k", "error without noise", "called_lag_norm")).symbol
_shifted_error = register(
    Vector(
        "called_shifted_error",
        r"c_k - \nabla f(x_{(k-\tau)_+})",
        "error against the gradient where it was taken",
        "called_shifted_error_norm",
    )
).symbol
_shifted_lag = register(
    Vector(
        "called_shifted_lag",
        r"c_k - \nabla f(x_{(k-\tau)_+}) - q_k",
        "that without noise",
        "called_shifted_lag_norm",
    )
).symbol
_reference_error = register(
    Vector(
        "called_reference_error",
        r"c_k - \nabla f(x_{(k-s)_+})",
        "error against the gradient s steps back",
        "called_reference_error_norm",
    )
).symbol
_reference_lag = register(
    Vector(
        "called_reference_lag",
        r"c_k - \nabla f(x_{(k-s)_+}) - q_k",
        "that without noise",
        "called_reference_lag_norm",
    )
).symbol
INNER.update(
    {frozenset(("called", "direction")): "inner_called", frozenset(("called_error", "direction")): "inner_called_error"}
)


@schema("nesterov", place="x")
def nesterov() -> Relation:
    """c_k = (1-alpha) m_{k+1} + alpha (grad f(x_{(k-tau)+}) + n_k)."""
    momentum, taken, sample = vectors("momentum grad_taken sample")
    return eq(_called, (1 - alpha) * momentum + alpha * (taken + sample))


@schema("lmo", place="x")
def lmo_value_where_called() -> Relation:
    """<c_k, d_k> = dualnorm(c_k)."""
    return eq(*symbols("inner_called called_norm"))


@schema("inexact-lmo", place="x")
def inexact_value_where_called() -> Relation:
    """<c_k, d_k> >= r_lo dualnorm(c_k)."""
    inner, norm = symbols("inner_called called_norm")
    return ge(inner, r_lo * norm)


@schema("norm-ratio", place="x")
def norm_ratio_of_called_noise() -> Relation:
    """dualnorm(q_k) <= rho ||q_k||_F."""
    norm, frobenius = symbols("called_noise_norm called_noise_frobenius")
    return le(norm, rho * frobenius)


@schema("jensen", place="x")
def jensen_for_called_noise() -> Relation:
    """(E ||q_k||_F)^2 <= E ||q_k||_F^2."""
    mean, square = symbols("E_called_noise_frobenius E_called_noise_square")
    return le(mean**2, square)


_grad, _taken, _reference, _nu, _n = vectors("grad grad_taken grad_reference noise sample")
_define("called error", "c_k - grad f(x_k)", eq(_error, _called - _grad))
_define("called shifted error", "c_k - grad f(x_{(k-tau)+})", eq(_shifted_error, _called - _taken))
_define("called noise", "q_k = (1-alpha) nu_k + alpha n_k", eq(_noise, (1 - alpha) * _nu + alpha * _n))
_define("called lag", "c_k - grad f(x_k) - q_k", eq(_lag, _error - _noise))
_define("called shifted lag", "c_k - grad f(x_{(k-tau)+}) - q_k", eq(_shifted_lag, _shifted_error - _noise))
_define("called reference error", "c_k - grad f(x_{(k-s)+})", eq(_reference_error, _called - _reference))
_define("called reference lag", "c_k - grad f(x_{(k-s)+}) - q_k", eq(_reference_lag, _reference_error - _noise))
under("nesterov", "lmo_value_where_called", "inexact_value_where_called")
