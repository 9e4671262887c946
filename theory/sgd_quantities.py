"""The quantities that only proofs about SGD with old gradients need. x_k, or y_k, moves; z_k is where step k looks.

A window of block s holds the steps whose update of block s z_k lacks; `j` counts them from the oldest.
"""

from __future__ import annotations

from theory.excess_quantities import IN_EXCESS_PROOFS, RANDOM_EXCESS
from theory.quantity import NATURAL, NONNEGATIVE, REAL, Quantity
from theory.replica_quantities import IN_REPLICA_PROOFS, RANDOM_REPLICAS
from theory.two_sided_quantities import IN_TWO_SIDED_PROOF, RANDOM_TWO_SIDED

_SQUARE = "(f/x)^2"


def _square(name: str, latex: str, meaning: str, unit: str = _SQUARE) -> Quantity:
    return Quantity(name, latex, unit, NONNEGATIVE, meaning, "trajectory")


RANDOM_SGD = [
    # one step, the whole model
    _square("grad_square", r"\|\nabla f(x_k)\|^2", "squared gradient at the iterate"),
    _square("taken_square", r"\|\nabla f(z_k)\|^2", "squared gradient where step k looks"),
    _square("change_square", r"\|\nabla f(x_k) - \nabla f(z_k)\|^2", "squared difference of the two"),
    _square("apart_square", r"\|x_k - z_k\|^2", "squared distance from the iterate to where step k looks", "x^2"),
    _square("update_square", r"\|G_k\|^2", "squared update, without its step size"),
    _square("gradient_square", r"\|g(z_k; \xi_k)\|^2", "squared gradient sample"),
    _square("move_square", r"\|x_{k+1} - x_k\|^2", "squared step", "x^2"),
    _square("expected_square", r"\|\mathbb{E}_k G_k\|^2", "square of the update's mean given the past"),
    Quantity("inner_gradient_taken", r"\langle g_k, \nabla f(z_k) \rangle", _SQUARE, REAL, "sample along its mean"),
    _square("martingale_square", r"\|G_k - \mathbb{E}_k G_k\|^2", "squared update minus its mean given the past"),
    Quantity("inner_update", r"\langle \nabla f(x_k), G_k \rangle", _SQUARE, REAL, "gradient along the update"),
    Quantity("inner_gradient", r"\langle \nabla f(x_k), g_k \rangle", _SQUARE, REAL, "gradient along its sample"),
    Quantity(
        "inner_taken", r"\langle \nabla f(x_k), \nabla f(z_k) \rangle", _SQUARE, REAL, "gradient along the old one"
    ),
    Quantity("inner_update_taken", r"\langle G_k, \nabla f(z_k) \rangle", _SQUARE, REAL, "update along its mean"),
    # windows of all blocks together
    _square("window_squares", r"\sum_s \sum_{j \in W_s} \|G_{j,s}\|^2", "squared updates in the windows of all blocks"),
    _square(
        "drift_squares",
        r"\sum_s \sum_{j \in W_s} \|\mathbb{E}_j G_{j,s}\|^2",
        "squared means in the windows of all blocks",
    ),
    _square(
        "martingale_squares",
        r"\sum_s \sum_{j \in W_s} \|G_{j,s} - \mathbb{E}_j G_{j,s}\|^2",
        "squared differences from the means in the windows of all blocks",
    ),
    # the first j steps of the window of one block
    _square("block_apart_square", r"\|x_{k,s} - z_{k,s}\|^2", "squared distance in block s", "x^2"),
    Quantity("block_window_norm", r"\|\sum_{i \le j} G_{i,s}\|", "f/x", NONNEGATIVE, "norm of the updates together"),
    Quantity("block_window_norm_before", r"\|\sum_{i < j} G_{i,s}\|", "f/x", NONNEGATIVE, "the same without the last"),
    _square("block_window_square", r"\|\sum_{i \le j} G_{i,s}\|^2", "square of the updates together"),
    _square("block_window_square_before", r"\|\sum_{i < j} G_{i,s}\|^2", "the square without the last"),
    _square("block_window_squares", r"\sum_{i \le j} \|G_{i,s}\|^2", "squared updates"),
    _square("block_window_squares_before", r"\sum_{i < j} \|G_{i,s}\|^2", "squared updates without the last"),
    Quantity("block_update_norm", r"\|G_{j,s}\|", "f/x", NONNEGATIVE, "norm of the update of block s by step j"),
    _square("block_update_square", r"\|G_{j,s}\|^2", "square of the update of block s by step j"),
    Quantity("block_sample_norm", r"\|g_s(z_j; \xi_j)\|", "f/x", NONNEGATIVE, "norm of block s of a gradient sample"),
    _square(
        "block_point_square",
        r"\mathbb{E} \|g_s(z; \xi)\|^2 |_{z = z_j}",
        "expected square of block s of a sample at z_j",
    ),
    _square("block_sample_square", r"\|g_s(z_j; \xi_j)\|^2", "square of block s of a gradient sample"),
    Quantity("block_mean_norm", r"\|\nabla_s f(z_j)\|", "f/x", NONNEGATIVE, "norm of block s of the gradient"),
    Quantity("block_inner", r"\langle \sum_{i<j} G_{i,s}, G_{j,s} \rangle", _SQUARE, REAL, "window along a new update"),
    Quantity(
        "block_inner_sample",
        r"\langle \sum_{i<j} G_{i,s}, g_s(z_j;\xi_j) \rangle",
        _SQUARE,
        REAL,
        "window along a sample",
    ),
    Quantity(
        "block_inner_mean",
        r"\langle \sum_{i<j} G_{i,s}, \nabla_s f(z_j) \rangle",
        _SQUARE,
        REAL,
        "window along its mean",
    ),
    Quantity("block_drift_norm", r"\|\sum_{i \le j} \mathbb{E}_i G_{i,s}\|", "f/x", NONNEGATIVE, "the means together"),
    _square("block_drift_square", r"\|\sum_{i \le j} \mathbb{E}_i G_{i,s}\|^2", "square of the means together"),
    _square("block_drift_squares", r"\sum_{i \le j} \|\mathbb{E}_i G_{i,s}\|^2", "the squared means"),
    _square("block_martingale_square", r"\|\sum_{i \le j} (G_{i,s} - \mathbb{E}_i G_{i,s})\|^2", "the rest together"),
    _square("block_martingale_square_before", r"\|\sum_{i<j} (G_{i,s} - \mathbb{E}_i G_{i,s})\|^2", "without the last"),
    _square(
        "block_martingale_squares", r"\sum_{i \le j} \|G_{i,s} - \mathbb{E}_i G_{i,s}\|^2", "the squares of the rest"
    ),
    _square(
        "block_martingale_squares_before", r"\sum_{i<j} \|G_{i,s} - \mathbb{E}_i G_{i,s}\|^2", "without the last one"
    ),
    _square("block_difference_square", r"\|G_{j,s} - \mathbb{E}_j G_{j,s}\|^2", "the square of the last"),
    Quantity(
        "block_inner_martingale",
        r"\langle \sum_{i<j} (G_{i,s} - \mathbb{E}_i G_{i,s}), G_{j,s} - \mathbb{E}_j G_{j,s} \rangle",
        _SQUARE,
        REAL,
        "the rest along a new one",
    ),
    Quantity(
        "block_inner_parts",
        r"\langle \sum_i \mathbb{E}_i G_{i,s}, \sum_i (G_{i,s} - \mathbb{E}_i G_{i,s}) \rangle",
        _SQUARE,
        REAL,
        "the means along the rest",
    ),
    # the first j updates of the windows of all blocks, oldest first
    Quantity("walk_window_norm", r"\|w_j\|", "f/x", NONNEGATIVE, "norm of the first j updates in all windows"),
    Quantity("walk_window_norm_before", r"\|w_{j-1}\|", "f/x", NONNEGATIVE, "norm of the first j - 1 of them"),
    _square("walk_window_square", r"\|w_j\|^2", "square of the first j updates in all windows"),
    _square("walk_window_square_before", r"\|w_{j-1}\|^2", "square of the first j - 1 of them"),
    Quantity("walk_update_norm", r"\|P_j G_j\|", "f/x", NONNEGATIVE, "norm of update j, in the windows that hold it"),
    _square("walk_update_square", r"\|P_j G_j\|^2", "square of update j, in the windows that hold it"),
    Quantity("walk_inner", r"\langle w_{j-1}, P_j G_j \rangle", _SQUARE, REAL, "the first j - 1 along the next"),
    Quantity("walk_inner_sample", r"\langle w_{j-1}, P_j g_j \rangle", _SQUARE, REAL, "the first j - 1 along a sample"),
    Quantity("walk_inner_mean", r"\langle w_{j-1}, P_j \nabla f(z_j) \rangle", _SQUARE, REAL, "those along its mean"),
    Quantity("walk_mean_norm", r"\|P_j \nabla f(z_j)\|", "f/x", NONNEGATIVE, "norm of that mean"),
    _square("point_square", r"\mathbb{E} \|g(z; \xi)\|^2 |_{z=z_j}", "expected square of a whole sample at z_j"),
    _square("block_split_square", r"\|\theta u - v\|^2", "for u the means and v the rest"),
]

