"""Interleaved 1F1B with v chunks a device, in Megatron-LM's order. Kind: exact.

A chunk takes t_f/v and t_b/v, and fill and drain pass through S devices of one chunk each: the idle time (S - 1)(t_f +
t_b) of 1F1B shrinks to a v-th, the bubble to (S - 1)/(v m + S - 1). Device d runs 2(S - 1 - d) + (v - 1)S passes ahead
and holds one more. Reference: Narayanan et al. 2021b. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import one_f_one_b
from theory.delays.closed_form import S, device, m, t_b, t_f
from theory.symbols import symbols

(v,) = symbols("v")

FORM = replace(
    one_f_one_b.FORM,
    name="interleaved-1f1b",
    reference="Narayanan et al. 2021b",
    in_flight=None,
    in_flight_total=sp.Min(v * m, 2 * (S - 1 - device) + (v - 1) * S + 1),
    period=(m + (S - 1) / v) * (t_f + t_b),
    conditions=((sp.Eq(sp.Mod(m, S), 0), "m a multiple of S"),),
    parameters={"m": S, "v": sp.Integer(2)},
)
