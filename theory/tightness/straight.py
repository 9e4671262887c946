"""Far from a minimum: the pathwise forms are attained in one dimension, so for every norm. Kind: tight.

While a run moves straight down f = L x^2/2 (any norm: f(x) = L <u, x>^2/2, dualnorm(u) = 1), alpha in (0, 1], no noise,
x_k = x_0 - k eta, after start-up (k large; for alpha = 1 exactly from k = tau on):
    [f(x_k) - f(x_{k+1})]/eta = dn(grad f(x_k)) - L eta/2,
    dn(m_{k+1})               = dn(grad f(x_k)) + L eta mu,       mu = (1-a)/a + tau,
    dn(grad f(x_{k-s}))       = dn(grad f(x_k)) + L eta s.
So the sum of dn(m_{k+1}) over n steps equals (f(x_first) - f(x_last))/eta + n L eta (1/2 + mu): the bound for the
momentum's own norm, with the descent that the run realises, is an equality there; at alpha = 1 so is Theorem 1s. While
Delta0 is about L eta^2 K^2/2 (a run that ends near the minimum), these bounds lose no constant in any norm. What norms
differ in is the limit K -> oo at fixed Delta0: the table of this package.
At x_k itself the same path has L eta/2 only. Checked by tests/theory/tightness/test_straight.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from theory.errors import InputError
from theory.tightness.lattice import check_natural


@dataclass(frozen=True)
class Excess:
    """Averages over the steps, minus the descent (f_first - f_last)/(eta n), in units of L eta."""

    at_iterate: Fraction
    shifted: Fraction
    momentum: Fraction


def excess(tau: int, alpha: Fraction, warm_up: int, steps: int) -> Excess:
    """Run x^2/2 (L = eta = 1, m_0 = grad f(x_0)) so far away that no sign changes; average `steps` steps after
    `warm_up`. Raises InputError for counts or an alpha outside (0, 1].
    """
    check_natural("tau", tau)
    check_natural("warm_up", warm_up, tau)
    check_natural("steps", steps, 1)
    if not 0 < alpha <= 1:
        raise InputError(f"alpha={alpha} is not allowed: alpha must be a number in (0, 1]")
    x = [Fraction(2 * (warm_up + steps))]
    m = [x[0]]
    for k in range(warm_up + steps):
        m.append((1 - alpha) * m[k] + alpha * x[max(k - tau, 0)])
        x.append(x[k] - 1)
    ks = range(warm_up, warm_up + steps)
    drop = (x[warm_up] ** 2 - x[warm_up + steps] ** 2) / 2 / steps
    return Excess(
        sum((x[k] for k in ks), Fraction(0)) / steps - drop,
        sum((x[k - tau] for k in ks), Fraction(0)) / steps - drop,
        sum((m[k + 1] for k in ks), Fraction(0)) / steps - drop,
    )
