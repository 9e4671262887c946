"""Uniform delay tau at every stage of an asynchronous pipeline. Kind: exact.

Batch k reads version k - tau, which exists when its first forward starts iff tau m >= S - 1. tau + 1 versions are kept
and no device idles. tau = 1 is PipeDream-2BW. Derived here. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import pipedream
from theory.delays.closed_form import S, m
from theory.symbols import symbols

(tau,) = symbols("tau")

FORM = replace(
    pipedream.FORM,
    name="uniform",
    reference="derived here",
    delay=tau,
    mean_delay=tau,
    backward_delay=None,
    versions=tau + 1,
    conditions=((sp.Ge(tau * m, S - 1), "tau m >= S - 1"),),
    parameters={"m": S, "tau": sp.ceiling((S - 1) / m)},
)
