"""What the theorems of this folder share: terms, assumptions, metrics, and the two steps of all their proofs.

Descent. L-smoothness, the draw of s_k (E_k G_k = grad f(z_k)/S, E_k||G_k||^2 = E_k||g||^2/S) and
2<u, v> = |u|^2 + |v|^2 - |u-v|^2 give
    E_k f(x_{k+1}) <= f(x_k) - (gamma/2S)||grad f(x_k)||^2 - (gamma/2S)||grad f(z_k)||^2
                      + (gamma L^2/2S)||x_k - z_k||^2 + (gamma^2 L/2) E_k||G_k||^2.
Sum over k < K, times 2S/(gamma K), with bars for averages over k of expectations:
    mean||grad f(x)||^2 <= 2 S Delta0/(gamma K) - mean||grad f(z)||^2 + L^2 mean||x - z||^2 + gamma L S mean||G||^2.
Window. Block s of (z_k - x_k)/gamma is the sum of those G_j, k - delta_{k,s} <= j < k, that were drawn at s. The
theorems differ in how they bound it, and in what they know of E||G||^2.
"""

from __future__ import annotations

import sympy as sp

from theory.errors import InputError
from theory.symbols import symbols

gamma, L, G, B, sigma, sigma_b, S, K, M, Delta0, delta_max, theta, mu = symbols(
    "gamma L G B sigma sigma_b S K M Delta0 delta_max theta mu"
)

INITIAL = 2 * S * Delta0 / (gamma * K)
BLOCK_STEP = gamma * S * L * G**2  # E||G_k||^2 <= G^2
MOMENT_STEP = gamma * L * B**2  # E||G_k||^2 <= B^2/S
NOISE = gamma * L * sigma**2  # E||G_k||^2 <= (||grad f(z_k)||^2 + sigma^2)/S
STALE = gamma**2 * L**2

METRIC = r"\frac{1}{K} \sum_{k<K} \mathbb{E} \|\nabla f(x_k)\|^2"
UNIT = "(f/x)^2"

COMMON = ("euclidean", "smoothness", "lower-bound", "block-sgd", "block-delay", "unbiased")
MOMENTS = (*COMMON, "second-moment")
BLOCKS = (*COMMON, "block-second-moment")
VARIANCE = (*COMMON, "variance")

PAPER = "Ilin and Richtarik 2026 (arXiv 2606.03498), Theorem 4.1"

HELD: dict[str, dict[sp.Symbol, sp.Expr]] = {  # what stays fixed when S grows -> substitution
    "whole": {},
    "block": {sigma: sp.sqrt(S) * sigma_b, B: sp.sqrt(S) * G},
}


def hold(expression: sp.Expr, fixed: str) -> sp.Expr:
    """The expression in what is held fixed when S grows: of the "whole" gradient, or of each stage's "block".

    Raises InputError for another word.
    """
    if fixed not in HELD:
        raise InputError(f"fixed={fixed!r} is not allowed: fixed must be one of {', '.join(HELD)}")
    return expression.subs(HELD[fixed])
