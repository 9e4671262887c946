"""The age of the gradients inside a momentum, as a law, and the terms that every theorem of this folder draws from it.

The direction is the LMO of sum_i P(i) g(x_{(k-i-tau)+}) + what is left of m_0; A = i + tau is the age of a gradient:
    classical  P(i) = a (1-a)^i                               the momentum itself
    Nesterov   P(0) = a (2-a), P(i) = a (1-a)^{i+1}, i >= 1   (1-a) m_{k+1} + a g: what torch's Muon takes
with a = alpha, b = 1 - a. In both P(i > j) = w b^{j+1} for j >= 0 with w = 1 or b, hence
    mean           E i = w b/a, and mu = E A = w b/a + tau;
    start          m_0 keeps the weight w b^{k+1}, at most w b/(a K) on average over k < K;
    variance       sum_i P(i)^2 = a/(2-a), or (a/(2-a)) [a (2-a)^3 + b^4];
    distance       E|A - s| = |s - tau| + (w b/a)(2 b^n - 1), n = max(s - tau, 0), smallest at a median of A:
                   the smallest s >= tau with w b^{s-tau+1} <= 1/2.
Proof of the distance, s >= tau: E|i - n| = E i - n + 2 E(n - i)+ and E(n - i)+ = sum_{j<n} P(i <= j)
= n - w b (1 - b^n)/a. For s < tau every age is above s. Checked against the sums by tests/theory/test_age.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy import Abs, Max, Rational, ceiling, log, sqrt

from theory.lmo.parts import E0, K, L, alpha, eta, rho, sigma, tau
from theory.symbols import symbols

(s,) = symbols("s")
b = 1 - alpha


@dataclass(frozen=True)
class AgeLaw:
    """One law: w of the docstring, and the sum of squares sum_i P(i)^2 as the square of `root`."""

    name: str
    weight: sp.Expr
    root: sp.Expr

    @property
    def mean(self) -> sp.Expr:
        """E i, the mean age without the delay; also what the weight of m_0 sums to over all steps."""
        return self.weight * b / alpha

    @property
    def lag(self) -> sp.Expr:
        """L eta E i."""
        return L * eta * self.mean

    @property
    def start(self) -> sp.Expr:
        """The average over a run of what m_0 contributes."""
        return E0 * self.mean / K

    @property
    def noise(self) -> sp.Expr:
        """Expected dual norm of the noise inside the direction."""
        return rho * sigma * self.root

    def distance(self, reference: sp.Expr = s) -> sp.Expr:
        """E|A - s|."""
        n = Max(reference - tau, 0)
        return Abs(reference - tau) + self.mean * (2 * b**n - 1)

    @property
    def median(self) -> sp.Expr:
        """The smallest median of A that is not below tau. The logarithm is of at least 1/4: below 1/2 it is tau."""
        weights = 1 if self.weight == 1 else 2  # w = b^(weights - 1)
        return tau + Max(ceiling(log(2) / -log(Max(b, Rational(1, 4)))) - weights, 0)


CLASSICAL = AgeLaw("classical", sp.S.One, sqrt(alpha) / sqrt(2 - alpha))
NESTEROV = AgeLaw("Nesterov", b, sqrt(alpha) * sqrt(alpha * (2 - alpha) ** 3 + b**4) / sqrt(2 - alpha))
