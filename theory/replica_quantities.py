"""The quantities that only proofs about LocalSGD need. x_r is replica r before step k, x_k their average.

NAMES: replica_... belongs to one replica, replicas_... is the mean of it over the S replicas. `since` counts the steps
since the replicas were averaged; in a walk, `j` counts them.
"""

from __future__ import annotations

from theory.quantity import NATURAL, NONNEGATIVE, REAL, Domain, Quantity

_SQUARE = "(f/x)^2"
REPLICA = "replica_"


def _square(name: str, latex: str, meaning: str, unit: str = _SQUARE) -> Quantity:
    return Quantity(name, latex, unit, NONNEGATIVE, meaning, "trajectory")


def _inner(name: str, latex: str, meaning: str, unit: str = _SQUARE) -> Quantity:
    return Quantity(name, latex, unit, REAL, meaning)


def _both(name: str, latex: str, meaning: str, unit: str = _SQUARE, domain: Domain = NONNEGATIVE) -> list[Quantity]:
    """Of one replica, and its mean over the replicas."""
    return [
        Quantity(f"replica_{name}", latex, unit, domain, meaning),
        Quantity(f"replicas_{name}", rf"\frac{{1}}{{S}} \sum_r {latex}", unit, domain, f"mean over all: {meaning}"),
    ]


RANDOM_REPLICAS = [
    _inner("inner_update_mean", r"\langle \nabla f(x_k), \mathbb{E}_k G_k \rangle", "gradient along the update's mean"),
    _square("replicas_mean_square", r"\|\bar{g}_k\|^2", "squared mean of the gradients at the replicas"),
    _inner("inner_replicas", r"\langle \nabla f(x_k), \bar{g}_k \rangle", "gradient along the replicas' mean gradient"),
    _square("replicas_gap_square", r"\|\nabla f(x_k) - \bar{g}_k\|^2", "gradient at the average, without it"),
    _inner("inner_update_replicas", r"\langle G_k, \bar{g}_k \rangle", "update along the replicas' mean gradient"),
    _square("average_noise_square", r"\|G_k - \bar{g}_k\|^2", "squared mean of the replicas' noises"),
    *_both("noise_square", r"\|g_r - \nabla f(x_r)\|^2", "squared noise of a replica's sample"),
    *_both("change_square", r"\|\nabla f(x_r) - \nabla f(x_k)\|^2", "replica's gradient minus that at the average"),
    *_both(
        "inner_gap",
        r"\langle \nabla f(x_r) - \nabla f(x_k), \nabla f(x_k) - \bar{g}_k \rangle",
        "that difference along the gap",
        domain=REAL,
    ),
    *_both("turn_square", r"\|\nabla f(x_r) - \bar{g}_k\|^2", "replica's gradient minus the mean of all"),
    *_both("apart_square", r"\|x_r - x_k\|^2", "squared distance of a replica from the average", "x^2"),
    _square(
        "replicas_apart_square_before", r"\frac{1}{S} \sum_r \|x_r - x\|^2", "that distance one step before", "x^2"
    ),
    # since the last average
    *_both("far_square", r"\|x_r - x_{last}\|^2", "squared distance from the last average", "x^2"),
    *_both("inner_far", r"\langle x_r - x_{last}, x_k - x_{last} \rangle", "along what all moved", "x^2", REAL),
    _square("average_far_square", r"\|x_k - x_{last}\|^2", "squared distance of the average from the last one", "x^2"),
    Quantity("replica_walk_norm", r"\|\sum_{i<j} g_{r,i}\|", "f/x", NONNEGATIVE, "norm of j samples of a replica"),
    _square("replica_walk_square", r"\|\sum_{i<j} g_{r,i}\|^2", "square of j samples of a replica together"),
    _square("replica_walk_squares", r"\sum_{i<j} \|g_{r,i}\|^2", "squares of j samples of a replica"),
    _square("replica_walk_squares_before", r"\sum_{i<j-1} \|g_{r,i}\|^2", "squares of j - 1 samples of a replica"),
    _square("replica_sample_square", r"\|g_{r,j}\|^2", "square of one sample of a replica"),
    # one step of a replica, from the average of all
    *_both(
        "inner_noise", r"\langle g_r - \nabla f(x_r), G_k - \bar{g}_k \rangle", "noise along their mean", domain=REAL
    ),
    *_both("rest_square", r"\|g_r - \nabla f(x_r) - (G_k - \bar{g}_k)\|^2", "replica's noise minus the mean noise"),
    *_both("inner_turn", r"\langle x_r - x_k, \nabla f(x_r) - \bar{g}_k \rangle", "place along it", "f", REAL),
    *_both("drifted_square", r"\|x_r - x_k - \gamma (\nabla f(x_r) - \bar{g}_k)\|^2", "moved without its noise", "x^2"),
    *_both("moved_square", r"\|x_r^+ - x_k^+\|^2", "distance after a step and before an average", "x^2"),
    _inner(
        "replica_inner_rest",
        r"\langle x_r - x_k - \gamma (\nabla f(x_r) - \bar{g}_k), \nu_r \rangle",
        "the move along the rest of the noise",
        "f",
    ),
    Quantity("f_end", r"f(x_T)", "f", REAL, "objective after the last of T steps", "trajectory"),
]


def _rounds(name: str, of: str) -> list[Quantity]:
    """The sum of a quantity over the steps since the last average, minus its mean over a whole round of H steps."""
    parts = {"": "k", "_next": "k+1", "_first": "0", "_last": "T"}
    return [
        Quantity(f"{name}{end}", rf"R^{{{of}}}_{{{at}}}", "1", REAL, f"{of} so far, minus its share, at {at}")
        for end, at in parts.items()
    ]


IN_REPLICA_PROOFS = [
    Quantity("steps", "T", "1", NATURAL, "steps that are added up"),
    Quantity("since", "h_k", "1", NATURAL, "steps since the replicas were averaged"),
    Quantity("since_next", "h_{k+1}", "1", NATURAL, "the same after the step"),
    Quantity("since_square", "h_k^2", "1", NONNEGATIVE, "square of since"),
    Quantity("total_since", r"\sum_{k<T} h_k", "1", NONNEGATIVE, "sum of since"),
    Quantity("total_since_square", r"\sum_{k<T} h_k^2", "1", NONNEGATIVE, "sum of since_square"),
    *_rounds("round_sum", "h"),
    *_rounds("round_squares", "h^2"),
    _square("total_grad_square", r"\sum_{k<T} \mathbb{E} \|\nabla f(x_k)\|^2", "sum of E||grad f(x_k)||^2"),
    _square("total_replicas_mean_square", r"\sum_{k<T} \mathbb{E} \|\bar{g}_k\|^2", "sum of E replicas_mean_square"),
    _square(
        "total_replicas_apart_square", r"\sum_{k<T} \frac{1}{S} \sum_r \mathbb{E} \|x_r - x_k\|^2", "sum of it", "x^2"
    ),
    _square(
        "whole_grad_square",
        r"\frac{S^2}{K} \sum_{k<T} \mathbb{E} \|\nabla f(x_k)\|^2",
        "S^2/K times the sum of E||grad f(x_k)||^2 over the whole steps",
    ),
]
