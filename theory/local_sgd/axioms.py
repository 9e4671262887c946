"""The axioms' schemas that proofs about LocalSGD use: rounds of H steps, means over replicas, independent samples."""

from __future__ import annotations

import theory.local_sgd.vectors
import theory.pipedream.axioms  # noqa: F401  (the objective along an update)
from theory.axioms import schema, under
from theory.pipedream.parts import B, K, L, S, sigma
from theory.relation import Relation, eq, ge, le
from theory.symbols import symbols as _q

(H,) = _q("H")

# the method


@schema("local-sgd")
def whole_steps() -> Relation:
    """T = floor(K/S^2): a step of all replicas is S^2 block updates."""
    return le(S**2 * _q("steps")[0], K)


@schema("local-sgd")
def walk_of_a_replica() -> Relation:
    """A replica has taken as many samples since the last average as there were steps."""
    return eq(*_q("j since"))


@schema("local-sgd")
def walk_of_a_round() -> Relation:
    """Replicas are averaged after H steps."""
    return le(_q("j")[0], H - 1)


@schema("local-sgd")
def one_step_on() -> Relation:
    """After a step there is one step more since the last average, or none."""
    since, after = _q("since since_next")
    return eq(after * (after - since - 1), 0 * H)


@schema("local-sgd")
def end_of_a_round() -> Relation:
    """There is one step more, unless it was the last of a round."""
    since, after = _q("since since_next")
    return eq((after - since - 1) * (since - H + 1), 0 * H)


@schema("local-sgd")
def start_of_a_round(name: str) -> Relation:
    """All replicas start at x_0: no step has been taken before step 0."""
    return eq(_q({"sum": "round_sum_first", "squares": "round_squares_first"}[name])[0], 0 * H)


# means over the replicas


@schema("inner-product")
def mean_along_the_gap() -> Relation:
    """The mean over r of grad f(x_r) - grad f(x_k) is minus the gap."""
    inner, gap = _q("replicas_inner_gap replicas_gap_square")
    return eq(inner, -gap)


@schema("inner-product")
def mean_along_the_average() -> Relation:
    """The mean over r of x_r - x_last is x_k - x_last."""
    return eq(*_q("replicas_inner_far average_far_square"))


@schema("inner-product")
def mean_along_the_noise() -> Relation:
    """The mean over r of the noises is the mean noise."""
    return eq(*_q("replicas_inner_noise average_noise_square"))


@schema("inner-product")
def walk_norm_square() -> Relation:
    """|sum of j samples|^2, its two names."""
    norm, square = _q("replica_walk_norm replica_walk_square")
    return eq(norm**2, square)


@schema("smoothness")
def smoothness_at_a_replica() -> Relation:
    """|grad f(x_r) - grad f(x_k)|^2 <= L^2 |x_r - x_k|^2."""
    change, apart = _q("replica_change_square replica_apart_square")
    return le(change, L**2 * apart)


@schema("euclidean")
def along_all_replicas() -> Relation:
    """The Cauchy-Schwarz inequality for all replicas together: <a, u>^2 <= |a|^2 |u|^2."""
    inner, apart, turn = _q("replicas_inner_turn replicas_apart_square replicas_turn_square")
    return le(inner**2, apart * turn)


# samples


@schema("independent-batch")
def replicas_are_known() -> Relation:
    """The replicas are known before the samples: only the mean of G_k counts along the gradient."""
    return eq(*_q("E_inner_update E_inner_update_mean"))


@schema("unbiased")
def mean_of_the_samples() -> Relation:
    """The mean of G_k given the past is the mean of the replicas' gradients."""
    return eq(*_q("E_inner_update_mean E_inner_replicas"))


@schema("unbiased")
def samples_along_their_mean() -> Relation:
    """E<G_k, mean gradient> = E|mean gradient|^2."""
    return eq(*_q("E_inner_update_replicas E_replicas_mean_square"))


@schema("unbiased")
def noise_along_the_known() -> Relation:
    """The noises have mean 0 given the replicas."""
    return eq(_q("E_replica_inner_rest")[0], 0 * S)


@schema("local-sgd")
def independent_samples() -> Relation:
    """The samples of the replicas are independent: the noise of their mean has 1/S of the mean square."""
    average, each = _q("E_average_noise_square E_replicas_noise_square")
    return eq(average, each / S)


@schema("variance")
def variance_of_a_replica() -> Relation:
    """E|g_r - grad f(x_r)|^2 <= sigma^2."""
    return le(_q("E_replica_noise_square")[0], sigma**2)


@schema("second-moment")
def second_moment_of_a_sample() -> Relation:
    """E|g_r|^2 <= B^2."""
    return le(_q("E_replica_sample_square")[0], B**2)


@schema("finite-sum", "samples' first")
def no_sample_yet() -> Relation:
    """Nothing is added up."""
    return eq(_q("E_replica_walk_squares")[0], 0 * S)


@schema("finite-sum", "samples' later")
def one_sample_more() -> Relation:
    """The squares of j samples are those of j - 1 and one."""
    squares, before, one = _q("E_replica_walk_squares E_replica_walk_squares_before E_replica_sample_square")
    return eq(squares, before + one)


@schema("lower-bound")
def lower_bound_at_the_end() -> Relation:
    """The objective after the steps that are added up is at least f_*."""
    return ge(*_q("f_end f_star"))


under("local-sgd", "replicas_are_known", "mean_of_the_samples", "samples_along_their_mean", "noise_along_the_known")
under("euclidean", "smoothness_at_a_replica")
under("unbiased", "independent_samples")  # the noises have mean 0
