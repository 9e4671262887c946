"""The axioms' schemas for windows that do not depend on the draws: B, D and E."""

from __future__ import annotations

from theory.axioms import schema, under
from theory.pipedream.parts import B, G, S, sigma
from theory.relation import Relation, eq, le
from theory.symbols import symbols as _q

# moments of a window: B


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


# drift and martingale: D and E


@schema("inner-product")
def drift_norm_square() -> Relation:
    """|drift|^2, its two names."""
    norm, square = _q("block_drift_norm block_drift_square")
    return eq(norm**2, square)


@schema("independent-delay", "window's later")
def rest_is_orthogonal() -> Relation:
    """The window does not depend on the draws: G_{j,s} minus its mean has mean 0 given the window so far."""
    return eq(_q("E_block_inner_martingale")[0], 0 * S)


@schema("unbiased", "window's later")
def noise_is_orthogonal() -> Relation:
    """The windows of PipeDream are fixed: the noise of a sample has mean 0 given the samples before it."""
    return eq(_q("E_block_inner_martingale")[0], 0 * S)


@schema("finite-sum", "window's later")
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


# all windows together: A with delays that do not depend on the draws


@schema("inner-product")
def part_of_an_update() -> Relation:
    """The blocks of G_j whose windows hold it are no longer than G_j."""
    return le(*_q("E_walk_update_square E_update_square"))


@schema("jensen")
def mean_norm_of_an_update() -> Relation:
    """(E|P G_j|)^2 <= E|P G_j|^2."""
    norm, square = _q("E_walk_update_norm E_walk_update_square")
    return le(norm**2, square)


@schema("jensen")
def norm_of_the_whole_mean() -> Relation:
    """grad f(z_j) is the mean of g there: its square, and that of a part of it, is at most E|g|^2 at z_j."""
    norm, square = _q("walk_mean_norm point_square")
    return le(norm**2, square)


@schema("second-moment")
def second_moment_at_a_point() -> Relation:
    """E|g|^2 <= B^2 at z_j."""
    return le(_q("point_square")[0], B**2)


@schema("euclidean")
def walk_along_the_mean() -> Relation:
    """<w, v> <= |w| |v|."""
    inner, norm, mean = _q("walk_inner_mean walk_window_norm_before walk_mean_norm")
    return le(inner, norm * mean)


@schema("jensen", "window's later")
def mean_norm_of_the_walk() -> Relation:
    """(E|w_{j-1}|)^2 <= E|w_{j-1}|^2."""
    norm, square = _q("E_walk_window_norm_before E_walk_window_square_before")
    return le(norm**2, square)


@schema("independent-delay")
def drawn_along_the_walk() -> Relation:
    """The windows so far and P_j do not depend on draw j: each block is drawn with probability 1/S."""
    inner, sample = _q("E_walk_inner E_walk_inner_sample")
    return eq(inner, sample / S)


@schema("unbiased")
def mean_along_the_walk() -> Relation:
    """The windows so far and z_j are known before the sample of step j."""
    return eq(*_q("E_walk_inner_sample E_walk_inner_mean"))


# what is written of one method; samples whose mean is the gradient; windows that are independent of the draws
under("pipedream", "noise_is_orthogonal", "variance_of_a_block")
under("block-sgd", "drawn_along_the_window", "drawn_along_the_walk")
under("independent-delay", "mean_along_the_window", "mean_along_the_walk")
under("unbiased", "drawn_mean", "whole_mean", "norm_of_the_mean", "norm_of_the_whole_mean")
