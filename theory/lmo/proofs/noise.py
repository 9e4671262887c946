"""The expected noise of the momentum: orthogonal martingale differences although the gradients are stale."""

from __future__ import annotations

from sympy import sqrt

import theory.lmo.axioms  # noqa: F401  (registers the schemas)
from theory.lmo.parts import NOISE
from theory.proof import (
    Expected,
    Induction,
    SquareOf,
    Step,
    axiom,
    definition,
    eq,
    le,
    symbols,
    with_terms,
)

alpha, k, sigma, rho = symbols("alpha k sigma rho")
square, square_before, sample, inner = symbols("noise_square noise_square_before sample_square inner_noise")
E_square, E_before, E_sample, E_inner = symbols("E_noise_square E_noise_square_before E_sample_square E_inner_noise")
norm, frobenius, E_norm, E_frobenius = symbols("noise_norm noise_frobenius E_noise_norm E_noise_frobenius")
b = 1 - alpha
GROWN = sqrt(1 - b ** (2 * k + 2))

SQUARE = b**2 * square_before + 2 * b * alpha * inner + alpha**2 * sample
E_SQUARE = b**2 * E_before + 2 * b * alpha * E_inner + alpha**2 * E_sample

STEPS = (
    Step(
        "square of the noise",
        (definition("noise"),),
        eq(square, SQUARE),
        SquareOf(),
    ),
    Step(
        "expected square",
        ("square of the noise",),
        eq(E_square, E_SQUARE),
        Expected(),
    ),
    Step(
        "orthogonal noises",
        ("expected square", axiom("past_is_known"), axiom("mean_of_a_sample"), axiom("variance")),
        with_terms(E_square, before=b**2 * E_before, new=alpha**2 * sigma**2),
    ),
    Step(
        "first square",
        (definition("first noise"),),
        eq(square, alpha**2 * sample),
        SquareOf(),
    ),
    Step(
        "first expected square",
        ("first square",),
        eq(E_square, alpha**2 * E_sample),
        Expected(),
    ),
    Step(
        "first square in numbers",
        ("first expected square", axiom("variance")),
        with_terms(E_square, new=alpha**2 * sigma**2),
    ),
    Step(
        "squares unrolled",
        ("first square in numbers", "orthogonal noises"),
        with_terms(E_square, noise=sigma**2 * alpha / (2 - alpha) * (1 - b ** (2 * k + 2))),
        Induction({"E_noise_square_before": "E_noise_square"}, ("first square in numbers",)),
    ),
    Step(
        "expected norm",
        (axiom("norm_ratio"),),
        le(E_norm, rho * E_frobenius),
        Expected(),
    ),
    Step(
        "root of the square",
        (axiom("jensen_for_noise"), "squares unrolled"),
        with_terms(E_frobenius, noise=sigma * sqrt(alpha / (2 - alpha)) * GROWN),
    ),
    Step(
        "expected noise",
        ("expected norm", "root of the square"),
        with_terms(E_norm, noise=NOISE * GROWN),
    ),
    Step(
        "expected noise, limit",
        ("expected noise",),
        with_terms(E_norm, noise=NOISE),
    ),
)
