"""The axioms' schemas, vectors and definitions that proofs about SGD with old gradients use."""

from __future__ import annotations

import theory.lmo.axioms  # noqa: F401  (smoothness on a segment, the lower bound, the initial gap)
from theory.axioms import define, schema
from theory.pipedream.parts import B, G, L, S, delta_max, gamma, mu, sigma
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols
from theory.vectors import CONSTANT, INNER, INSTANCES, Vector, register

_grad = register(Vector("sgd_grad", r"\nabla f(x_k)", "gradient at the iterate", None, "grad_square")).symbol
_taken = register(Vector("sgd_taken", r"\nabla f(z_k)", "gradient where step k looks", None, "taken_square")).symbol
_change = register(
    Vector("sgd_change", r"\nabla f(x_k) - \nabla f(z_k)", "their difference", None, "change_square")
).symbol
_update = register(Vector("update", "G_k", "update of step k without its step size", None, "update_square")).symbol
_move = register(Vector("move", "x_{k+1} - x_k", "step k", None, "move_square")).symbol
_difference = register(
    Vector("difference", r"G_k - \mathbb{E}_k G_k", "update minus its mean", None, "martingale_square")
).symbol
_apart = register(Vector("block_apart", "z_{k,s} - x_{k,s}", "block s apart", None, "block_apart_square")).symbol
_window = register(
    Vector("block_window", r"\sum_{i \le j} G_{i,s}", "updates together", "block_window_norm", "block_window_square")
).symbol
_window_before = register(
    Vector(
        "block_window_before",
        r"\sum_{i<j} G_{i,s}",
        "without the last",
        "block_window_norm_before",
        "block_window_square_before",
    )
).symbol
_block_update = register(
    Vector("block_update", "G_{j,s}", "the last update", "block_update_norm", "block_update_square")
).symbol
_drift = register(
    Vector(
        "block_drift",
        r"\sum_{i \le j} \mathbb{E}_i G_{i,s}",
        "means together",
        "block_drift_norm",
        "block_drift_square",
    )
).symbol
_martingale = register(
    Vector("block_martingale", r"\sum_{i \le j} (G - \mathbb{E} G)_{i,s}", "the rest", None, "block_martingale_square")
).symbol
_martingale_before = register(
    Vector(
        "block_martingale_before",
        r"\sum_{i<j} (G - \mathbb{E} G)_{i,s}",
        "the rest without the last",
        None,
        "block_martingale_square_before",
    )
).symbol
_block_difference = register(
    Vector("block_difference", r"(G - \mathbb{E} G)_{j,s}", "the last of the rest", None, "block_difference_square")
).symbol
_split = register(Vector("block_split", r"\theta u - v", "for Young's inequality", None, "block_split_square")).symbol

INNER.update(
    {
        frozenset(("sgd_grad", "sgd_taken")): "inner_taken",
        frozenset(("update", "sgd_taken")): "inner_update_taken",
        frozenset(("block_window_before", "block_update")): "block_inner",
        frozenset(("block_martingale_before", "block_difference")): "block_inner_martingale",
        frozenset(("block_drift", "block_martingale")): "block_inner_parts",
    }
)
INSTANCES["means in the window"] = {
    "block_window_norm": "block_drift_norm",
    "block_window_squares": "block_drift_squares",
    "j": "j",
}

define("sgd move", "the method: x_{k+1} = x_k - gamma G_k", eq(_move, -gamma * _update))
define("sgd change", "difference of the gradients at x_k and z_k", eq(_change, _grad - _taken))
define("block apart", "block s of z_k lacks the updates in its window", eq(_apart, gamma * _window))
define("window", "j updates are j - 1 updates and one", eq(_window, _window_before + _block_update), "later")
define("empty window", "no update", eq(_window, 0 * _block_update), "first")
define("drift and martingale", "each update is its mean and the rest", eq(_window, _drift + _martingale))
define("block difference", "j of the rest", eq(_martingale, _martingale_before + _block_difference), "later")
define("no difference", "nothing", eq(_martingale, 0 * _block_difference), "first")
define("split", "theta u - v, u the means, v the rest", eq(_split, symbols("theta")[0] * _drift - _martingale))
define("difference", "G_k minus its mean, grad f(z_k)/S", eq(_difference, _update - _taken / S))


