"""1F1B with a flush after every step. Kind: exact.

Every forward of a step comes after the previous step, so its gradient updates the weights it was taken at: no delay.
The last microbatch enters m - 1 slots of F + B after the first and needs S of them: period (m + S - 1)(t_f + t_b), of
which S - 1 are idle on every device. Stage s holds at most S - s microbatches between forward and backward.
Reference: Narayanan et al. 2021. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

import sympy as sp

from theory.delays.closed_form import ClosedForm, S, m, stage, t_b, t_f

FORM = ClosedForm(
    name="1f1b",
    reference="Narayanan et al. 2021",
    delay=sp.S.Zero,
    mean_delay=sp.S.Zero,
    versions=sp.S.One,
    in_flight=sp.Min(S - stage, m),
    period=(m + S - 1) * (t_f + t_b),
)
