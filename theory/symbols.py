"""Every quantity once: name, LaTeX, unit, domain, meaning, and the estimator that measures it.

Formulas, tables, figures and estimators read from here. A sympy symbol is made in one place,
`Quantity.symbol`, so two symbols of one name but other assumptions never meet.
`theory.proof_quantities` holds those that only proofs need.
"""

from __future__ import annotations

import sympy as sp

from theory.errors import InputError
from theory.nesterov_quantities import IN_NESTEROV_PROOFS
from theory.proof_quantities import IN_PROOFS, expectations
from theory.quantity import (
    COUNT,
    NATURAL,
    NONNEGATIVE,
    POSITIVE,
    REAL,
    UNITS,
    Domain,
    Quantity,
    number_text,
)
from theory.sgd_quantities import IN_SGD_PROOFS

__all__ = [
    "COUNT",
    "NATURAL",
    "NONNEGATIVE",
    "POSITIVE",
    "QUANTITIES",
    "REAL",
    "UNITS",
    "Domain",
    "Quantity",
    "get_quantity",
    "latex_names",
    "number_text",
    "symbols",
]

_SET_BY_USER = [
    Quantity("eta", r"\eta", "x", POSITIVE, "step size: radius of one update in the norm"),
    Quantity(
        "alpha", r"\alpha", "1", Domain(0.0, 1.0, open_low=True), "weight of a new gradient in the momentum"
    ),
    Quantity(
        "s", r"s_{\mathrm{ref}}", "1", NATURAL, "steps between the iterate and the one whose gradient is measured"
    ),
    Quantity("b", "b", "1", Domain(0.0, 1.0, open_low=True), "decoupled weight decay per step"),
    Quantity("beta", r"\beta", "1", Domain(0.0, 1.0, open_high=True), "momentum, 1 - alpha"),
    Quantity("gamma", r"\gamma", "x^2/f", POSITIVE, "step size: what multiplies a gradient"),
    Quantity("tau", r"\tau", "1", NATURAL, "gradient delay in optimizer steps"),
    Quantity("K", "K", "1", COUNT, "number of steps"),
    Quantity("k", "k", "1", NATURAL, "index of a step, from 0"),
    Quantity("M", "M", "1", COUNT, "microbatches processed, with a step of every stage after each"),
    Quantity("H", "H", "1", COUNT, "local steps between two averages in LocalSGD"),
    Quantity(
        "delta_max", r"\delta_{\max}", "1", NATURAL, "largest block-update delay"
    ),
    Quantity(
        "theta", r"\theta", "1", POSITIVE, "split of a squared sum: |u + v|^2 <= (1+theta)|u|^2 + (1+1/theta)|v|^2"
    ),
    Quantity("c", "c", "1", NONNEGATIVE, "coefficient of the error-feedback correction"),
    Quantity("S", "S", "1", COUNT, "number of pipeline stages"),
    Quantity("m", "m", "1", COUNT, "microbatches per optimizer step"),
    Quantity("stage", "s", "1", NATURAL, "index of a pipeline stage, from 0 at the input side"),
    Quantity("device", "d", "1", NATURAL, "index of a device, from 0"),
    Quantity("v", "v", "1", COUNT, "model chunks per device of an interleaved pipeline"),
    Quantity("R", "R", "1", COUNT, "replicas of the model in LocalSGD"),
    Quantity("t_f", "t_f", "t", NONNEGATIVE, "time of a forward of one microbatch on an S-th of the model"),
    Quantity("t_b", "t_b", "t", NONNEGATIVE, "time of its backward, weight gradient included"),
    Quantity("t_w", "t_w", "t", NONNEGATIVE, "time of its weight gradient, a part of t_b"),
]
_ALL = [
    *_SET_BY_USER,
    # constants of a problem
    Quantity("L", "L", "f/x^2", NONNEGATIVE, "smoothness in the norm", "smoothness"),
    Quantity(
        "sigma",
        r"\sigma",
        "f/x",
        NONNEGATIVE,
        "Frobenius standard deviation of a gradient sample",
        "gradient-noise",
    ),
    Quantity(
        "sigma_b", r"\sigma_b", "f/x", NONNEGATIVE, "standard deviation of one stage's block of a gradient sample"
    ),
    Quantity("G", "G", "f/x", NONNEGATIVE, "root of the second moment of one stage's block of a gradient sample"),
    Quantity("B", "B", "f/x", NONNEGATIVE, "root of the second moment of a whole gradient sample"),
    Quantity("mu", r"\mu", "f/x^2", POSITIVE, "Polyak-Lojasiewicz constant: |grad f|^2 >= 2 mu (f - f_*)"),
    Quantity(
        "block_age", r"\bar{a}", "1", NONNEGATIVE, "age of the blocks in microbatches, averaged with the noise of each"
    ),
    Quantity("rho", r"\rho", "1", POSITIVE, "largest ratio of dual norm to Frobenius norm", "norm-ratio"),
    Quantity("Delta0", r"\Delta_0", "f", NONNEGATIVE, "f(x_0) - f_*", "initial-gap"),
    Quantity("r", "r", "1", Domain(0.0, 1.0), "b norm(x_*) / eta: norm of the minimiser in radii of the decay's ball"),
    Quantity(
        "r_lo",
        r"r_{\mathrm{lo}}",
        "1",
        POSITIVE,
        "smallest <m_{k+1}, d_k> / dualnorm(m_{k+1}) of a run",
        "lmo-inexactness",
    ),
    Quantity("r_hi", r"r_{\mathrm{hi}}", "1", POSITIVE, "largest norm(d_k) of a run", "lmo-inexactness"),
    Quantity(
        "Delta1", r"\Delta_1", "f", NONNEGATIVE, "f(y_1) - f_*, at the first virtual iterate", "initial-gap"
    ),
    Quantity("E0", "E_0", "f/x", NONNEGATIVE, "E dualnorm(m_0 - grad f(x_0))", "start-error"),
    Quantity(
        "dbar", r"\bar{\delta}", "1", NONNEGATIVE, "average drift of the updates, in steps", "update-drift"
    ),
    # one mode of a quadratic
    Quantity("lam", r"\lambda", "f/x^2", NONNEGATIVE, "curvature of one mode of a quadratic"),
    Quantity("h", "h", "1", NONNEGATIVE, "step size times curvature of one mode"),
    # realised on a run, step by step
    Quantity("f_now", "f(z_k)", "f", REAL, "objective before step k", "trajectory"),
    Quantity("f_next", "f(z_{k+1})", "f", REAL, "objective after step k", "trajectory"),
    Quantity(
        "grad_norm",
        r"\|\nabla f(z_k)\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of the gradient at step k",
        "trajectory",
    ),
    Quantity(
        "error_norm", r"\|e_k\|_*", "f/x", NONNEGATIVE, "dual norm of e_k = m_{k+1} - grad f", "momentum-lag"
    ),
    Quantity(
        "delay_bias",
        r"\|b_k\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of grad f where the gradient was taken minus grad f at the iterate",
        "delay-bias",
    ),
    Quantity(
        "noise_norm",
        r"\|\nu_k\|_*",
        "f/x",
        NONNEGATIVE,
        "dual norm of alpha sum_{i=0..k} (1-alpha)^{k-i} n_i",
        "gradient-noise",
    ),
    Quantity("delta", r"\delta_k", "1", NONNEGATIVE, "norm(y_k - x_{(k-tau)+}) / eta", "update-drift"),
    Quantity(
        "delta_mean_weighted",
        r"\tilde{\delta}_k",
        "1",
        NONNEGATIVE,
        "alpha sum_{i=1..k} (1-alpha)^{k-i} delta_i",
        "update-drift",
    ),
    # realised on a run, over the run
    Quantity("f_first", "f(z_{\\mathrm{first}})", "f", REAL, "objective at the first iterate", "trajectory"),
    Quantity("f_last", "f(z_{\\mathrm{last}})", "f", REAL, "objective after the last step", "trajectory"),
    Quantity(
        "mean_grad_norm",
        r"\overline{\|\nabla f\|_*}",
        "f/x",
        NONNEGATIVE,
        "average over the run of the dual norm of the gradient",
        "trajectory",
    ),
    Quantity(
        "mean_error_norm",
        r"\overline{\|e\|_*}",
        "f/x",
        NONNEGATIVE,
        "average over the run of the dual norm of e_k",
        "momentum-lag",
    ),
]

QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        *_ALL,
        *IN_PROOFS,
        *IN_SGD_PROOFS,
        *IN_NESTEROV_PROOFS,
        *expectations((*_ALL, *IN_PROOFS, *IN_SGD_PROOFS, *IN_NESTEROV_PROOFS)),
    )
}
#: What a theorem holds for any value of; no proof of one that contains it may fix it.
SET_BY_USER = frozenset(quantity.name for quantity in _SET_BY_USER)


def symbols(names: str) -> tuple[sp.Symbol, ...]:
    """Sympy symbols of quantities, names separated by blanks. Raises InputError for an unknown name."""
    return tuple(get_quantity(name).symbol for name in names.split())


def get_quantity(name: str) -> Quantity:
    """The quantity of that name. Raises InputError naming the known ones."""
    if name not in QUANTITIES:
        raise InputError(f"unknown quantity {name!r}; known: {', '.join(QUANTITIES)}")
    return QUANTITIES[name]


def latex_names() -> dict[sp.Symbol, str]:
    """Symbol -> LaTeX, for sympy's printer."""
    return {quantity.symbol: quantity.latex for quantity in QUANTITIES.values()}
