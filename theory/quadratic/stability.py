"""Stability limits of delayed and corrected momentum methods on quadratics. Kind: exact.

Write the characteristic equation as P(z) + h Q(z) = 0. A root sits on the unit circle iff h = -P/Q is real at
some z = e^{iw}; the method is stable for small h > 0, so the limit is the smallest positive such h. The
condition that it is real, P(z) Q(1/z) = P(1/z) Q(z), is sin w times a polynomial in cos w: the real roots of
that polynomial in (-1, 1) and w = pi are all the candidates.

Closed forms, gamma = gain/(1-beta) (1 for EMA momentum, 1/(1-beta) for heavy ball):
    no correction, beta = 0        2 sin(pi/(4 tau + 2))
    no correction, tau = 0         2 (1+beta)/((1-beta) gamma)
    the same, Nesterov             2 (1+beta)/((1-beta)(1+2 beta) gamma)
    no correction, tau = 1         1/gamma, for every beta
    error feedback, tau = 1, c = 1 (sqrt(1 + 4/(1-beta)) - 1)/(2 gamma)
The other corrections have the limits of error feedback: the polynomial is the same.
Checked by tests/theory/test_quadratic_theory.py (closed forms; the spectral radius on both sides of the
limit) and tests/agreement/test_linear_optimizers.py (the optimizer code on both sides).
"""

from __future__ import annotations

import numpy as np
import sympy as sp
from numpy.polynomial import chebyshev, polynomial

from theory.errors import InputError
from theory.quadratic.method import QuadraticMethod
from theory.symbols import symbols

beta, tau = symbols("beta tau")

LIMIT_DELAY = 2 * sp.sin(sp.pi / (4 * tau + 2))  # beta = 0, no correction
LIMIT_SYNC = 2 * (1 + beta) / (1 - beta)  # tau = 0, EMA
LIMIT_SYNC_NESTEROV = LIMIT_SYNC / (1 + 2 * beta)
LIMIT_DELAY_ONE = sp.S.One  # tau = 1, EMA, every beta
LIMIT_ERROR_FEEDBACK = (sp.sqrt(1 + 4 / (1 - beta)) - 1) / 2  # tau = 1, EMA, c = 1


def closed_form(method: QuadraticMethod) -> float | None:
    """The limit by formula, or None where there is none here."""
    scale = (1.0 - method.beta) / method.gain
    numbers = {beta: method.beta, tau: int(method.tau)}
    if method.correction == "none":
        if method.beta == 0:
            return float(LIMIT_DELAY.subs(numbers))
        if method.tau == 0:
            return scale * float((LIMIT_SYNC_NESTEROV if method.nesterov else LIMIT_SYNC).subs(numbers))
        if method.nesterov:
            return None
        return scale * float(LIMIT_DELAY_ONE) if method.tau == 1 else None
    if method.tau == 1 and method.c == 1 and not (method.nesterov and method.beta):
        return scale * float(LIMIT_ERROR_FEEDBACK.subs(numbers))
    return None


def stability_limit(method: QuadraticMethod) -> float:
    """The largest h* with A(h) stable for all 0 < h < h*. Raises InputError if none is found."""
    lag, exponent = method.lag, int(method.tau) + method.lag
    open_loop = np.zeros(exponent + 3)
    open_loop[exponent:] = [method.beta, -1.0 - method.beta, 1.0]  # (z-1)(z-beta) z^{tau+lag}
    corrected = np.zeros(lag + 1)
    corrected[lag] += method.gain * (1.0 + method.c)
    corrected[0] -= method.gain * method.c
    top = [-method.beta, 1.0 + method.beta] if method.nesterov else [0.0, 1.0]  # N of `polynomial`
    feedback = np.convolve(corrected, top)
    # P(z) Q(1/z): coefficient of z^j; odd part sum_j a_j (z^j - z^-j) = 2i sin(w) sum_j a_j U_{j-1}(cos w)
    product = np.convolve(open_loop, feedback[::-1])
    shift = len(feedback) - 1
    odd = {j: _entry(product, shift + j) - _entry(product, shift - j) for j in range(1, len(product))}
    series = np.zeros(len(product))
    for j, value in odd.items():
        series[j] = value / j
    derivative = chebyshev.chebder(series)  # U_{j-1} = T_j'/j
    roots = chebyshev.chebroots(chebyshev.chebtrim(derivative, tol=1e-14))
    cosines = [root.real for root in np.atleast_1d(roots) if abs(root.imag) < 1e-7 and -1 < root.real < 1]
    candidates = []
    for cosine in (*cosines, -1.0):
        point = complex(cosine, np.sqrt(max(0.0, 1.0 - cosine * cosine)))
        denominator = polynomial.polyval(point, feedback)
        if abs(denominator) > 1e-12:
            candidates.append(float((-polynomial.polyval(point, open_loop) / denominator).real))
    for limit in sorted(value for value in candidates if value > 1e-9):
        if method.spectral_radius(limit * (1 + 1e-6)) > 1:
            return limit
    raise InputError(f"{method}: no stability limit found")


def _entry(values: np.ndarray, index: int) -> float:
    return float(values[index]) if 0 <= index < len(values) else 0.0