MEANS_SGD = [
    _square("mean_grad_square", r"\overline{\mathbb{E} \|\nabla f(x)\|^2}", "average of E||grad f(x_k)||^2"),
    _square("mean_taken_square", r"\overline{\mathbb{E} \|\nabla f(z)\|^2}", "average of E||grad f(z_k)||^2"),
    _square("mean_apart_square", r"\overline{\mathbb{E} \|x - z\|^2}", "average of E||x_k - z_k||^2", "x^2"),
    _square("mean_update_square", r"\overline{\mathbb{E} \|G\|^2}", "average of E||G_k||^2"),
    _square("mean_expected_square", r"\overline{\mathbb{E} \|\mathbb{E}_k G\|^2}", "average of expected_square"),
    _square(
        "mean_martingale_square",
        r"\overline{\mathbb{E} \|G - \mathbb{E}_k G\|^2}",
        "average of the differences' squares",
    ),
    _square("mean_window_squares", r"\overline{\mathbb{E} \sum_s \sum_{W_s} \|G_s\|^2}", "average of window_squares"),
    _square(
        "mean_drift_squares",
        r"\overline{\mathbb{E} \sum_s \sum_{W_s} \|\mathbb{E} G_s\|^2}",
        "average of drift_squares",
    ),
    _square(
        "mean_martingale_squares",
        r"\overline{\mathbb{E} \sum_s \sum_{W_s} \|G_s - \mathbb{E} G_s\|^2}",
        "average of martingale_squares",
    ),
    _square("update_most", r"\max_k \mathbb{E} \|G_k\|^2", "largest E||G_k||^2 of a run"),
    _square("least_square", r"\min_{k<K} \|\nabla f(x_k)\|^2", "smallest squared gradient of a run"),
    Quantity("excess_now", r"\mathbb{E} f(x_k) - f_*", "f", REAL, "expected objective minus f_*"),
    Quantity("excess_next", r"\mathbb{E} f(x_{k+1}) - f_*", "f", REAL, "the same after step k"),
    Quantity("excess_last", r"\mathbb{E} f(x_K) - f_*", "f", REAL, "the same after the last step"),
]

