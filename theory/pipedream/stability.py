"""A cost linear in S is necessary for PipeDream: the stepsize must shrink like 1/S. Kind: exact.

Where f depends on stage 0's block alone and is L|x|^2/2 there, PipeDream is y_{m+1} = y_m - gamma L y_{m-(S-1)} in it,
gradient descent with delay S - 1: from every start y_m -> 0 iff gamma L < 2 sin(pi/(4S-2)), about pi/(2S). Such an f is
smooth with constant L and the delays of the other stages do not matter, so no theorem for every L-smooth f can hold
beyond that step, and 2 Delta0/(gamma M) then costs at least L Delta0 (4/pi) S/M, linear in S. `exact` asks for
gamma L + (1+theta) gamma^2 L^2 (S-1)^2 <= 1; at theta -> 0 (no noise) that is a factor pi/2 away from the limit.

Proof: the limit of `theory.quadratic.stability` at tau = S - 1, beta = 0.
Checked by tests/theory/test_pipedream_bounds.py (spectral radius on both sides of the limit, and runs).
"""

from __future__ import annotations

import sympy as sp

from theory.symbols import symbols

(S,) = symbols("S")

LIMIT = 2 * sp.sin(sp.pi / (4 * S - 2))  # of gamma L
