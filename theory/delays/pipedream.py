"""PipeDream with weight stashing. Kind: exact.

S - 1 - s microbatches are in flight between a forward at stage s and the backward before which it started, so with m
microbatches per step the delay is at most ceil((S-1-s)/m) and (S-1-s)/m on average; with m = 1 it is S - 1 - s for
every microbatch after start-up. No device idles: a step takes m (t_f + t_b), and fill and drain (S - 1)(t_f + t_b)
once. Reference: Harlap et al. 2018. Its block-update delay is in block_update.py. Checked by
tests/agreement/test_schedules.py.
"""

from __future__ import annotations

import sympy as sp

from theory.delays.closed_form import ClosedForm, S, m, stage, t_b, t_f

FORM = ClosedForm(
    name="pipedream",
    reference="Harlap et al. 2018",
    delay=sp.ceiling((S - 1 - stage) / m),
    mean_delay=(S - 1 - stage) / m,
    versions=sp.ceiling((S - 1 - stage) / m) + 1,
    in_flight=S - stage,
    period=m * (t_f + t_b),
    fill_and_drain=(S - 1) * (t_f + t_b),
    parameters={"m": sp.S.One},
)