def _q(names: str) -> tuple:
    return symbols(names)


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


@schema("double-sum")
def overlap(squares: str, each: str, longest: str = "delta_max") -> Relation:
    """Windows of at most `longest` steps, one after each step: every step is in at most `longest` of them."""
    together, one, length = _q(f"mean_{squares} mean_{each} {longest}")
    return le(together, length * one)


@schema("pl")
def polyak_lojasiewicz() -> Relation:
    """E|grad f(x_k)|^2 >= 2 mu E(f(x_k) - f_*)."""
    grad, now, star = _q("E_grad_square E_f_now f_star")
    return ge(grad, 2 * mu * (now - star))


@schema("finite-sum", "later")
def one_square_more() -> Relation:
    """The squares of j updates are those of j - 1 and one."""
    squares, before, one = _q("block_window_squares block_window_squares_before block_update_norm")
    return eq(squares, before + one**2)


define("first gap", "Delta0 = E f(x_0) - f_*", eq(_q("Delta0")[0], _q("E_f_first")[0] - _q("f_star")[0]))


@schema("inner-product")
def block_norm_square() -> Relation:
    """|window|^2, its two names."""
    norm, square = _q("block_window_norm block_window_square")
    return eq(norm**2, square)


INSTANCES["the largest update"] = {"E_update_square": "update_most"}
INSTANCES["one block"] = {"block_apart_square": "apart_square", "block_window_squares": "window_squares"}
INSTANCES["after the last step"] = {"excess": "excess_last", "k": "K"}
CONSTANT += [
    name
    for name in "gamma S G B mu delta_max theta sigma_b M block_age block_delay block_variance block_aged_variance "
    "aged_variance age_max update_most".split()
    if name not in CONSTANT
]


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


define("excess", "E f(x_k) - f_*", eq(_q("excess")[0], _q("E_f_next")[0] - _q("f_star")[0]), "later")
define("excess before", "E f(x_{k-1}) - f_*", eq(_q("excess_before")[0], _q("E_f_now")[0] - _q("f_star")[0]), "later")
define("first excess", "E f(x_0) - f_*", eq(_q("excess")[0], _q("Delta0")[0]), "first")


# one block, a window that does not depend on the draws: B


@schema("block-sgd")
def drawn_block_norm() -> Relation:
    """Block s is drawn with probability 1/S: E|G_{j,s}| = E|g_s|/S."""
    update, sample = _q("E_block_update_norm E_block_sample_norm")
    return eq(update, sample / S)


@schema("block-sgd")
def drawn_block_square() -> Relation:
    """E|G_{j,s}|^2 = E|g_s|^2/S."""
    update, sample = _q("E_block_update_square E_block_sample_square")
    return eq(update, sample / S)


@schema("jensen")
def mean_norm_of_a_block() -> Relation:
    """(E|g_s|)^2 <= E|g_s|^2."""
    norm, square = _q("E_block_sample_norm E_block_sample_square")
    return le(norm**2, square)


@schema("block-second-moment")
def block_second_moment() -> Relation:
    """E|g_s|^2 <= G^2."""
    return le(_q("E_block_sample_square")[0], G**2)


@schema("jensen")
def norm_of_the_mean() -> Relation:
    """grad_s f(z_j) is the mean of g_s there: its square is at most E|g_s|^2 at z_j."""
    norm, square = _q("block_mean_norm block_point_square")
    return le(norm**2, square)


@schema("block-second-moment")
def block_second_moment_at_a_point() -> Relation:
    """E|g_s|^2 <= G^2 at z_j."""
    return le(_q("block_point_square")[0], G**2)


@schema("independent-delay")
def drawn_along_the_window() -> Relation:
    """What is in the window so far does not depend on draw j: block s is drawn with probability 1/S."""
    inner, sample = _q("E_block_inner E_block_inner_sample")
    return eq(inner, sample / S)


@schema("unbiased")
def mean_along_the_window() -> Relation:
    """The window so far and z_j are known before the sample of step j."""
    return eq(*_q("E_block_inner_sample E_block_inner_mean"))


