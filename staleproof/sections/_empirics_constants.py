"""Estimators on least squares, where the truth is known: what each finds by itself, against the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from empirics.constants import Constant
from empirics.estimators.gradient_noise import exact_variance
from empirics.estimators.initial_gap import f_star
from empirics.estimators.upper_smoothness import upper_smoothness
from empirics.estimators.weights import Weights
from empirics.problem_constants import ProblemConstants
from empirics.problems.registry import make_problem
from staleproof.claims import Claim
from staleproof.presets import Preset

EVIDENCE = "empirics.json"
EQUAL = 1e-12  # relative: some hundred float64 operations
CLOSE = 1e-3  # relative: where Lanczos stops


def run(preset: Preset) -> tuple[list[dict[str, Any]], list[Claim]]:
    """The entry "constants" of empirics.json, and its claims."""
    rows, claims = [], []
    for norm in ("spectral", "frobenius"):
        found, own = _of_norm(preset, norm)
        rows += found
        claims += own
    return rows, claims


def _of_norm(preset: Preset, norm: str) -> tuple[list[dict[str, Any]], list[Claim]]:
    problem = make_problem("least-squares", {"seed": str(preset.seed)})
    setting = ProblemConstants(problem, norm, seed=preset.seed)
    truth = {name: _value(c) for name, c in problem.known(norm).items()}
    smooth = upper_smoothness(setting.product, setting.norm, setting.start, seed=preset.seed).constant("start")
    bracket = f_star(problem)
    samples: list[Weights] = [problem.sample_gradient(setting.start, i) for i in range(problem.samples or 0)]
    sigma = float(np.sqrt(exact_variance(samples)))
    rows = [
        {"norm": norm, "truth": truth["L"], **smooth.as_dict()},
        {"norm": norm, "truth": truth["f_star"], **bracket.as_dict()},
        {"norm": norm, "truth": truth["sigma"], **_enumerated(sigma, len(samples)).as_dict()},
    ]
    claims = [
        Claim.certified(
            f"empirics.constants.L.{norm}",
            f"smoothness in the {norm} norm that is attained at some point, over the closed form",
            _value(smooth) / truth["L"],
            EQUAL,
            evidence=EVIDENCE,
        ),
    ]
    statement = f"smoothness in the {norm} norm: what is found over the closed form"
    share, name = _value(smooth) / truth["L"], f"empirics.constants.L-found.{norm}"
    if norm == "frobenius":  # an eigenvalue, by Lanczos with a residual; the other maximum is not convex
        claims.append(Claim.equality(name, statement, share, 1.0, CLOSE, evidence=EVIDENCE))
    else:
        claims.append(Claim.report(name, statement, share, evidence=EVIDENCE))
    if norm == "spectral":
        low, high = bracket.low, bracket.high
        inside = low is not None and high is not None and low - 1e-12 <= truth["f_star"] <= high + 1e-12
        claims += [
            Claim.equality(
                "empirics.constants.f-star",
                "the solver's bracket of f_* holds the closed form (1: it does)",
                float(inside),
                1.0,
                evidence=EVIDENCE,
            ),
            Claim.equality(
                "empirics.constants.sigma",
                f"sigma counted over all {len(samples)} samples, over the closed form",
                sigma / truth["sigma"],
                1.0,
                EQUAL,
                evidence=EVIDENCE,
            ),
        ]
    return rows, claims


def _enumerated(sigma: float, samples: int) -> Constant:
    return Constant("sigma", sigma, "exact", "start", sigma, sigma, None, f"all {samples} samples", samples)


def _value(constant: Constant) -> float:
    return float("nan") if constant.value is None else constant.value
