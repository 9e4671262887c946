"""PipeDream with vertical sync: at every stage the version of the first. Kind: exact.

All stages have the delay of stage 0, (S-1)/m on average and ceil((S-1)/m) at most, and keep that many versions and the
newest. Reference: Harlap et al. 2018. Checked by tests/agreement/test_schedules.py.
"""

from __future__ import annotations

from dataclasses import replace

from theory.delays import pipedream
from theory.delays.closed_form import stage

FORM = replace(
    pipedream.FORM,
    name="pipedream-vertical-sync",
    delay=pipedream.FORM.delay.subs(stage, 0),
    mean_delay=pipedream.FORM.mean_delay.subs(stage, 0),
    backward_delay=None,
    versions=pipedream.FORM.versions.subs(stage, 0),
)