@schema("euclidean")
def window_along_the_mean() -> Relation:
    """<w, grad_s f(z_j)> <= |w| |grad_s f(z_j)|."""
    inner, norm, mean = _q("block_inner_mean block_window_norm_before block_mean_norm")
    return le(inner, norm * mean)


INSTANCES["one update less"] = {"E_block_window_norm": "E_block_window_norm_before", "j": "j_before"}
define("one less", "without the last", eq(_q("j_before")[0], _q("j")[0] - 1), "later")


# drift and martingale: D and E


@schema("inner-product")
def drift_norm_square() -> Relation:
    """|drift|^2, its two names."""
    norm, square = _q("block_drift_norm block_drift_square")
    return eq(norm**2, square)


@schema("independent-delay", "later")
def rest_is_orthogonal() -> Relation:
    """The window does not depend on the draws: G_{j,s} minus its mean has mean 0 given the window so far."""
    return eq(_q("E_block_inner_martingale")[0], 0 * S)


@schema("unbiased", "later")
def noise_is_orthogonal() -> Relation:
    """The windows of PipeDream are fixed: the noise of a sample has mean 0 given the samples before it."""
    return eq(_q("E_block_inner_martingale")[0], 0 * S)


@schema("finite-sum", "later")
def one_difference_more() -> Relation:
    """The squares of j differences are those of j - 1 and one."""
    return eq(
        _q("E_block_martingale_squares")[0],
        _q("E_block_martingale_squares_before")[0] + _q("E_block_difference_square")[0],
    )


@schema("block-sgd")
def drawn_mean() -> Relation:
    """The mean of G_k given the past is grad f(z_k)/S."""
    mean, taken = _q("E_expected_square E_taken_square")
    return eq(mean, taken / S**2)


@schema("pipedream")
def whole_mean() -> Relation:
    """The mean of G_k given the past is grad f(z_k)."""
    return eq(*_q("E_expected_square E_taken_square"))


@schema("block-sgd")
def drawn_along_the_mean() -> Relation:
    """E<G_k, grad f(z_k)> = E<g_k, grad f(z_k)>/S."""
    update, gradient = _q("E_inner_update_taken E_inner_gradient_taken")
    return eq(update, gradient / S)


@schema("unbiased")
def sample_along_its_mean() -> Relation:
    """E<g_k, grad f(z_k)> = E|grad f(z_k)|^2."""
    return eq(*_q("E_inner_gradient_taken E_taken_square"))


@schema("pipedream")
def age_of_a_block() -> Relation:
    """Block s lacks at most a_s microbatches."""
    return le(*_q("j block_delay"))


@schema("pipedream")
def oldest_block() -> Relation:
    """a_s = S-1-s is at most the largest of them."""
    return le(*_q("block_delay age_max"))


@schema("pipedream")
def age_of_the_first_stage() -> Relation:
    """The largest is S - 1, of stage 0."""
    return eq(_q("age_max")[0], S - 1)


@schema("variance")
def variance_of_a_block() -> Relation:
    """The noise of block s has E|noise|^2 <= sigma_s^2, and the sigma_s^2 add up to sigma^2."""
    return le(*_q("E_block_difference_square block_variance"))


@schema("equal-noise")
def ages_with_equal_noise() -> Relation:
    """sigma_s^2 = sigma^2/S: sum_s (S-1-s) sigma_s^2 = (S-1)/2 sigma^2."""
    return eq(_q("aged_variance")[0], (S - 1) * sigma**2 / 2)


define("equal split", "theta = 1", eq(_q("theta")[0], 1 + 0 * S))
define(
    "aged variance",
    "a_s times sigma_s^2",
    eq(_q("block_aged_variance")[0], _q("block_delay")[0] * _q("block_variance")[0]),
)
define(
    "block age", "sum_s a_s sigma_s^2 = block_age sigma^2", eq(_q("aged_variance")[0], _q("block_age")[0] * sigma**2)
)
define("microbatches", "a step is a microbatch: K = M", eq(_q("K")[0], _q("M")[0]))
