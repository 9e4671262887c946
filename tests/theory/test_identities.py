"""Proof steps as identities: unrolled recursions, geometric sums, the virtual iterate, the age of a
gradient.
"""

from __future__ import annotations

import pytest
import sympy as sp

from theory.lmo import momentum_error, parts
from theory.symbols import symbols

alpha, tau, K = symbols("alpha tau K")
b = sp.Symbol("b", positive=True)  # 1 - alpha
j = sp.Symbol("j", integer=True, nonnegative=True)


def zero(expression: sp.Expr) -> bool:
    return sp.simplify(sp.expand(expression)) == 0


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_lemma_c_unrolled(delay):
    """e_k = m_{k+1} - G_k equals start + lag + delay + noise, the terms of the proof, for symbolic
    gradients.
    """
    steps = 5
    G = sp.symbols(f"G0:{steps}")
    n = sp.symbols(f"n0:{steps}")
    m0 = sp.Symbol("m0")
    m = m0
    for i in range(steps):
        m = (1 - alpha) * m + alpha * (G[max(i - delay, 0)] + n[i])
        unrolled = (1 - alpha) ** (i + 1) * (m0 - G[0])
        unrolled += sum((1 - alpha) ** (i - p + 1) * (G[p - 1] - G[p]) for p in range(1, i + 1))
        unrolled += alpha * sum(
            (1 - alpha) ** (i - p) * (G[max(p - delay, 0)] - G[p]) for p in range(1, i + 1)
        )
        unrolled += alpha * sum((1 - alpha) ** (i - p) * n[p] for p in range(i + 1))
        assert zero(m - G[i] - unrolled)
        if delay and i >= delay:  # one step less delay is no identity
            assert not zero(m - G[i] - unrolled.subs(G[i - delay], G[i - delay + 1]))


def test_geometric_sums():
    """lag_sum, delay_sum and the averages of Theorem 1 in closed form, for symbolic alpha."""
    for steps in range(6):
        lag = sum((1 - alpha) ** p for p in range(1, steps + 1))
        assert zero(momentum_error.lag_sum(sp.Integer(steps)) - lag)
        for delay in range(4):
            age = alpha * sum((1 - alpha) ** (steps - i) * min(i, delay) for i in range(1, steps + 1))
            closed = momentum_error.delay_sum(sp.Integer(steps)).subs(tau, delay)
            assert zero(closed - age)
        # the average of the start terms: sum_{k<steps} (1-alpha)^{k+1} = (K/E0) R0 (1 - (1-alpha)^steps)
        start = sum((1 - alpha) ** (p + 1) for p in range(steps))
        assert zero(start - parts.START * K / parts.E0 * (1 - (1 - alpha) ** steps))


def test_noise_of_the_momentum():
    """alpha^2 sum_{i<=k} (1-alpha)^{2(k-i)} = alpha/(2-alpha) (1 - (1-alpha)^{2k+2}), the square of N/(rho
    sigma).
    """
    for steps in range(5):
        variance = alpha**2 * sum((1 - alpha) ** (2 * i) for i in range(steps + 1))
        assert zero(variance - alpha / (2 - alpha) * (1 - (1 - alpha) ** (2 * steps + 2)))
    assert zero((parts.NOISE / (parts.rho * parts.sigma)) ** 2 - alpha / (2 - alpha))


def test_mean_age_of_a_gradient():
    """A = i + tau with P(i) = alpha (1-alpha)^i: E A = (1-alpha)/alpha + tau; against s = tau the delay is
    gone.
    """
    partial = sp.Sum(alpha * b**j * j, (j, 0, sp.oo)).subs(alpha, 1 - b)
    mean = sp.simplify(partial.doit())
    value = mean.args[0][0] if isinstance(mean, sp.Piecewise) else mean
    assert zero(value - b / (1 - b))
    assert zero(parts.LAG / (parts.L * parts.eta) - (1 - alpha) / alpha)


@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("form", ["extrapolate", "telescoped"])
def test_virtual_iterate_identity(form, delay):
    """For symbolic updates: y_1 = x_0 - (tau-1) U_0, y_{k+1} = y_k + U_k, and y_k - x_{(k-tau)+} as
    stated.
    """
    steps = 3 * delay + 3
    U = sp.symbols(f"U0:{steps}")
    x = [sp.Symbol("x0")]

    def update(i: int) -> sp.Symbol:
        return U[max(i, 0)]

    def virtual(i: int) -> sp.Expr:
        if form == "extrapolate":
            return x[i] - delay * update(i - 1)
        return x[i] - sum(update(i - p) for p in range(1, delay + 1))

    for i in range(steps):
        c, lag = (delay, 1) if form == "extrapolate" else (1, delay)
        x.append(x[i] + U[i] + c * (U[i] - update(i - lag)))
    assert zero(virtual(1) - x[0] + (delay - 1) * U[0])
    for i in range(1, steps):
        assert zero(virtual(i + 1) - virtual(i) - U[i])
        drift = virtual(i) - x[max(i - delay, 0)]
        if i > 2 * delay:
            if form == "extrapolate":
                stated = sum(U[i - p] - U[i - 1 - delay] for p in range(1, delay + 1))
            else:
                stated = sum(U[i - p] - U[i - delay - p] for p in range(1, delay + 1))
            assert zero(drift - stated)
        coefficients = sp.Poly(drift, *U, x[0]).coeffs() if drift != 0 else []
        assert sum(abs(value) for value in coefficients) <= 2 * delay  # hence delta_k <= 2 tau


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_error_feedback_momentum_unrolled(delay):
    """e_k = m_{k+1} - grad f(y_k), k >= 1: the terms of Theorem 2's proof, symbolic gradients at x and y."""
    steps = 5
    X = sp.symbols(f"X0:{steps}")  # grad f(x_k)
    Y = (None, *sp.symbols(f"Y1:{steps}"))  # grad f(y_k)
    n = sp.symbols(f"n0:{steps}")
    m0 = sp.Symbol("m0")
    m = (1 - alpha) * m0 + alpha * (X[0] + n[0])
    for i in range(1, steps):
        m = (1 - alpha) * m + alpha * (X[max(i - delay, 0)] + n[i])
        unrolled = (1 - alpha) ** (i + 1) * (m0 - X[0]) + (1 - alpha) ** i * (X[0] - Y[1])
        unrolled += sum((1 - alpha) ** (i - p + 1) * (Y[p - 1] - Y[p]) for p in range(2, i + 1))
        unrolled += alpha * sum(
            (1 - alpha) ** (i - p) * (X[max(p - delay, 0)] - Y[p]) for p in range(1, i + 1)
        )
        unrolled += alpha * sum((1 - alpha) ** (i - p) * n[p] for p in range(i + 1))
        assert zero(m - Y[i] - unrolled)
    # Theorem 2's start: sum_{k=1..n} (1-alpha)^{k+1} = (1-alpha)^2/alpha (1 - (1-alpha)^n)
    for last in range(1, 5):
        total = sum((1 - alpha) ** (p + 1) for p in range(1, last + 1))
        assert zero(total - (1 - alpha) ** 2 / alpha * (1 - (1 - alpha) ** last))
