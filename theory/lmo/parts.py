"""The terms that the theorems of this folder share, each written once.

With a = alpha, b = 1 - alpha: R0 = E0 b/(a K) bounds the average of b^{k+1} E0, N = rho sigma sqrt(a/(2-a))
the expected noise of the momentum, L eta b/a the age of the gradients inside it.
"""

from __future__ import annotations

from sympy import Rational, sqrt

from theory.symbols import symbols

eta, alpha, tau, sigma, rho, L, K, Delta0, E0 = symbols("eta alpha tau sigma rho L K Delta0 E0")

INITIAL = Delta0 / (eta * K)
STEP = Rational(1, 2) * L * eta
LAG = L * eta * (1 - alpha) / alpha
DELAY = L * eta * tau
NOISE = rho * sigma * sqrt(alpha) / sqrt(2 - alpha)
START = E0 * (1 - alpha) / (alpha * K)

ASSUMPTIONS_LMO = (
    "duality",
    "smoothness",
    "lower-bound",
    "lmo",
    "constant-step",
    "fixed-delay",
    "unbiased",
    "independent-batch",
    "variance",
    "norm-ratio",
)
