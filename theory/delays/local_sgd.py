"""LocalSGD: R replicas stream through one S-stage pipeline, m = H R microbatches a round. Kind: exact.

A replica waits for its own last step, so nothing is stale. With R >= S replicas the pipeline never starves inside a
round, which takes (m + S - 1)(t_f + t_b): with R = S and t_f = t_b = 1, 2SH + 2(S-1) slots and utilisation
H/(H + 1 - 1/S). Averaging costs nothing here. Reference: arXiv 2606.03498 for the setting; derived here. Checked by
tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import one_f_one_b
from theory.delays.closed_form import S, m, stage
from theory.symbols import symbols

(R,) = symbols("R")

FORM = replace(
    one_f_one_b.FORM,
    name="localsgd",
    reference="arXiv 2606.03498",
    in_flight=sp.Min(S - stage, R),
    in_flight_total=None,
    conditions=((sp.Eq(sp.Mod(m, R), 0), "m a multiple of R"),),
    time_conditions=((sp.Ge(R, S), "R >= S"),),
    parameters={"m": S, "R": S},
)
