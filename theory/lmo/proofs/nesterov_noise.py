"""The expected noise of Nesterov's direction: q_k = (1-a) nu_k + a n_k = (1-a)^2 nu_{k-1} + a (2-a) n_k.

The new sample counts a (2-a) times and is orthogonal to the old ones. Its square by that of nu_k:
E ||q_k||^2 = (1-a)^2 E ||nu_k||^2 + a^2 (3-2a) E ||n_k||^2.
"""

from __future__ import annotations

import theory.lmo.nesterov_axioms  # noqa: F401  (registers the schemas)
from theory.lmo.age import NESTEROV
from theory.lmo.proofs import noise
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
    vectors,
    with_terms,
)

alpha, k, sigma, rho = symbols("alpha k sigma rho")
square, square_before, sample, inner = symbols("called_noise_square noise_square_before sample_square inner_noise")
E_square, E_nu, E_before, E_sample, E_inner = symbols(
    "E_called_noise_square E_noise_square E_noise_square_before E_sample_square E_inner_noise"
)
norm, E_norm, E_frobenius = symbols("called_noise_norm E_called_noise_norm E_called_noise_frobenius")
v, v_before, v_sample = vectors("called_noise noise_before sample")
b, new = 1 - alpha, alpha * (2 - alpha)
LAST = alpha * (2 - alpha) ** 3 + b**4  # sum_i P(i)^2 is alpha/(2-alpha) times it

FIRST = (
    Step(
        "first called noise",
        (definition("called noise"), definition("first noise")),
        eq(v, new * v_sample),
    ),
    Step(
        "first called square",
        ("first called noise",),
        eq(square, new**2 * sample),
        SquareOf(),
    ),
    Step(
        "first expected called square",
        ("first called square",),
        eq(E_square, new**2 * E_sample),
        Expected(),
    ),
    Step(
        "first called square in numbers",
        ("first expected called square", axiom("variance")),
        with_terms(E_square, new=new**2 * sigma**2),
    ),
)
LATER = (
    Step(
        "called noise by the past",
        (definition("called noise"), definition("noise")),
        eq(v, b**2 * v_before + new * v_sample),
    ),
    Step(
        "called square",
        ("called noise by the past",),
        eq(square, b**4 * square_before + 2 * b**2 * new * inner + new**2 * sample),
        SquareOf(),
    ),
    Step(
        "expected called square",
        ("called square",),
        eq(E_square, b**4 * E_before + 2 * b**2 * new * E_inner + new**2 * E_sample),
        Expected(),
    ),
    Step(
        "called square by the momentum's",
        (
            "expected called square",
            "expected square",
            axiom("past_is_known"),
            axiom("mean_of_a_sample"),
            axiom("variance"),
        ),
        with_terms(E_square, momentum=b**2 * E_nu, new=alpha**2 * (3 - 2 * alpha) * sigma**2),
    ),
    Step(
        "later called square in numbers",
        ("called square by the momentum's", "squares unrolled"),
        with_terms(E_square, noise=sigma**2 * alpha / (2 - alpha) * (LAST - b ** (2 * k + 4))),
    ),
)
_UNROLLED = next(n for n, step in enumerate(noise.STEPS) if step.name == "squares unrolled")
STEPS = (
    *noise.STEPS[: _UNROLLED + 1],
    *FIRST,
    *LATER,
    Step(
        "called square in numbers",
        ("first called square in numbers", "later called square in numbers"),
        with_terms(E_square, noise=sigma**2 * alpha / (2 - alpha) * (LAST - b ** (2 * k + 4))),
        Induction({"E_called_noise_square_before": "E_called_noise_square"}, ("first called square in numbers",)),
    ),
    Step(
        "called square, limit",
        ("called square in numbers",),
        with_terms(E_square, noise=sigma**2 * alpha / (2 - alpha) * LAST),
    ),
    Step(
        "expected norm of the called noise",
        (axiom("norm_ratio_of_called_noise"),),
        le(E_norm, rho * E_frobenius),
        Expected(),
    ),
    Step(
        "root of the called square",
        (axiom("jensen_for_called_noise"), "called square, limit"),
        with_terms(E_frobenius, noise=sigma * NESTEROV.root),
    ),
    Step(
        "expected called noise",
        ("expected norm of the called noise", "root of the called square"),
        with_terms(E_norm, noise=NESTEROV.noise),
    ),
)
