"""Error feedback provably helps normalised SGD and Muon while the momentum is long. Kind: certified, pathwise.

No drift is measured here. Assume noises of norm at most nu on the path, and momenta that stay long: |m_k| >= G for
k >= 1 (normalised SGD, l_2), or smallest singular value >= G, full rank (Muon; |.| the operator norm, which is below
the nuclear norm of L). Let s be the largest |d_j - d_{j-1}|, gamma = 1 for l_2 and square matrices, sqrt 2 for others.
If G > gamma tau L eta, error feedback of either form, any tau, has
    s <= gamma [L eta + 2 a nu + a (1-a) E0] / (G - gamma tau L eta),    delta_k <= kappa s for k >= tau,
kappa = tau (tau+1)/2 (extrapolate) or tau^2 (telescoped), E0 = |m_0 - grad f(x_0)|. At 1 <= k < tau no turn is needed
to drift, y_1 - x_0 = -(tau-1) U_0: there delta_k <= kappa s + tau - k, so dbar <= kappa s + tau (tau-1)/(2K).
At tau = 1 the drift is at most 1/2 (Theorem 2's delay term no larger than L eta, plain delay at the iterate or shifted)
as soon as
    G >= gamma [3 L eta + 4 a nu + 2 a (1-a) E0]:
far from the floor L eta, and with a momentum that averages the noise. Near the floor, or at a nu of the size of G, this
says nothing, and theory.feedback.worst_case shows that nothing can be said.

Proof: `normalised` and `polar` give s <= gamma max|r_j|/G, r_j = m_{j+1} - m_j, j >= 1. By the unrolled r_j of `linear`
the start is at most a (1-a) E0, the noise a nu (1 + a sum (1-a)^q) <= 2 a nu, the gradients at most L times the longest
step; a step is U + c (U_k - U_{k-lag}), of norm at most eta (1 + c lag s) = eta (1 + tau s). Solve for s.
For k < tau, y_k - x_0 = -(tau-k) U_0 + sum_{j=1..k-1} (U_j - U_0).
Checked by tests/theory/feedback/test_far.py.
"""

from __future__ import annotations

import math

from theory.errors import InputError
from theory.feedback.linear import weights
from theory.symbols import QUANTITIES
from theory.tightness.lattice import check_natural


def turn_bound(
    L: float, eta: float, alpha: float, tau: int, shortest: float, noise: float, E0: float = 0.0, square: bool = True
) -> float:
    """The bound on s, at most 2. shortest: G; noise: nu; square: l_2 or square matrices.

    Raises InputError for values outside their domains; 2 where G is too short for the theorem.
    """
    for name, value in (("L", L), ("eta", eta), ("alpha", alpha), ("tau", tau), ("E0", E0)):
        QUANTITIES[name].check(value)
    for name, value in (("shortest", shortest), ("noise", noise)):
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name}={value!r} is not allowed: {name} must be a number >= 0")
    gamma = 1.0 if square else math.sqrt(2.0)
    left = shortest - gamma * tau * L * eta
    if left <= 0:
        return 2.0
    return min(2.0, gamma * (L * eta + 2 * alpha * noise + alpha * (1 - alpha) * E0) / left)


def drift_bound(form: str, turn: float, tau: int, k: int | None = None) -> float:
    """On delta_k, k >= tau if not given: kappa s + (tau - k)+, at most 2 tau.

    Raises InputError for another form, tau < 1 or k < 1.
    """
    kappa = sum(weights(form, tau))
    early = 0 if k is None else max(tau - check_natural("k", k, 1), 0)
    return min(2.0 * tau, kappa * turn + early)
