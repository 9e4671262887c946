"""PipeMare: one weight version, a forward and a backward in every slot. Kind: exact.

2(S-s) - 1 slots lie between the forward of a microbatch at stage s (from 0) and its backward, so its forward is
(2(S-s) - 1)/m steps old on average and at most the next whole number; its backward reads the newest weights.
Reference: Yang et al. 2021, for the average. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from theory.delays import pipedream
from theory.delays.closed_form import S, m, stage

_SLOTS = 2 * (S - stage) - 1

FORM = replace(
    pipedream.FORM,
    name="pipemare",
    reference="Yang et al. 2021",
    delay=sp.ceiling(_SLOTS / m),
    mean_delay=_SLOTS / m,
    backward_delay=sp.S.Zero,
    version_gap=sp.ceiling(_SLOTS / m),
    gap_microbatches=sp.Min(_SLOTS, m),
    versions=sp.S.One,
    in_flight=2 * (S - stage),
    in_flight_total=None,
    parameters={"m": S},
)