BEFORE = [
    Quantity("block_delay", "a_s", "1", NATURAL, "longest window of block s, in microbatches"),
    Quantity("age_max", r"\max_s a_s", "1", NATURAL, "longest window of all blocks, in microbatches"),
    _square("block_variance", r"\sigma_s^2", "variance of block s of a gradient sample"),
    _square("block_aged_variance", r"a_s \sigma_s^2", "block_delay times block_variance"),
    _square("aged_variance", r"\sum_s a_s \sigma_s^2", "sum of block_aged_variance over the blocks"),
    Quantity("j_before", "j-1", "1", NATURAL, "number of steps without the last one"),
    Quantity("walk_most", r"\frac{B}{S} (j + \sqrt{j (S-1)})", "f/x", NONNEGATIVE, "what bounds the root of E|w_j|^2"),
    Quantity(
        "walk_most_before", r"\frac{B}{S} (j-1 + \sqrt{(j-1) (S-1)})", "f/x", NONNEGATIVE, "what bounds that of w_{j-1}"
    ),
]
RANDOM_SGD += [*RANDOM_REPLICAS, *RANDOM_EXCESS, *RANDOM_TWO_SIDED]
IN_SGD_PROOFS = [*BEFORE, *RANDOM_SGD, *MEANS_SGD, *IN_REPLICA_PROOFS, *IN_EXCESS_PROOFS, *IN_TWO_SIDED_PROOF]
BLOCKWISE = frozenset(q.name for q in (*RANDOM_SGD, *BEFORE) if q.name.startswith("block_"))
