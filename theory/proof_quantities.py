"""The quantities that only proofs need: what a step says on the way to a theorem, and expectations.

z_k is the point where the theorem looks at step k: x_k, or the virtual iterate y_k of error feedback.
"""

from __future__ import annotations

from collections.abc import Iterable

from theory.nesterov_quantities import RANDOM_NESTEROV
from theory.quantity import NATURAL, NONNEGATIVE, POSITIVE, REAL, Domain, Quantity
from theory.sgd_quantities import RANDOM_SGD

IN_PROOFS = [
    Quantity("f_star", "f_*", "f", REAL, "lower bound of the objective", "initial-gap"),
    # one step
    Quantity("momentum_norm", r"\|m_{k+1}\|_*", "f/x", NONNEGATIVE, "dual norm of the momentum", "trajectory"),
    Quantity("direction_norm", r"\|d_k\|", "1", NONNEGATIVE, "norm of the LMO direction", "trajectory"),
    Quantity("step_norm", r"\|z_{k+1} - z_k\|", "x", NONNEGATIVE, "norm of step k", "trajectory"),
    Quantity("inner_grad", r"\langle \nabla f(z_k), d_k \rangle", "f/x", REAL, "gradient along the direction"),
    Quantity("inner_momentum", r"\langle m_{k+1}, d_k \rangle", "f/x", REAL, "momentum along the direction"),
    Quantity("inner_error", r"\langle e_k, d_k \rangle", "f/x", REAL, "momentum's error along the direction"),
    Quantity("longest_step", r"\eta r_{\mathrm{hi}}", "x", POSITIVE, "norm of a step of an inexact oracle, at most"),
    # the segment from z_k to z_{k+1}, t in [0, 1]
    Quantity("t", "t", "1", Domain(0.0, 1.0), "place on the segment of step k"),
    Quantity(
        "segment_dual",
        r"\|\nabla f(z_k^t) - \nabla f(z_k)\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of the gradient's change up to z_k^t = z_k + t (z_{k+1} - z_k)",
    ),
    Quantity(
        "segment_inner",
        r"\langle \nabla f(z_k^t) - \nabla f(z_k), z_{k+1}-z_k \rangle",
        "f",
        REAL,
        "that change along the step",
    ),
    Quantity(
        "segment_mean",
        r"\int_0^1 \langle \nabla f(z_k^t) - \nabla f(z_k), z_{k+1}-z_k \rangle dt",
        "f",
        REAL,
        "its integral over the segment",
    ),
    # the momentum's error without its noise, w_k = e_k - nu_k
    Quantity("lag_norm", r"\|w_k\|_*", "f/x", NONNEGATIVE, "dual norm of w_k = e_k - nu_k", "momentum-lag"),
    Quantity("lag_norm_before", r"\|w_{k-1}\|_*", "f/x", NONNEGATIVE, "dual norm of w_{k-1}", "momentum-lag"),
    Quantity(
        "grad_change",
        r"\|\nabla f(z_{k-1}) - \nabla f(z_k)\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of the gradient's change over the step before",
        "trajectory",
    ),
    Quantity("step_norm_before", r"\|z_k - z_{k-1}\|", "x", NONNEGATIVE, "norm of step k-1", "trajectory"),
    # the distance to the point where a gradient was taken
    Quantity("gap_norm", r"\|x_{(k-\tau)_+} - z_k\|", "x", NONNEGATIVE, "from where a gradient was taken to z_k"),
    Quantity("age", "a_k", "1", NATURAL, "steps between where the gradient was taken and the iterate"),
    Quantity("j", "j", "1", NATURAL, "number of steps walked"),
    Quantity("walk_norm", r"\|z_{i+j} - z_i\|", "x", NONNEGATIVE, "distance walked in j steps"),
    Quantity("walk_norm_before", r"\|z_{i+j-1} - z_i\|", "x", NONNEGATIVE, "distance walked in j - 1 steps"),
    # noise
    Quantity("noise_frobenius", r"\|\nu_k\|_F", "f/x", NONNEGATIVE, "Frobenius norm of nu_k", "gradient-noise"),
    Quantity("noise_square", r"\|\nu_k\|_F^2", "(f/x)^2", NONNEGATIVE, "its square", "gradient-noise"),
    Quantity("noise_square_before", r"\|\nu_{k-1}\|_F^2", "(f/x)^2", NONNEGATIVE, "the square one step before"),
    Quantity("sample_square", r"\|n_k\|_F^2", "(f/x)^2", NONNEGATIVE, "squared Frobenius norm of a sample's noise"),
    Quantity("inner_noise", r"\langle \nu_{k-1}, n_k \rangle", "(f/x)^2", REAL, "old noise along a new sample's noise"),
    Quantity(
        "inner_noise_mean",
        r"\langle \nu_{k-1}, \mathbb{E}_k n_k \rangle",
        "(f/x)^2",
        REAL,
        "old noise along the mean of a new sample's noise, given the past",
    ),
    # the gradient where it was taken
    Quantity("taken_norm", r"\|\nabla f(x_{(k-\tau)_+})\|_*", "f/x", NONNEGATIVE, "dual norm of it where it was taken"),
    Quantity(
        "shifted_error_norm",
        r"\|m_{k+1} - \nabla f(x_{(k-\tau)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of m_{k+1} minus grad f where it was taken",
    ),
    Quantity("shifted_lag_norm", r"\|w'_k\|_*", "f/x", NONNEGATIVE, "dual norm of that without nu_k"),
    Quantity("shifted_lag_norm_before", r"\|w'_{k-1}\|_*", "f/x", NONNEGATIVE, "the same one step before"),
    Quantity(
        "taken_change",
        r"\|\nabla f(x_{(k-1-\tau)_+}) - \nabla f(x_{(k-\tau)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of the change of grad f where it was taken",
    ),
    Quantity(
        "taken_step_norm",
        r"\|x_{(k-\tau)_+} - x_{(k-1-\tau)_+}\|",
        "x",
        NONNEGATIVE,
        "norm of what the place where the gradient is taken moves by",
    ),
    Quantity("stale_step_norm", r"\|x_{(k-1-\tau)_+ + 1} - x_{(k-1-\tau)_+}\|", "x", NONNEGATIVE, "an old step"),
    # the gradient at the reference x_{(k-s)+}
    Quantity("reference_norm", r"\|\nabla f(x_{(k-s)_+})\|_*", "f/x", NONNEGATIVE, "dual norm of it s steps back"),
    Quantity(
        "reference_error_norm",
        r"\|m_{k+1} - \nabla f(x_{(k-s)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of m_{k+1} minus grad f at the reference",
    ),
    Quantity("reference_lag_norm", r"\|w^s_k\|_*", "f/x", NONNEGATIVE, "dual norm of m_{k+1} - nu_k minus it"),
    Quantity(
        "reference_lag_norm_before",
        r"\|w^{s-1}_{k-1}\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of m_k - nu_{k-1} minus the same gradient, which is s - 1 steps back there",
    ),
    Quantity(
        "reference_bias",
        r"\|\nabla f(x_{(k-\tau)_+}) - \nabla f(x_{(k-s)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of grad f where it was taken minus grad f at the reference",
    ),
    Quantity(
        "reference_gap_norm",
        r"\|x_{(k-\tau)_+} - x_{(k-s)_+}\|",
        "x",
        NONNEGATIVE,
        "from the reference to where the gradient was taken",
    ),
    Quantity("reference_age", r"|(k-\tau)_+ - (k-s)_+|", "1", NATURAL, "number of steps between the two"),
    Quantity("E_first_grad_norm", r"\mathbb{E} \|\nabla f(x_0)\|_*", "f/x", NONNEGATIVE, "norm of the first gradient"),
    # error feedback
    Quantity("extra", r"\tau - 1", "1", NONNEGATIVE, "delay beyond the first step"),
    Quantity("first_direction_norm", r"\|d_0\|", "1", NONNEGATIVE, "norm of the first direction"),
    Quantity("start_gap_norm", r"\|x_0 - y_1\|", "x", NONNEGATIVE, "from x_0 to the first virtual iterate"),
    Quantity("start_change", r"\|\nabla f(x_0) - \nabla f(y_1)\|_*", "f/x", NONNEGATIVE, "gradient's change to x_0"),
    Quantity("direction_norm_before", r"\|d_{k-1}\|", "1", NONNEGATIVE, "norm of the direction before"),
    Quantity("return_gap_norm", r"\|x_k - y_k\|", "x", NONNEGATIVE, "from the virtual iterate to the weights"),
    Quantity("return_change", r"\|\nabla f(x_k) - \nabla f(y_k)\|_*", "f/x", NONNEGATIVE, "gradient's change to x_k"),
    Quantity(
        "return_before",
        r"\|\nabla f(x_{(k-\tau)_+}) - \nabla f(y_{k-1})\|_*",
        "f/x",
        NONNEGATIVE,
        "gradient's change from y_{k-1} to where the gradient is taken",
    ),
    Quantity("grad_norm_at_x", r"\|\nabla f(x_k)\|_*", "f/x", NONNEGATIVE, "dual norm of the gradient at the weights"),
    Quantity(
        "delta_mean_weighted_before", r"\tilde{\delta}_{k-1}", "1", NONNEGATIVE, "delta_mean_weighted one step before"
    ),
    Quantity("weighted_start", r"\tilde{\delta}_0", "1", NONNEGATIVE, "delta_mean_weighted before the first step"),
    Quantity("weighted_end", r"\tilde{\delta}_K", "1", NONNEGATIVE, "delta_mean_weighted at the last step"),
    # tuned momentum
    Quantity("scale", r"\sqrt{L \Delta_0 / K}", "f/x", POSITIVE, "what a run of K steps can tell, without noise"),
    Quantity("noise_scale", r"\rho \sigma", "f/x", POSITIVE, "noise in the dual norm, where there is any"),
    # weight decay
    Quantity("iterate_norm", r"\|z_k\|", "x", NONNEGATIVE, "norm of the iterate", "trajectory"),
    Quantity("iterate_norm_before", r"\|z_{k-1}\|", "x", NONNEGATIVE, "norm of the iterate before"),
    Quantity("minimiser_norm", r"\|x_*\|", "x", NONNEGATIVE, "norm of the minimiser"),
    Quantity("inner_step", r"\langle \nabla f(z_k), z_{k+1} - z_k \rangle", "f", REAL, "gradient along the step"),
    Quantity("inner_iterate", r"\langle \nabla f(z_k), z_k \rangle", "f", REAL, "gradient along the iterate"),
    Quantity("inner_grad_minimiser", r"\langle \nabla f(z_k), x_* \rangle", "f", REAL, "gradient along the minimiser"),
    Quantity("inner_momentum_minimiser", r"\langle m_{k+1}, x_* \rangle", "f", REAL, "momentum along the minimiser"),
    Quantity("inner_error_minimiser", r"\langle e_k, x_* \rangle", "f", REAL, "error along the minimiser"),
    # finite sums
    Quantity(
        "delay_age",
        r"\alpha \sum_{i=1}^{k} (1-\alpha)^{k-i} \min(i, \tau)",
        "1",
        NONNEGATIVE,
        "what the delay adds to the mean age of the gradients in the momentum",
    ),
    Quantity("noise_growth", r"1 - (1-\alpha)^{2k+2}", "1", NONNEGATIVE, "share of its last variance that nu_k has"),
    Quantity("noise_growth_root", r"\sqrt{1 - (1-\alpha)^{2k+2}}", "1", NONNEGATIVE, "root of noise_growth"),
    # averages over a run
    Quantity("mean_delay_age", r"\overline{A}", "1", NONNEGATIVE, "average of delay_age"),
    Quantity("mean_noise_growth", r"\overline{G}", "1", NONNEGATIVE, "average of noise_growth"),
    Quantity("mean_noise_growth_root", r"\overline{\sqrt{G}}", "1", NONNEGATIVE, "average of noise_growth_root"),
    Quantity("mean_grad_norm_at_x", r"\overline{\|\nabla f(x)\|_*}", "f/x", NONNEGATIVE, "average of grad_norm_at_x"),
    Quantity("mean_weighted", r"\overline{\tilde{\delta}}", "1", NONNEGATIVE, "average of delta_mean_weighted"),
    Quantity("mean_momentum_norm", r"\overline{\|m\|_*}", "f/x", NONNEGATIVE, "average of momentum_norm"),
    Quantity("mean_taken_norm", r"\overline{\|\nabla f_{taken}\|_*}", "f/x", NONNEGATIVE, "average of taken_norm"),
    Quantity("mean_shifted_error_norm", r"\overline{\|e'\|_*}", "f/x", NONNEGATIVE, "average of it"),
    Quantity(
        "mean_reference_norm", r"\overline{\|\nabla f_{ref}\|_*}", "f/x", NONNEGATIVE, "average of reference_norm"
    ),
    Quantity(
        "mean_reference_error_norm", r"\overline{\|e^s\|_*}", "f/x", NONNEGATIVE, "average of reference_error_norm"
    ),
]

RANDOM = (
    "f_now f_next f_first f_last grad_norm error_norm noise_norm delta delta_mean_weighted mean_grad_norm "
    "mean_error_norm momentum_norm lag_norm noise_frobenius noise_square noise_square_before sample_square "
    "inner_noise inner_noise_mean taken_norm shifted_error_norm shifted_lag_norm mean_momentum_norm mean_taken_norm "
    "mean_shifted_error_norm delta_mean_weighted_before weighted_start weighted_end grad_norm_at_x mean_grad_norm_at_x "
    "mean_weighted reference_norm reference_error_norm mean_reference_norm mean_reference_error_norm"
).split()
RANDOM += [quantity.name for quantity in (*RANDOM_SGD, *RANDOM_NESTEROV)]
PREFIX = "E_"


def expectations(quantities: Iterable[Quantity]) -> list[Quantity]:
    """E_NAME for every random quantity of the list."""
    return [
        Quantity(
            PREFIX + q.name,
            rf"\mathbb{{E}} {q.latex}",
            q.unit,
            Domain(q.domain.low, q.domain.high),
            f"expectation of: {q.meaning}",
        )
        for q in quantities
        if q.name in RANDOM
    ]
