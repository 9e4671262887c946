"""ZB-H1: the weight gradient split off and put later. Kind: exact.

The next stage waits only for the gradient of the inputs, t_b - t_w, and weight gradients fill what 1F1B leaves idle:
(S - 1)(t_f + (t_b - t_w) - t_w) of a step is idle, for m >= S and t_w <= min(t_f, t_b - t_w). Stage s delays s weight
gradients, so S microbatches are in flight at every stage, as many as at 1F1B's first.
Reference: Qi et al. 2024. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import one_f_one_b
from theory.delays.closed_form import S, m, t_b, t_f, t_w

FORM = replace(
    one_f_one_b.FORM,
    name="zb-h1",
    reference="Qi et al. 2024",
    in_flight=sp.Min(S, m),
    in_flight_total=None,
    period=m * (t_f + t_b) + (S - 1) * (t_f + t_b - 2 * t_w),
    time_conditions=(
        (sp.Ge(m, S), "m >= S"),
        (sp.Le(t_w, t_f), "t_w <= t_f"),
        (sp.Le(2 * t_w, t_b), "t_w <= t_b/2"),
    ),
)
