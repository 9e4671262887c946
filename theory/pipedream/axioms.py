"""The axioms' schemas that proofs about SGD with old gradients use: one step, and windows whatever they depend on."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (smoothness on a segment, the lower bound)
import theory.pipedream.axioms_of_windows
import theory.pipedream.vectors  # noqa: F401  (vectors and definitions)
from theory.axioms import schema, under
from theory.errors import InputError
from theory.pipedream.parts import B, G, L, S, delta_max, gamma, mu, sigma
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols as _q


@schema("euclidean")
def cauchy_schwarz_on_segment() -> Relation:
    """<v, x_{k+1} - x_k> <= |v| |x_{k+1} - x_k|, v the gradient's change up to place t."""
    inner, dual, step = _q("segment_inner segment_dual step_norm")
    return le(inner, dual * step)


@schema("inner-product")
def square_of_the_step() -> Relation:
    """|x_{k+1} - x_k|^2, its two names."""
    step, square = _q("step_norm move_square")
    return eq(step**2, square)


@schema("calculus")
def objective_along_update() -> Relation:
    """f(x_{k+1}) - f(x_k) = -gamma <grad f(x_k), G_k> + integral of what the gradient changes by."""
    f_now, f_next, inner, mean = _q("f_now f_next inner_update segment_mean")
    return eq(f_next - f_now, -gamma * inner + mean)


@schema("smoothness")
def smoothness_squared() -> Relation:
    """|grad f(x_k) - grad f(z_k)|^2 <= L^2 |x_k - z_k|^2."""
    change, apart = _q("change_square apart_square")
    return le(change, L**2 * apart)


@schema("block-sgd")
def drawn_inner() -> Relation:
    """Block s_k of the sample, s_k uniform and independent: E<grad f(x_k), G_k> = E<grad f(x_k), g_k>/S."""
    update, gradient = _q("E_inner_update E_inner_gradient")
    return eq(update, gradient / S)


@schema("block-sgd")
def drawn_square() -> Relation:
    """E|G_k|^2 = E|g_k|^2/S."""
    update, gradient = _q("E_update_square E_gradient_square")
    return eq(update, gradient / S)


@schema("pipedream")
def all_inner() -> Relation:
    """Every block of the sample: <grad f(x_k), G_k> = <grad f(x_k), g_k>."""
    return eq(*_q("E_inner_update E_inner_gradient"))


@schema("pipedream")
def all_square() -> Relation:
    """|G_k|^2 = |g_k|^2."""
    return eq(*_q("E_update_square E_gradient_square"))


@schema("delayed-gd")
def exact_inner() -> Relation:
    """No noise: G_k is the gradient at z_k."""
    return eq(*_q("E_inner_update E_inner_taken"))


@schema("delayed-gd")
def exact_square() -> Relation:
    """No noise: |G_k|^2 is the squared gradient at z_k."""
    return eq(*_q("E_update_square E_taken_square"))


@schema("unbiased")
def mean_of_the_gradient() -> Relation:
    """x_k and z_k are known before the sample: E<grad f(x_k), g_k> = E<grad f(x_k), grad f(z_k)>."""
    return eq(*_q("E_inner_gradient E_inner_taken"))


@schema("second-moment")
def second_moment() -> Relation:
    """E|g|^2 <= B^2."""
    return le(_q("E_gradient_square")[0], B**2)


@schema("block-second-moment")
def block_of_the_update() -> Relation:
    """G_k is one block of a sample: E|G_k|^2 <= G^2."""
    return le(_q("E_update_square")[0], G**2)


@schema("variance")
def variance_of_the_gradient() -> Relation:
    """The sample's noise has mean 0 and E|noise|^2 <= sigma^2: E|g|^2 <= E|grad f(z_k)|^2 + sigma^2."""
    gradient, taken = _q("E_gradient_square E_taken_square")
    return le(gradient, taken + sigma**2)


@schema("block-delay")
def short_window() -> Relation:
    """No window has more than delta_max steps."""
    return le(_q("j")[0], delta_max)


#: Sum over the windows, what it is a sum of, longest window -> the assumption under which the windows are so long.
OVERLAPS = {
    ("window_squares", "update_square", "delta_max"): "block-delay",
    ("window_squares", "update_square", "tau"): "delayed-gd",
    ("drift_squares", "expected_square", "delta_max"): "block-delay",
    ("drift_squares", "expected_square", "age_max"): "pipedream",
    ("martingale_squares", "martingale_square", "delta_max"): "block-delay",
}


@schema("double-sum")
def overlap(squares: str, each: str, longest: str) -> Relation:
    """Windows of at most `longest` steps, one after each step: every step is in at most `longest` of them."""
    if (squares, each, longest) not in OVERLAPS:
        raise InputError(f"overlap: {squares}, {each}, {longest} are no sum over windows, its summands, their length")
    together, one, length = _q(f"mean_{squares} mean_{each} {longest}")
    return le(together, length * one)


for _names, _assumption in OVERLAPS.items():
    under(_assumption, " ".join(("overlap", *_names)))
under("block-delay", "last_steps")
under("euclidean", "smoothness_squared", "square_of_the_step")  # of another norm they say something else
under("delayed-gd", "least_of_the_iterates")  # without noise a path is its own expectation
under("block-sgd", "block_of_the_update")  # where all blocks are updated, G_k is S of them
under("unbiased", "variance_of_the_gradient")


@schema("pl")
def polyak_lojasiewicz() -> Relation:
    """E|grad f(x_k)|^2 >= 2 mu E(f(x_k) - f_*)."""
    grad, now, star = _q("E_grad_square E_f_now f_star")
    return ge(grad, 2 * mu * (now - star))


@schema("finite-sum", "window's later")
def one_square_more() -> Relation:
    """The squares of j updates are those of j - 1 and one."""
    squares, before, one = _q("block_window_squares block_window_squares_before block_update_norm")
    return eq(squares, before + one**2)


@schema("inner-product")
def block_norm_square() -> Relation:
    """|window|^2, its two names."""
    norm, square = _q("block_window_norm block_window_square")
    return eq(norm**2, square)


@schema("double-sum")
def last_steps() -> Relation:
    """The windows of all blocks together hold each of the last delta_max steps at most once."""
    squares, most = _q("E_window_squares update_most")
    return le(squares, delta_max * most)


@schema("delayed-gd")
def short_delay() -> Relation:
    """No window has more than tau steps."""
    return le(*_q("j tau"))


@schema("delayed-gd")
def least_of_the_old() -> Relation:
    """Every z_k is an iterate of the run: the smallest square is at most their average."""
    return le(*_q("least_square mean_taken_square"))


@schema("finite-sum")
def least_of_the_iterates() -> Relation:
    """The smallest square of a run is at most their average."""
    return le(*_q("least_square mean_grad_square"))
