"""Simple values of the constants at which counterexamples are looked for first; the last entry fixes nothing."""

from __future__ import annotations

from typing import Any

import sympy as sp

_ONE = {"L": 1, "eta": 1, "rho": 1, "sigma": 1, "E0": 1, "Delta0": 1, "Delta1": 1, "reference_age": 1}
_WINDOW = {"block_window_norm": 1, "block_drift_norm": 1, "block_delay": 1, "age_max": 1, "block_variance": 1}
_DECAY = {"b": sp.Rational(1, 2), "r": 1}
_TUNED = {name: 1 for name in _ONE if name != "eta"}
_TUNED_TOO = {"K": 1, "L": 16, "Delta0": 256, "rho": 1, "sigma": 289, "E0": 1}
HINTS: tuple[dict[str, Any], ...] = (
    # alpha = 2 scale/noise_scale, and alpha/(2-alpha), scale, noise_scale, 1 + alpha (tau - 3/4) are squares
    {"alpha": sp.Rational(128, 289), "scale": 64, "noise_scale": 289, "tau": 6, **_TUNED_TOO},
    {"alpha": sp.Rational(800, 841), "tau": 6, **_TUNED_TOO},  # another alpha at which all that stays rational
    # alpha/(2-alpha) = 1/4 at alpha = 2/5: roots stay rational
    {"alpha": sp.Rational(2, 5), "tau": 1, "s": 0, "K": 2, "k": 1, "j": 1, "t": 1, "age": 1, **_DECAY, "b": 1, **_ONE},
    {"alpha": sp.Rational(2, 5), "tau": 2, "s": 3, "K": 3, "k": 3, "j": 2, "t": sp.Rational(1, 2), "eta": 1, **_DECAY},
    {"alpha": sp.Rational(2, 5), "tau": 3, "s": 5, "K": 40, "k": 30, "j": 4, "eta": sp.Rational(1, 2), "L": 2},
    {"alpha": sp.Rational(2, 5), "tau": 3, "s": 5, "K": 40, "k": 30, "eta": sp.Rational(1, 2), "L": 2, "sigma": 0},
    {"alpha": 1, "tau": 2, "s": 2, "K": 1, "k": 0, "j": 3, "eta": 1},
    {"alpha": sp.Rational(2, 5), "tau": 0, "s": 2, "K": 40, "k": 30, "j": 0, "eta": 1},
    {"alpha": sp.Rational(2, 5)},
    {"gamma": 1, "S": 1, "j": 1, "delta_max": 1, "tau": 1, "theta": 1, **_WINDOW, **_ONE},
    {"gamma": sp.Rational(1, 4), "S": 2, "j": 2, "delta_max": 2, "tau": 1, "K": 2, "theta": 1, **_ONE},
    # at alpha = 32/41 also 1/2 + 2 (1-alpha)/alpha + 2 is a square: roots of tuned steps stay rational
    {"alpha": sp.Rational(32, 41), "tau": 1, "K": 4, "k": 1, **_TUNED},
    {"alpha": sp.Rational(32, 41), "tau": 2, "K": 4, "k": 1, **_TUNED},
    {"gamma": sp.Rational(1, 4), "tau": 2, "K": 4, "steps": 3, "k": 3, "j": 1, **_ONE},
    # whole rounds of LocalSGD, with one replica and with two
    {"gamma": 1, "S": 1, "K": 2, "steps": 2, "H": 2, "since": 1, "j": 1, **_ONE},
    {"gamma": 1, "S": 2, "K": 8, "steps": 2, "H": 2, "since": 1, "j": 1, **_ONE},
    {"gamma": 1, "S": 2, "K": 8, "steps": 2, "H": 3, "since": 1, "j": 1, **_ONE},
    {"gamma": 1, "S": 1, "K": 1, "steps": 1, "H": 1, "since": 2, **_ONE},
    {},
)
