"""What is measured on a run, one estimator a file. `ESTIMATORS` has each by the name that theory.symbols uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimator:
    """module: file under empirics/estimators; measures: names in theory.symbols or of this room; interval: how, and
    from how many samples it holds; cost: what one measurement needs beside the step itself."""

    module: str
    measures: tuple[str, ...]
    interval: str
    cost: str


ESTIMATORS: dict[str, Estimator] = {
    "trajectory": Estimator(
        "trajectory",
        ("f_now", "f_next", "grad_norm", "f_first", "f_last", "mean_grad_norm"),
        "exact; over seeds Student, from 2",
        "one full gradient",
    ),
    "smoothness": Estimator("smoothness", ("L",), "[largest seen, infinity)", "one full gradient a point"),
    "upper-smoothness": Estimator(
        "upper_smoothness",
        ("L",),
        "[attained, rho^2 hessian_norm] at a level",
        "Hessian-vector products: about 20 for each start and 40 for Lanczos",
    ),
    "hessian-spectrum": Estimator(
        "lanczos",
        ("lambda_max", "lambda_min", "hessian_norm"),
        "residual always; a bracket at a level, for every number of products",
        "at most 40 Hessian-vector products",
    ),
    "spectral-measure": Estimator(
        "spectral_measure",
        ("spectral_measure",),
        "none of its own; over seeds Student, from 2",
        "one Hessian-vector product a node",
    ),
    "gradient-noise": Estimator(
        "gradient_noise",
        ("sigma", "noise_norm", "dual_noise"),
        "jackknife of the logarithm: v from 32, sigma with the full gradient known from 64; dual_noise Student",
        "one gradient a sample",
    ),
    "norm-ratio": Estimator(
        "norm_ratio",
        ("rho", "rho_effective"),
        "rho exact; effective: jackknife of the logarithm from 32, BCa from 80",
        "none",
    ),
    "update-drift": Estimator(
        "update_drift", ("dbar", "delta", "delta_mean_weighted"), "over seeds Student, from 2", "a norm"
    ),
    "momentum-lag": Estimator(
        "momentum_lag", ("error_norm", "mean_error_norm"), "exact", "full gradients at two points"
    ),
    "delay-bias": Estimator("delay_bias", ("delay_bias",), "exact", "full gradients at two points"),
    "start-error": Estimator("start_error", ("E0",), "exact for m_0 = 0; else Student", "one full gradient"),
    "lmo-inexactness": Estimator("lmo_inexactness", ("r_lo", "r_hi"), "exact extremes", "two SVDs a matrix"),
    "hessian-lipschitz": Estimator(
        "hessian_lipschitz",
        ("hessian_lipschitz",),
        "[largest seen, infinity)",
        "two products and two full gradients a step",
    ),
    "initial-gap": Estimator(
        "initial_gap", ("f_star", "Delta0", "Delta1"), "a proved bracket", "a solver's run of some hundred gradients"
    ),
}
