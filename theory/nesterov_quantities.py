"""The quantities of proofs about Nesterov's direction: the oracle is called at c_k = (1-alpha) m_{k+1} + alpha g_k."""

from __future__ import annotations

from theory.quantity import NONNEGATIVE, REAL, Quantity

RANDOM_NESTEROV = [
    Quantity("called_norm", r"\|c_k\|_*", "f/x", NONNEGATIVE, "dual norm of where the oracle is called", "trajectory"),
    Quantity("called_error_norm", r"\|c_k - \nabla f(z_k)\|_*", "f/x", NONNEGATIVE, "dual norm of c_k minus grad f"),
    Quantity(
        "called_shifted_error_norm",
        r"\|c_k - \nabla f(x_{(k-\tau)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of c_k minus grad f where it was taken",
    ),
    Quantity("called_lag_norm", r"\|c_k - \nabla f(z_k) - q_k\|_*", "f/x", NONNEGATIVE, "that without q_k"),
    Quantity(
        "called_shifted_lag_norm",
        r"\|c_k - \nabla f(x_{(k-\tau)_+}) - q_k\|_*",
        "f/x",
        NONNEGATIVE,
        "called_shifted_error_norm without q_k",
    ),
    Quantity(
        "called_reference_error_norm",
        r"\|c_k - \nabla f(x_{(k-s)_+})\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of c_k minus grad f s steps back",
    ),
    Quantity(
        "called_reference_lag_norm",
        r"\|c_k - \nabla f(x_{(k-s)_+}) - q_k\|_*",
        "f/x",
        NONNEGATIVE,
        "called_reference_error_norm without q_k",
    ),
    Quantity("called_noise_norm", r"\|q_k\|_*", "f/x", NONNEGATIVE, "dual norm of the noise in c_k", "gradient-noise"),
    Quantity("called_noise_frobenius", r"\|q_k\|_F", "f/x", NONNEGATIVE, "Frobenius norm of q_k", "gradient-noise"),
    Quantity("called_noise_square", r"\|q_k\|_F^2", "(f/x)^2", NONNEGATIVE, "square of that", "gradient-noise"),
    Quantity("called_noise_square_before", r"\|q_{k-1}\|_F^2", "(f/x)^2", NONNEGATIVE, "that square one step before"),
    Quantity("mean_called_norm", r"\overline{\|c\|_*}", "f/x", NONNEGATIVE, "average of called_norm"),
    Quantity(
        "mean_called_error_norm",
        r"\overline{\|c - \nabla f\|_*}",
        "f/x",
        NONNEGATIVE,
        "average of called_error_norm",
    ),
    Quantity(
        "mean_called_shifted_error_norm",
        r"\overline{\|c - \nabla f_{taken}\|_*}",
        "f/x",
        NONNEGATIVE,
        "average of called_shifted_error_norm",
    ),
    Quantity(
        "mean_called_reference_error_norm",
        r"\overline{\|c - \nabla f_{ref}\|_*}",
        "f/x",
        NONNEGATIVE,
        "average of called_reference_error_norm",
    ),
]
IN_NESTEROV_PROOFS = [
    Quantity("inner_called", r"\langle c_k, d_k \rangle", "f/x", REAL, "where the oracle is called, along its answer"),
    Quantity("inner_called_error", r"\langle c_k - \nabla f(z_k), d_k \rangle", "f/x", REAL, "error of c_k along d_k"),
    *RANDOM_NESTEROV,
]
